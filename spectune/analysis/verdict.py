"""Speculation, no speculation, a tie, or not yet decided: the comparison, its arithmetic and its words.

Method. At every level the candidate's speed is divided by that of the best baseline of the level. Both are means of
ln speed over their launches; the variance of a mean is the launch noise over the number of launches plus the within-
launch variance (half-width / 1.96, squared) averaged over the launches. The interval of the speedup is exp(ln ratio ±
t·√(sum of both variances)) with the degrees of freedom of the launch noise. Because the best of k candidates is
picked, whether speculation pays is judged at the stricter quantile 1 − 0.05/(2k) (Bonferroni); a candidate whose
launches were all made after it had been picked needs no such allowance. That *no* candidate pays needs all of them to
fail, each at the plain quantile (an intersection-union test, Berger 1982). Break-even is accept
length / speedup, so that accept length > break-even and speedup > 1 are the same statement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from spectune.analysis.break_even import break_even_from_speedup
from spectune.analysis.estimate import Estimate
from spectune.analysis.launch_noise import LaunchNoise, launch_noise
from spectune.bench.precision import t_quantile

Decision = Literal["speculation", "no_speculation", "tie", "undecided"]

TIE_MARGIN = 0.01
"""Speeds within 1 % of each other are a tie: less than that is not worth a more complicated engine."""
_ALPHA = 0.05
_STRONGEST_FIRST: tuple[Decision, ...] = ("speculation", "undecided", "tie", "no_speculation")


@dataclass(frozen=True, slots=True)
class LaunchSpeed:
    """One launch of one configuration at one level.

    Attributes:
        candidate_id: Launches with the same id are repeats of each other.
        level: Name of the load point.
        speed: The figure compared at this level (decode speed or output throughput), with the interval within the
            launch.
        accept_length: Mean tokens per verify; 1.0 for a baseline.
        num_steps: Draft steps (S); 0 where there are none (baselines, n-gram lookup).
        eagle_topk: Branches per step (K); likewise.
        num_draft_tokens: Tokens verified (N); at most 1 means no speculation.
    """

    candidate_id: str
    level: str
    speed: Estimate
    accept_length: float = 1.0
    num_steps: int = 0
    eagle_topk: int = 0
    num_draft_tokens: int = 0

    @property
    def speculates(self) -> bool:
        """Whether anything is drafted; otherwise this is a baseline."""
        return self.num_draft_tokens > 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against the best baseline of one level.

    Attributes:
        candidate_id: The candidate.
        level: The level.
        baseline_id: The best baseline there.
        speedup: Speed over that of the baseline, 95 % interval for this pair alone.
        judged: The same with the interval that allows for the number of candidates it was picked from.
        accept_length: Mean over the launches.
        break_even: Accept length at which it would be as fast as the baseline.
        launches: Launches of the candidate.
        simplicity: Sort key, simpler first: (S, K, N).
    """

    candidate_id: str
    level: str
    baseline_id: str
    speedup: Estimate
    judged: Estimate
    accept_length: float
    break_even: float
    launches: int
    simplicity: tuple[int, int, int]

    @property
    def verdict(self) -> Literal["pays", "loses", "unclear"]:
        """Whether it is shown to be faster than the baseline, to be slower, or neither."""
        if self.judged.lo > 1.0:
            return "pays"
        return "loses" if self.speedup.hi < 1.0 else "unclear"


@dataclass(frozen=True, slots=True)
class LevelVerdict:
    """The decision at one level.

    Attributes:
        level: The level.
        decision: The decision.
        recommended: Candidate to run; the baseline unless speculation is shown to pay.
        detectable_effect: Smallest relative gain this evidence could have shown (0.05 = 5 %); infinite without any.
        comparisons: All candidates, fastest first.
        words: The decision and its reason.
    """

    level: str
    decision: Decision
    recommended: str | None
    detectable_effect: float
    comparisons: tuple[Comparison, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision over all levels.

    Attributes:
        decision: "speculation" when it pays at one level at least; otherwise "undecided" when a level is, else "tie"
            when a level is, else "no_speculation".
        detectable_effect: The largest of the levels.
        noise: Launch noise and its source.
        levels: One entry per level, in the order given.
        words: A sentence per level, and the noise.
    """

    decision: Decision
    detectable_effect: float
    noise: LaunchNoise
    levels: tuple[LevelVerdict, ...]
    words: tuple[str, ...]


def decide(
    levels: Sequence[str],
    launches: Sequence[LaunchSpeed],
    noise: LaunchNoise | None = None,
    *,
    confirmed: AbstractSet[str] = frozenset(),
) -> Verdict:
    """Judge every level and the whole.

    Args:
        levels: The levels that count, usually those of the objectives.
        launches: All good launches, baselines and candidates; suspect ones are left out by the caller.
        noise: Launch noise; estimated from the repeats among `launches` by default.
        confirmed: Ids of candidates whose launches here were all made after they had been picked.
    """
    groups: dict[tuple[str, str], list[LaunchSpeed]] = {}
    for launch in launches:
        groups.setdefault((launch.level, launch.candidate_id), []).append(launch)
    known = noise or launch_noise([[launch.speed.est for launch in group] for group in groups.values()])
    judged = tuple(
        _judge(level, [group for (at, _), group in groups.items() if at == level], known, confirmed) for level in levels
    )
    decisions = {verdict.decision for verdict in judged}
    overall = next((decision for decision in _STRONGEST_FIRST if decision in decisions), _STRONGEST_FIRST[1])
    effect = max((verdict.detectable_effect for verdict in judged), default=math.inf)
    return Verdict(overall, effect, known, judged, (*(verdict.words for verdict in judged), known.source))


def compare(
    group: Sequence[LaunchSpeed], baseline: Sequence[LaunchSpeed], noise: LaunchNoise, *, picked_from: int = 1
) -> Comparison:
    """One candidate's launches against one baseline's at the same level.

    Args:
        group: The candidate's launches.
        baseline: The baseline's.
        noise: Launch noise.
        picked_from: Number of candidates of which this one may have been picked for these very launches.
    """
    first = group[0]
    speedup = _speedup(group, baseline, noise, t_quantile(1.0 - _ALPHA / 2.0, noise.dof))
    accept_length = fmean(launch.accept_length for launch in group)
    return Comparison(
        candidate_id=first.candidate_id,
        level=first.level,
        baseline_id=baseline[0].candidate_id,
        speedup=speedup,
        judged=_speedup(group, baseline, noise, t_quantile(1.0 - _ALPHA / (2.0 * picked_from), noise.dof)),
        accept_length=accept_length,
        break_even=break_even_from_speedup(accept_length, speedup.est),
        launches=len(group),
        simplicity=(first.num_steps, first.eagle_topk, first.num_draft_tokens),
    )


def _judge(
    level: str, groups: Sequence[Sequence[LaunchSpeed]], noise: LaunchNoise, confirmed: AbstractSet[str]
) -> LevelVerdict:
    baselines = [group for group in groups if not group[0].speculates]
    candidates = [group for group in groups if group[0].speculates]
    if not baselines:
        return LevelVerdict(level, "undecided", None, math.inf, (), f"{level}: undecided, no baseline was measured")
    baseline = max(baselines, key=_mean_log)
    baseline_id = baseline[0].candidate_id
    if not candidates:
        words = f"{level}: undecided, no speculative candidate was measured"
        return LevelVerdict(level, "undecided", baseline_id, math.inf, (), words)
    ranked = sorted(candidates, key=_mean_log, reverse=True)
    compared = tuple(
        compare(group, baseline, noise, picked_from=1 if group[0].candidate_id in confirmed else len(candidates))
        for group in ranked
    )
    best = next((one for one in compared if one.candidate_id in confirmed), compared[0])
    effect = best.judged.est / best.judged.lo - 1.0 if best.judged.lo > 0.0 else math.inf
    decision = _decision(compared)
    if decision == "speculation":
        proven = [one for one in compared if one.verdict == "pays"]
        near = [one for one in proven if one.speedup.est >= max(p.speedup.est for p in proven) * (1.0 - TIE_MARGIN)]
        best = min(near, key=lambda one: (one.simplicity, one.candidate_id))
    recommended = best.candidate_id if decision == "speculation" else baseline_id
    return LevelVerdict(level, decision, recommended, effect, compared, _words(level, decision, best, effect))


def _decision(compared: Sequence[Comparison]) -> Decision:
    if any(one.verdict == "pays" for one in compared):
        return "speculation"
    if all(one.speedup.hi < 1.0 for one in compared):
        return "no_speculation"
    if all(one.speedup.hi < 1.0 + TIE_MARGIN for one in compared):
        return "tie"
    return "undecided"


def _speedup(
    group: Sequence[LaunchSpeed], baseline: Sequence[LaunchSpeed], noise: LaunchNoise, quantile: float
) -> Estimate:
    log_ratio = _mean_log(group) - _mean_log(baseline)
    half = quantile * math.sqrt(_variance(group, noise) + _variance(baseline, noise))
    return Estimate(math.exp(log_ratio), math.exp(log_ratio - half), math.exp(log_ratio + half))


def _mean_log(group: Sequence[LaunchSpeed]) -> float:
    return fmean(math.log(launch.speed.est) for launch in group)


def _variance(group: Sequence[LaunchSpeed], noise: LaunchNoise) -> float:
    """Of the mean of ln speed over the launches of one configuration."""
    within = fmean(min(launch.speed.relative_half_width / 1.96, 1.0) ** 2 for launch in group)
    return (noise.relative_sd**2 + within) / len(group)


def _words(level: str, decision: Decision, best: Comparison, effect: float) -> str:
    figures = (
        f"{best.candidate_id} runs at {best.speedup.est:.3f} × the best baseline "
        f"({best.speedup.lo:.3f}–{best.speedup.hi:.3f}), accept length {best.accept_length:.2f}, "
        f"break-even {best.break_even:.2f}"
    )
    return f"{level}: {_LEAD[decision]}; {figures}; effects from {effect:.1%} could be told from noise here"


_LEAD: dict[Decision, str] = {
    "speculation": "speculation pays",
    "no_speculation": "speculation does not pay, not even the fastest candidate",
    "tie": f"a tie: no candidate is {TIE_MARGIN:.0%} faster, so the simpler engine without speculation wins",
    "undecided": "undecided, more launches are needed; until then do without speculation",
}
