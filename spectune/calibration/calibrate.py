"""The fit of a whole profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from spectune.calibration import cycle as terms
from spectune.calibration.acceptance import AcceptanceFit, fit_acceptance
from spectune.calibration.cycle import CycleFit, as_moe, fit_cycle
from spectune.calibration.effects import ParameterEffect, factors_of, parameter_effects
from spectune.calibration.noise import fit_noise
from spectune.calibration.observed import Observed, observed
from spectune.calibration.prefill import by_first_tokens, by_standstills
from spectune.counts import count
from spectune.engines.simulated.profile import Profile, parse_profile
from spectune.engines.simulated.profile_schema import LEAST_CYCLE_MS, SCHEMA, Noise
from spectune.errors import SpectuneError
from spectune.search import Role, Status, TrialRecord
from spectune.space import SearchSpace

LEAST_CANDIDATES = 4  # measured; with fewer there is nothing to tell draft from verify by
ROUNDS = 2  # of terms and effects in turns
GB_IF_UNKNOWN = 24.0
MIB_PER_GB = 1e9 / 2**20
KV_MB_IF_UNKNOWN = 0.1
HIDDEN = {
    terms.TOKEN: "what a further token costs the target",
    terms.KV: "what the KV cache costs",
    terms.DRAFT_TOKEN: "what a token costs the drafter",
}


@dataclass(frozen=True)
class Calibration:
    """A profile and what it rests on.

    Attributes:
        name: Of the profile.
        cycle: The fitted times.
        acceptance: The fitted acceptance.
        effects: The parameters that matter beside them.
        noise: Of the machine.
        prefill_ktok_per_s: How fast the target reads prompts.
        batches: Requests that ran at once, of all levels.
        machine: The sections `gpu`, `startup`, what the target takes, and the time of one prefill.
        launches: How many launches it rests on.
        study: The study's name.
        simulated: Whether the study was a simulation itself.
    """

    name: str
    cycle: CycleFit
    acceptance: AcceptanceFit
    effects: tuple[ParameterEffect, ...]
    noise: Noise
    prefill_ktok_per_s: float
    batches: frozenset[int]
    machine: Mapping[str, Any]
    launches: int
    study: str
    simulated: bool

    def to_yaml(self) -> str:
        """Return the profile's file."""
        return yaml.safe_dump(self._data(), sort_keys=False, allow_unicode=True, width=110)

    def profile(self) -> Profile:
        """Return the profile as its file would be read."""
        return parse_profile(self.to_yaml(), Path(f"{self.name}.yaml"))

    @property
    def assumed(self) -> list[str]:
        """What the study does not tell, and what stands in for it."""
        return [
            "host_ms is 0: the host's share of a cycle is part of step_ms",
            *self._one_kind(),
            *self._not_told_apart(),
            *self._trees(),
            "weights and KV cache per token are sized so that what was launched fits",
            "failures, drift and jumps are not part of it",
        ]

    def _one_kind(self) -> Iterator[str]:
        """Yield what the launches had one kind of, or none."""
        seen = self.cycle.seen
        if len(self.batches) == 1:
            (batch,) = self.batches
            yield f"every level ran {count(batch, 'request')} at once: speeds with more or fewer are a guess"
        if terms.TARGET_GRAPH not in seen:
            yield "no forward of the target ran as graph: it is taken to cost the same, or a prefill if that is less"
        elif terms.TARGET_EAGER not in seen:
            yield "no forward of the target ran as eager: it is taken to cost the same"
        drafted = {terms.DRAFT_GRAPH, terms.DRAFT_EAGER} & seen
        if not self.acceptance.drafters:
            yield "nothing was drafted: draft and acceptance are placeholders"
        elif not drafted:
            yield "no draft model ran: draft is a placeholder"
        elif len(drafted) == 1:
            yield "drafts ran in one way only, with or without graphs: both are taken to cost the same"

    def _not_told_apart(self) -> Iterator[str]:
        """Yield the costs that vary with nothing but others that the fit has already."""
        hidden = self.cycle.seen - self.cycle.told
        if hidden & {terms.DRAFT_GRAPH, terms.DRAFT_EAGER}:
            yield "all drafted equally many steps: a draft's time is part of the verify's, and other steps are a guess"
        for term, words in HIDDEN.items():
            if term in hidden:
                yield f"{words} is not told apart from the rest of a cycle, and part of it"
        if terms.TOKEN not in self.cycle.seen:
            yield "no forward had more than one token: what more cost is not known, and taken for nothing"

    def _trees(self) -> Iterator[str]:
        """Yield the drafters whose trees are a guess."""
        if guessed := ", ".join(name or "the drafter" for name in self.acceptance.guessed):
            theirs = "the others" if self.acceptance.trees else "EAGLE-3 drafters elsewhere, as is usual"
            yield f"no tree of {guessed} was measured: breadth and confidence are those of {theirs}"

    def _data(self) -> dict[str, Any]:
        found = [round(value, 6) for value in self.cycle.coefficients]
        step = self._both(terms.TARGET_GRAPH, terms.TARGET_EAGER)
        if terms.TARGET_GRAPH not in self.cycle.seen:
            # A profile's shortest prefill takes as long as a graph does.
            step["graph"] = min(step["graph"], round(self.machine["prefill_ms"], 6))
        knee: dict[str, Any] = {}
        if self.cycle.knee_tokens is not None and found[terms.TOKEN] > 0.0:
            factor = round(1.0 + found[terms.BEYOND] / found[terms.TOKEN], 4)
            knee = {"knee_tokens": self.cycle.knee_tokens, "knee_factor": min(1000.0, factor)}
        moe = as_moe(self.cycle)
        origin = "a SIMULATED study" if self.simulated else "a measured study"
        return {
            "schema": SCHEMA,
            "name": self.name,
            "source": f"Fitted by spectune calibrate to {count(self.launches, 'launch')} of {origin}, {self.study}. "
                      "Assumed: " + "; ".join(self.assumed) + ".",
            "seed": 0,
            "gpu": self.machine["gpu"],
            "target": {
                "weights_gb": self.machine["weights_gb"],
                "step_ms": {key: max(LEAST_CYCLE_MS, value) for key, value in step.items()},
                "token_ms": found[terms.TOKEN],
                **knee,
                "kv_ms_per_ktoken": found[terms.KV],
                "kv_mb_per_token": self.machine["kv_mb_per_token"],
                "prefill_ktok_per_s": round(self.prefill_ktok_per_s, 4),
                **({} if moe is None else {"moe": moe.model_dump()}),
                "verify_graph": self.cycle.verify_graph,
            },
            "draft": {
                "step_ms": self._both(terms.DRAFT_GRAPH, terms.DRAFT_EAGER),
                "token_ms": found[terms.DRAFT_TOKEN],
            },
            "host_ms": 0.0,
            "acceptance": _plain(self.acceptance.table.model_dump(exclude_defaults=True)),
            "startup": self.machine["startup"],
            "noise": _plain(self.noise.model_dump(exclude_defaults=True)),
            **({"effects": [{"when": _plain(one.to_when()), "cycle": round(one.factor, 4)} for one in self.effects]}
               if self.effects else {}),
        }  # fmt: skip

    def _both(self, graph: int, eager: int) -> dict[str, float]:
        """Return both times of a forward; the one that no launch had is the other."""
        kinds = {"graph": graph, "eager": eager}
        had = [term for term in kinds.values() if term in self.cycle.seen] or [graph]
        return {kind: round(self.cycle.coefficients[term if term in had else had[0]], 6)
                for kind, term in kinds.items()}  # fmt: skip


def calibrate(
    records: Sequence[TrialRecord], space: SearchSpace, environment: Mapping[str, Any], *, name: str, study: str
) -> Calibration:
    """Fit a profile to the launches of a study.

    Args:
        records: Its launches.
        space: Its search space.
        environment: Its `environment.json`; may be empty.
        name: Of the profile.
        study: Of the study.

    Raises:
        SpectuneError: Too little was measured.
    """
    points = observed(records, space)
    candidates = {record.candidate.candidate_id: record for record in records if record.status is Status.OK}
    measured = {one.candidate_id for one in points}
    if len(measured) < LEAST_CANDIDATES or not any(not one.setup.speculative for one in points):
        raise SpectuneError(
            f"the study {study} has {count(len(measured), 'candidate')} measured at a concurrency; a profile needs "
            f"{LEAST_CANDIDATES}, one of them without speculation"
        )
    noise = fit_noise(records, space)
    effects: list[ParameterEffect] = []
    for _ in range(ROUNDS):
        fit = fit_cycle(points, factors_of(points, candidates, effects), noise.launch_sd)
        effects = parameter_effects(points, [fit.cycle_ms(one) for one in points], candidates, space)
    fit = fit_cycle(points, factors_of(points, candidates, effects), noise.launch_sd)
    ran = [record for record in records if record.status is Status.OK]
    prefill_ktok_per_s = by_first_tokens(ran)
    fitted = Calibration(
        name=name,
        cycle=fit,
        acceptance=fit_acceptance(points),
        effects=tuple(effects),
        noise=noise,
        prefill_ktok_per_s=prefill_ktok_per_s,
        batches=frozenset(one.batch for one in points),
        machine={
            **_machine(ran, points, environment),
            "prefill_ms": median(one.prompt_tokens for one in points) / prefill_ktok_per_s,
        },
        launches=len({record.trial for record in ran}),
        study=study,
        simulated=space.engine.is_simulated,
    )
    return replace(fitted, prefill_ktok_per_s=by_standstills(fitted.profile(), points))


def _machine(ran: Sequence[TrialRecord], points: Sequence[Observed], environment: Mapping[str, Any]) -> dict[str, Any]:
    devices = environment.get("gpus", {}).get("devices", ()) if isinstance(environment.get("gpus"), Mapping) else ()
    memory = [device["memory_total_mib"] for device in devices if device.get("memory_total_mib")]
    gb = round(min(memory) / MIB_PER_GB, 1) if memory else GB_IF_UNKNOWN
    count = max(one.setup.ranks for one in points)
    share = min(one.setup.mem_fraction for one in points)
    kv_tokens = max((record.effective.kv_tokens or 0 for record in ran), default=0)
    weights = round(0.5 * share * gb * count, 3)
    kv_mb = round(0.5 * share * gb * 1000 / kv_tokens, 6) if kv_tokens else KV_MB_IF_UNKNOWN
    baselines = [record.seconds.startup for record in ran if record.role is not Role.SEARCH] or [0.0]
    return {
        "gpu": {"count": count, "memory_gb": gb},
        "weights_gb": max(0.001, weights),
        "kv_mb_per_token": max(0.0001, kv_mb),
        "startup": {"load_s": round(median(baselines), 2), "capture_s_per_graph": 0.0},
    }


def _plain(value: Any) -> Any:
    """Return a value that YAML writes without Python's own types, numbers as short as they may be."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value
