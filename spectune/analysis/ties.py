"""Which candidates the launches cannot tell from the one that is recommended."""

from __future__ import annotations

from spectune.analysis.comparison import Comparison, compare
from spectune.analysis.verdict import Question, by_candidate


def ties(question: Question, recommended: str, *, across: bool = False) -> tuple[Comparison, ...]:
    """Return the candidates that are not shown to be slower than the recommended one.

    Each is compared with it by the plain 95 % interval of a pair. What was launched once, in the search, has a wide
    one, and being picked from many may even seem faster. Who was not measured long enough has none.

    Args:
        question: The launches, with the noise between them.
        recommended: Its id.
        across: Whether the other branch is asked about, too: where the verdict left open which of them is faster.
    """
    groups = by_candidate(question.launches)
    mine = groups.pop(recommended, None)
    if mine is None:
        return ()
    others = [group for group in groups.values() if across or group[0].speculates is mine[0].speculates]
    compared = [compare(question.level, group, mine, question.noise) for group in others]
    near = [one for one in compared if one.long_enough and one.speedup.hi >= 1.0]
    return tuple(sorted(near, key=lambda one: -one.log_ratio))
