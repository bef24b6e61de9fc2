"""What an earlier study lends to a new one: beliefs to begin with, never a measurement.

The launches are taken over when the study begins, in its own terms and discounted, and kept in its folder: what
becomes of the earlier study does not matter to it. They shape what is proposed and when the search ends; verdict,
records, baselines and confirmation rest on the study's own launches alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectune.counts import count
from spectune.engines.protocol import Engine
from spectune.errors import SpectuneError
from spectune.machine import take_fingerprint
from spectune.search.guided.evidence import Discount, Evidence, borrowed_from
from spectune.search.storage.folder import StudyFolder
from spectune.space import SearchSpace
from spectune.typed_json import require_types

WARM_START = "warm_start.json"
"""The file of a study that keeps it."""
SCHEMA = 1

SAME, OTHER_VERSION, OTHER_MACHINE = Discount(1.0, 2.0, 1.0), Discount(0.5, 3.0, 0.5), Discount(0.5, 1.0, 0.25)
OTHER_TRAFFIC = 0.25  # part of the counted cycles that counts where other prompts were sent
OTHER_ARGUMENTS = 1.5  # factor on errors where the engine was given other arguments


@dataclass(frozen=True)
class WarmStart:
    """The launches of an earlier study, as far as they say something here.

    Attributes:
        study: Its name.
        why: How they were discounted, and why.
        evidence: The launches.
    """

    study: str
    why: str
    evidence: tuple[Evidence, ...]

    @property
    def words(self) -> str:
        """Return it as a sentence without a full stop."""
        return f"warm start from {count(len(self.evidence), 'launch')} of study {self.study}: {self.why}"

    def to_json(self) -> dict[str, Any]:
        """Return what `summary.json` says of it."""
        return {"study": self.study, "launches": len(self.evidence), "why": self.why}

    def dumps(self) -> str:
        """Return the content of the file in the study's folder."""
        rows = [json.loads(item.dumps()) for item in self.evidence]
        return json.dumps({"schema": SCHEMA, **self.to_json(), "evidence": rows}, indent=1) + "\n"

    @classmethod
    def of(cls, folder: StudyFolder) -> WarmStart | None:
        """Read what a study began with; None where it began with nothing.

        Raises:
            SpectuneError: The file is damaged.
        """
        text = folder.belonging(WARM_START)
        if text is None:
            return None
        try:
            content = json.loads(text)
            evidence = tuple(_read(row) for row in content["evidence"])
            return cls(str(content["study"]), str(content["why"]), evidence)
        except (ValueError, KeyError, TypeError, AttributeError, SpectuneError) as error:
            raise SpectuneError(
                f"{folder.root / WARM_START} is damaged ({error}); remove it to go on without the earlier study"
            ) from None


def _read(row: Any) -> Evidence:
    found = Evidence.loads(json.dumps(row))
    for part in (found, *found.levels, found.discount or SAME):
        require_types(part)
    return found


def refuse_lender(lender: StudyFolder, space: SearchSpace) -> None:
    """Make sure that an earlier study can teach one of this space.

    Raises:
        SpectuneError: It does not exist, measured another model, or one of the two is simulated and the other is not.
    """
    theirs = lender.require().space()
    simulated = [one.engine.is_simulated for one in (theirs, space)]
    if len(set(simulated)) > 1:
        theirs_is, this_is = (("measured", "simulated")[one] for one in simulated)
        raise SpectuneError(
            f"--warm-start {lender.name}: that study was {theirs_is}, and this one is {this_is}: what a profile "
            "says is no evidence of a machine, nor the other way round; leave --warm-start out, or name a "
            f"{this_is} study"
        )
    models = [one.engine.args.get("model-path") for one in (theirs, space)]
    if models[0] != models[1]:
        raise SpectuneError(f"--warm-start {lender.name}: it measured the model {models[0]}, and this is {models[1]}")


def lend(lender: StudyFolder, space: SearchSpace, engine: Engine) -> WarmStart:
    """Take over what an earlier study knows.

    Raises:
        SpectuneError: As `refuse_lender`, or none of its launches says anything.
    """
    refuse_lender(lender, space)
    theirs = lender.space()
    same_machine, discount, why = _discount(lender, theirs, space, engine)
    records = lender.records()
    found = [borrowed_from(record, theirs, space, discount, same_machine=same_machine) for record in records]
    evidence = tuple(item for item in found if item is not None)
    if not evidence:
        raise SpectuneError(f"--warm-start {lender.name}: none of its {count(len(records), 'launch')} says anything")
    return WarmStart(lender.name, why, evidence)


def _discount(
    lender: StudyFolder, theirs: SearchSpace, space: SearchSpace, engine: Engine
) -> tuple[bool, Discount, str]:
    """Return whether the machine is the same, what a launch is worth, and why."""
    environment = lender.environment()
    same_version = engine.simulated or environment.get("engine") == engine.title
    same_machine = engine.simulated or _machine(environment) == _machine(take_fingerprint().to_json())
    same_machine &= all(lender.belonging(name) == text for name, text in engine.belongings().items())
    same_machine &= theirs.engine.gpus == space.engine.gpus
    found = SAME if same_version else OTHER_VERSION
    reasons = [] if same_version else [f"it ran {lender.engine_title}"]
    if not same_machine:
        found = OTHER_MACHINE
        reasons.append("it ran on another machine, so only its acceptance is used, and its failures warn")
    elif theirs.engine.args != space.engine.args:
        found = Discount(found.counted, found.noise * OTHER_ARGUMENTS, found.risk)
        reasons.append("its engine was given other arguments")
    if not _same_traffic(theirs, space):
        found = Discount(found.counted * OTHER_TRAFFIC, found.noise, found.risk)
        reasons.append("it was asked other prompts")
    figures = f"accepted drafts count {found.counted:.0%}"
    if same_machine:
        figures += f", times are taken as {found.noise:g} × as noisy"
    return same_machine, found, "; ".join([*(reasons or ["another study"]), figures])


def _machine(environment: Mapping[str, Any]) -> Any:
    """Return what tells a machine from another in its fingerprint."""
    gpus, host = environment.get("gpus") or {}, environment.get("host") or {}
    devices = sorted((str(gpu.get("name")), gpu.get("memory_total_mib")) for gpu in gpus.get("devices") or ())
    return devices, host.get("cpu")


def _same_traffic(one: SearchSpace, other: SearchSpace) -> bool:
    fields = ("prompts", "shared_prefix", "chat_template", "temperature")
    return all(getattr(one.workload, name) == getattr(other.workload, name) for name in fields)
