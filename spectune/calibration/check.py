"""How well a profile predicts launches it was not fitted on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spectune.calibration.acceptance import drafter_of, expected_length
from spectune.calibration.calibrate import calibrate
from spectune.calibration.observed import Observed, observed
from spectune.counts import count
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.under_load import under_load
from spectune.errors import SpectuneError
from spectune.search import TrialRecord
from spectune.space import SearchSpace

FOLDS = 10
NO_SPECULATION, NAMELESS = "no speculation", "drafting without a draft model"
UNFIT = 0.1
"""Median error of a speed beyond which a profile ranks candidates by its own mistakes."""


@dataclass(frozen=True)
class Checked:
    """Relative errors of one figure at one level, over candidates that were left out of the fit.

    Attributes:
        figure: `accept_length`; `cycle_ms`, a cycle between prefills; or `decode_speed` of one request and
            `output_throughput` of all, which have them in it.
        batch: Running requests.
        speculative: Whether the candidates speculate: a speedup is wrong by what the two are wrong.
        candidates: How many; launches, of one that nothing else could stand in for.
        median: Of the absolute errors.
        p90: 90th percentile of them.
        bias: Mean error; positive predicts too much.
    """

    figure: str
    batch: int
    speculative: bool
    candidates: int
    median: float
    p90: float
    bias: float

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints."""
        return asdict(self)


def check(
    records: Sequence[TrialRecord], space: SearchSpace, environment: Mapping[str, Any]
) -> tuple[list[Checked], list[str]]:
    """Fit again without some launches, and predict those.

    Cross-validation with as many folds as there are groups of launches, ten at most; the speed of one request is what
    the study measured and the simulated engine would give under its load, standstills for other requests' prompts
    included. Fits that are left with too little are passed over.

    Returns:
        The errors, and what could not be left out since nothing else has it: drafters, or doing without.
    """
    points = observed(records, space)
    groups = _groups(points)
    folds = min(FOLDS, len(groups))
    missing: dict[str, None] = {}
    errors: dict[tuple[str, int, bool], dict[frozenset[int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for fold in range(folds):
        group_of = {trial: group for group in groups[fold::folds] for trial in group}
        rest = [record for record in records if record.trial not in group_of]
        if all(one.setup.speculative for one in points if one.trial not in group_of):
            missing[NO_SPECULATION] = None
            continue
        try:
            fitted = calibrate(rest, space, environment, name="fold", study="fold")
        except SpectuneError:
            continue
        profile = fitted.profile()
        for one in (one for one in points if one.trial in group_of):
            if one.setup.speculative and drafter_of(one.setup) not in fitted.acceptance.drafters:
                missing[drafter_of(one.setup) or NAMELESS] = None
                continue
            for figure, error in errors_of(profile, one):
                errors[figure, one.batch, one.setup.speculative][group_of[one.trial]].append(error)
    return [_summed(*key, found) for key, found in sorted(errors.items())], list(missing)


def _groups(points: Sequence[Observed]) -> list[frozenset[int]]:
    """Return the launches that are left out together: those of a candidate, lest it is predicted from itself.

    The only one without speculation, or the only one that replays graphs or does not, is left out launch by launch:
    nothing else tells what it costs, and all speedups rest on it.
    """
    baselines: dict[bool, set[str]] = defaultdict(set)  # whether a graph is replayed → candidates
    launches: dict[str, set[int]] = defaultdict(set)
    for one in points:
        launches[one.candidate_id].add(one.trial)
        if not one.setup.speculative:
            baselines[one.graph(verify_graph=True)].add(one.candidate_id)
    alone = set().union(*(ids for ids in baselines.values() if len(ids) == 1))
    groups: list[frozenset[int]] = []
    for name, trials in launches.items():
        groups += [frozenset({trial}) for trial in sorted(trials)] if name in alone else [frozenset(trials)]
    return groups


def errors_of(profile: Profile, one: Observed) -> Iterator[tuple[str, float]]:
    """Yield the figures of a level and ln(predicted / measured) of each; the profile knows its drafter."""
    length = expected_length(profile.file.acceptance, one)
    launch = SimulatedLaunch(profile, one.setup)
    cycle = launch.cycle_ms(one.batch, one.kv_ktokens * 1000)
    load = under_load(
        launch, one.batch, prompt_tokens=one.prompt_tokens, output_tokens=one.output_tokens, accept_length=length,
        cycle_ms=cycle,
    )  # fmt: skip
    if one.setup.speculative:
        yield "accept_length", math.log(length / one.accept_length)
    yield "cycle_ms", math.log(cycle / one.cycle_ms)
    yield "decode_speed", math.log(load.decode_speed / one.decode_speed)
    yield "output_throughput", math.log(load.output_throughput / one.output_throughput)


def unfit(errors: Sequence[Checked]) -> str | None:
    """Say why a profile is not to be predicted with; None where nothing speaks against it."""
    known = [one for one in errors if one.figure == "decode_speed"]
    if not known:
        return "how well it predicts is not known"
    worst = max(known, key=lambda one: one.median)
    if worst.median <= UNFIT:
        return None
    return (
        f"with {count(worst.batch, 'request')} it predicts speeds {worst.median:.0%} off (median), and beyond "
        f"{UNFIT:.0%} it ranks candidates by its own mistakes"
    )


def _summed(figure: str, batch: int, speculative: bool, by_group: Mapping[frozenset[int], list[float]]) -> Checked:
    means = np.array([np.mean(found) for found in by_group.values()])
    sizes = np.abs(np.expm1(means))
    return Checked(
        figure, batch, speculative, len(means), float(np.median(sizes)), float(np.quantile(sizes, 0.9)),
        float(np.expm1(means.mean())),
    )  # fmt: skip
