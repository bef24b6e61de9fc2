"""What a study has on record of a candidate, as it counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spectune.analysis.launch_noise import LaunchNoise, launch_noise
from spectune.search.evidence.outcome import Evidence
from spectune.search.evidence.speeds import Speed, by_candidate
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate


def best_baseline(evidence: Evidence) -> Candidate | None:
    """Return the configuration without speculation that the verdict compares with; None where none was measured."""
    overall = evidence.verdict.overall
    wanted = overall.comparisons[0].baseline_id if overall.comparisons else overall.recommended
    return next((r.candidate for r in evidence.records if r.candidate.candidate_id == wanted), None)


def pooled_noise(sides: Iterable[Sequence[TrialRecord]], speed: Speed) -> LaunchNoise:
    """Return how much launches of a candidate differ within each side, launches of searches left out.

    What lies between the sides is the question, and must not count as noise.
    """
    groups = []
    for records in sides:
        kept = [record for record in records if record.role is not Role.SEARCH]
        groups += [[v for record in g if (v := speed(record)) is not None] for g in by_candidate(kept).values()]
    return launch_noise(groups)
