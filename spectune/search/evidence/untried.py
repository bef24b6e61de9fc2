"""What a study has not launched that its verdict would need: settings inside CUDA graphs, and drafters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spectune.analysis.comparison import Pays
from spectune.search.evidence.graph_cover import best_covered, outside_graphs
from spectune.search.evidence.speeds import by_candidate
from spectune.search.storage.records import Launch, TrialRecord
from spectune.search.storage.steps import Step
from spectune.search.storage.values import measured_values, score
from spectune.space import DRAFTER, Candidate, SearchSpace, text_of
from spectune.space.labels import drafter_name


@dataclass(frozen=True)
class Uncovered:
    """A drafter, or doing without, that was measured outside CUDA graphs alone, where the space lists graphs for it.

    Attributes:
        candidate: The fastest of those launched.
        levels: Those at which none of them ran in graphs.
        missing: The same with graphs that cover most of these, never launched.
    """

    candidate: Candidate
    levels: tuple[str, ...]
    missing: Candidate

    @property
    def unproven(self) -> Pays:
        """What its speeds cannot show."""
        return "loses" if self.candidate.speculative else "pays"

    @property
    def words(self) -> str:
        """Return why, in a clause."""
        speculative, drafter = self.candidate.speculative, self.candidate.drafter
        name = self.candidate.algorithm if drafter is None else drafter_name(drafter)
        whose, seems = (f"with {name}", "loss") if speculative else ("without speculation", "gain")
        was, them = ("was", "it") if len(self.levels) == 1 else ("were", "them")
        return (
            f"{whose} {' and '.join(self.levels)} {was} measured outside CUDA graphs alone, though the space lists "
            f"graphs that cover {them}, so a {seems} may be that of the graphs"
        )


def uncovered(records: Sequence[TrialRecord], space: SearchSpace, begun: Sequence[Step] = ()) -> list[Uncovered]:
    """Return them, doing without first.

    Args:
        records: All launches.
        space: Their search space.
        begun: Those that are being made.
    """
    kinds: dict[tuple[object, object], list[Launch]] = {}
    tried = [one for one in records if one.failure is None or one.failure.failure_class.blames_candidate]
    launches: Sequence[Launch] = (*tried, *begun)
    for one in launches:
        kinds.setdefault(_kind(one.candidate), []).append(one)
    found = [_uncovered(launches, space) for launches in kinds.values()]
    return sorted((one for one in found if one is not None), key=lambda one: one.candidate.speculative)


def unlaunched(records: Sequence[Launch], space: SearchSpace) -> tuple[str, ...]:
    """Return the drafters of the space that no launch was made of."""
    parameter = space.parameters.get(DRAFTER)
    launched = {record.candidate.drafter for record in records}
    return () if parameter is None else tuple(one for one in map(text_of, parameter.values) if one not in launched)


def unproven(found: Sequence[Uncovered], levels: Collection[str]) -> Mapping[Pays, str]:
    """Return what cannot be shown at some levels, with the reason."""
    return {one.unproven: one.words for one in reversed(found) if not set(one.levels).isdisjoint(levels)}


def _kind(candidate: Candidate) -> tuple[object, object]:
    return candidate.algorithm, candidate.drafter


def _uncovered(launches: Sequence[Launch], space: SearchSpace) -> Uncovered | None:
    """Return what was never run in graphs; a launch whose failure was its own has shown that they do not run."""
    measured = [one for one in launches if isinstance(one, TrialRecord) and measured_values(one, space) is not None]
    if not measured:
        return None
    never = [level for level in outside_graphs(measured[0].candidate.values, space)
             if all(_outside(one, level, space) for one in launches)]  # fmt: skip
    if not never:
        return None
    groups = by_candidate(measured)
    fastest = max(groups, key=lambda one: sum(score(record, space) for record in groups[one]) / len(groups[one]))
    launched = {one.candidate for one in launches}
    for values in best_covered(fastest.values, space):
        missing, left = Candidate.of(values), outside_graphs(values, space)
        covered = tuple(level for level in never if level not in left)
        if covered and missing not in launched and space.forbidden(missing) is None:
            return Uncovered(fastest, covered, missing)
    return None


def _outside(launch: Launch, level: str, space: SearchSpace) -> bool:
    """Whether a launch ran a level outside graphs, or would have."""
    measured = launch.level(level) if isinstance(launch, TrialRecord) else None
    if measured is not None and measured.graph_used:
        return False
    return level in outside_graphs(launch.candidate.values, space)
