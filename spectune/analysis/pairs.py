"""How many more pairs of launches would decide what those made left open.

The true ln ratio is, by the launches made, normal around their own with their error e; what n more pairs would show is
then normal around it, too, with the variance e² − e'² (or e² + e'² where they start anew), e' being the error with all
of them. They decide where the interval that `verdict` would form of them leaves out a loss, or a gain that matters. The
chance of that is the assurance of a sample size (Spiegelhalter, Abrams and Myles, *Bayesian Approaches to Clinical
Trials*, section 6.5): the ratio that was seen is not taken for the true one, which would promise a decision that comes
every other time.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import replace
from statistics import NormalDist, fmean

from spectune.analysis.comparison import Comparison, LaunchSpeed, mean_log
from spectune.analysis.estimate import NORMAL_95, Estimate
from spectune.analysis.launch_noise import within_launch_variance
from spectune.analysis.preference import TIE_MARGIN
from spectune.analysis.verdict import Judgement, Question, judge

LIKELY = 0.8
"""Chance of a decision that is worth the launches: the usual power of a test."""
MOST_PAIRS = 50
"""More than so many launches of the same two is no longer within reason."""


def pairs_to_decide(question: Question, judged: Judgement) -> int | None:
    """Return the fewest more pairs of the best candidate and baseline that would likely decide.

    Args:
        question: What was asked.
        judged: What was found.

    Returns:
        0 where it is decided, where there is nothing to compare, or where such launches cannot show it; None where not
        even `MOST_PAIRS` would do, or where levels were not measured long enough: then more of the same is no help.
    """
    best = judged.best
    if judged.decision != "undecided" or judged.unproven or best is None:
        return 0
    if not best.long_enough:
        return None
    pairs = 1 + bisect.bisect_left(range(1, MOST_PAIRS + 1), LIKELY, key=lambda more: _chance(question, best, more))
    return pairs if pairs <= MOST_PAIRS else None


def _chance(question: Question, best: Comparison, pairs: int) -> float:
    """Return the chance that so many more pairs decide."""
    goes_on = {best.candidate_id, best.baseline_id} <= question.confirmed
    after = _after(question, best, pairs, goes_on=goes_on)
    strict, plain = (math.log(found.est / found.lo) for found in (after.judged, after.speedup))
    spread = math.sqrt(max(best.error**2 + (-1.0 if goes_on else 1.0) * after.error**2, 1e-12))
    pays = NormalDist().cdf((best.log_ratio - strict) / spread)
    does_not = NormalDist().cdf((math.log1p(TIE_MARGIN) - plain - best.log_ratio) / spread)
    return min(1.0, pays + does_not)


def _after(question: Question, best: Comparison, pairs: int, *, goes_on: bool) -> Comparison:
    """Return the comparison with so many more pairs, were all of them like the launches made."""
    both = best.candidate_id, best.baseline_id
    kept = [one for one in question.launches if goes_on or one.candidate_id not in both]
    more = [_typical([one for one in question.launches if one.candidate_id == name]) for name in both]
    dof = question.noise.dof + 2 * (pairs if goes_on else pairs - 1)
    later = replace(
        question,
        launches=[*kept, *more * pairs],
        noise=replace(question.noise, dof=dof),
        confirmed=question.confirmed | set(both),
        looks=question.looks + 1 if goes_on else 1,
    )
    return next(one for one in judge(later).comparisons if one.candidate_id == best.candidate_id)


def _typical(group: list[LaunchSpeed]) -> LaunchSpeed:
    within = math.sqrt(fmean(within_launch_variance(launch.speed) for launch in group))
    return replace(group[0], speed=Estimate.exactly(math.exp(mean_log(group))).blurred(NORMAL_95 * within))
