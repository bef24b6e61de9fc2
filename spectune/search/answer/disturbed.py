"""Launches that were made beside other work of the machine: which, and what that means for an answer."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.analysis.launch_noise import ASSUMED_SD
from spectune.counts import count
from spectune.machine import Others
from spectune.search.evidence.outcome import Evidence
from spectune.search.storage.records import TrialRecord

WAY_OUT = (
    "`top` shows what runs, and `nvidia-smi` what is on the GPUs; end or pause it, or interrupt this and give the same "
    "command later: what is measured is kept"
)


def worst_level(record: TrialRecord) -> tuple[str, Others] | None:
    """Return the level of a launch at which others took most, with what they took; None where nothing was missed."""
    found = [(level, others) for level, others in record.others.items() if others.noticeable]
    return max(found, key=lambda one: _taken(one[1]), default=None)


def busy_remark(record: TrialRecord) -> str | None:
    """Return what to tell while the study runs, without a full stop; None where there is nothing to tell."""
    worst = worst_level(record)
    if worst is None:
        return None
    level, others = worst
    return f"this machine is busy: others used {others} while {level} was measured, and figures scatter; {WAY_OUT}"


def summary_of(records: Sequence[TrialRecord]) -> str | None:
    """Return how many launches were measured beside other work, and what the worst of them missed; None for none."""
    measured = [record for record in records if record.levels]
    found = [(record, worst) for record in measured if (worst := worst_level(record)) is not None]
    if not found:
        return None
    record, (level, others) = max(found, key=lambda one: _taken(one[1][1]))
    return (
        f"made beside other work: {len(found)} of {count(len(measured), 'launch')}; others used up to {others} "
        f"(launch {record.trial}, {level}); their figures scatter more than the engine's would alone"
    )


def blamed(records: Sequence[TrialRecord], evidence: Evidence) -> str | None:
    """Return the same where a reader asks why the answer is vague: undecided, or launches scatter more than assumed.

    Args:
        records: All launches of the study.
        evidence: What they say.
    """
    vague = evidence.recommended is None or evidence.verdict.overall.decision == "undecided"
    if not vague and evidence.line.noise.relative_sd <= ASSUMED_SD:
        return None
    found = summary_of(records)
    return None if found is None else f"{found}; the same study on a quiet machine tells more"


def _taken(others: Others) -> tuple[int, float]:
    return max(others.on_gpus.values(), default=0), others.cores.others if others.cores is not None else 0.0
