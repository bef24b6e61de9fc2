"""Which candidates the launches cannot tell from the one that is recommended."""

from __future__ import annotations

from collections.abc import Sequence

from spectune.analysis.comparison import Comparison, compare
from spectune.analysis.verdict import Question, by_candidate


def ties(question: Question, recommended: str, *, judged: Sequence[Comparison] = ()) -> tuple[Comparison, ...]:
    """Return the candidates that are not shown to be slower than the recommended one.

    Those that were relaunched come first, among them what the verdict rests on, then the fastest. Each of its branch is
    compared with it by the plain 95 % interval of a pair. What was launched once, in the search, has a wide one, and
    being picked from many may even seem faster. Who was not measured long enough has one without ends, so nothing tells
    it apart. Those of the other branch were compared with this one by the verdict: a ratio has one interval.

    Args:
        question: The launches, with the noise between them.
        recommended: Its id.
        judged: The verdict's comparisons, where it left open which branch is faster.
    """
    groups = by_candidate(question.launches)
    mine = groups.pop(recommended, None)
    if mine is None:
        return ()
    own = [group for group in groups.values() if group[0].speculates is mine[0].speculates]
    compared = [*(compare(question.level, group, mine, question.noise) for group in own), *judged]
    near = [one for one in compared if one.judged.hi >= 1.0]
    return tuple(sorted(near, key=lambda one: (one.candidate_id not in question.confirmed, -one.log_ratio)))
