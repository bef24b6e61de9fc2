"""Failed launches by what went wrong, in the log's own words."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.report.material import Material
from spectune.report.sections.section import Section


@dataclass(frozen=True)
class Failed:
    """One failed launch."""

    trial: int
    label: str
    message: str
    excerpt: str


@dataclass(frozen=True)
class FailureGroup:
    """All launches that failed for one reason."""

    name: str
    launches: tuple[Failed, ...]


def failures(material: Material) -> Section | None:
    """Return failed launches, the most frequent class first; None where nothing failed."""
    groups: dict[str, list[Failed]] = {}
    for trial in material.trials:
        if (failure := trial.failure) is not None:
            label = material.labels[trial.candidate.candidate_id]
            failed = Failed(trial.trial, label, failure.message, failure.excerpt)
            groups.setdefault(failure.failure_class, []).append(failed)
    if not groups:
        return None
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return Section("failures", "What failed", tuple(FailureGroup(name, tuple(found)) for name, found in ranked))
