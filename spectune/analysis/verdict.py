"""Speculation, no speculation, a tie, or not yet decided: the rules and their words.

The best speculation is compared with the *best* baseline. Candidates that were relaunched beside the baseline after
they had been picked (confirmed ones) decide alone, each with its plain 95 % interval. Where nothing was confirmed all
candidates decide, and since the best of k noisy figures is partly luck, "pays" is then asked for at the stricter
quantile 1 − 0.05/(2k) (Bonferroni); likewise where the question is asked for the k-th time, because it was undecided
before and more pairs were launched. That *no* candidate pays needs all of them to fail, each at the plain quantile (an
intersection-union test, Berger 1982). Rules, in this order:

- speculation: a candidate is shown to be faster than the best baseline, and may be faster by more than the tie margin;
- no_speculation: all are shown to be slower;
- tie: all are shown to be less than the tie margin faster;
- undecided: the interval of the best still holds both a loss and a gain that matters (`pairs` says how many more
  launches would decide), or such launches cannot show what it says, however many there are (`Question.unproven`).

What is recommended is one of those that decide, in either branch: of the candidates that pay, or of the baselines where
speculation is not shown to pay. Which one is said by `preference`, from all their launches; its speedup by those that
were made after it was picked alone, drawn together with those of the finalists it was chosen from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from spectune.analysis.best_baseline import Branch, Known, Seen, believed
from spectune.analysis.comparison import Comparison, LaunchSpeed, Pays, compare, known, mean_log, pays
from spectune.analysis.launch_noise import LaunchNoise
from spectune.analysis.preference import TIE_MARGIN, preferred
from spectune.counts import count

Decision = Literal["speculation", "no_speculation", "tie", "undecided"]

TOO_SHORT = "not measured long enough"
_NEVER = frozenset[str]()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked by one figure.

    Attributes:
        level: What was measured, for the words.
        launches: All launches that may be compared, baselines and candidates.
        noise: Launch noise of this figure.
        confirmed: Ids of configurations whose launches here were all made after they had been picked.
        earlier: Launches of those made before: they say only how the configurations of a branch differ from each other.
        looks: How often it is asked of these launches: again, where it was undecided and more of them were made.
        counted: What the figure is made of, in words; empty where it is the decode speed of one request: it alone has a
            break-even in accept length.
        missing: Why a branch has no launches, where some were measured; empty where none was.
        unproven: What such launches cannot show, with the reason: a gain over a baseline that was held back, say.
    """

    level: str
    launches: Sequence[LaunchSpeed]
    noise: LaunchNoise
    confirmed: AbstractSet[str] = _NEVER
    earlier: Sequence[LaunchSpeed] = ()
    looks: int = 1
    counted: str = ""
    missing: str = ""
    unproven: Mapping[Pays, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision by one figure.

    Attributes:
        level: Where it was measured: a load point, or an objective.
        decision: The decision.
        recommended: Candidate to run, one without speculation unless that is shown to pay, and of those of its branch
            that were confirmed, where any was; None without a baseline.
        detectable_effect: Smallest relative gain these launches could have shown (0.05 = 5 %); infinite without any.
        comparisons: All candidates, the ones that decide first, fastest first.
        words: The decision and its reason.
        unproven: Why it is undecided although the intervals are not; empty where they are, or it is decided.
    """

    level: str
    decision: Decision
    recommended: str | None
    detectable_effect: float
    comparisons: tuple[Comparison, ...]
    words: str
    unproven: str = ""

    @property
    def best(self) -> Comparison | None:
        """The comparison the decision rests on: that of the recommended candidate, otherwise of the fastest."""
        found = (one for one in self.comparisons if one.candidate_id == self.recommended)
        return next(found, self.comparisons[0] if self.comparisons else None)


def judge(question: Question) -> Judgement:
    """Decide by one figure."""
    level, noise, confirmed = question.level, question.noise, question.confirmed
    groups = by_candidate(question.launches)
    plain = [group for group in groups.values() if not group[0].speculates]
    candidates = [group for group in groups.values() if group[0].speculates]
    if not plain:
        words = f"{level}: undecided, {question.missing or 'no baseline was measured'}"
        return Judgement(level, "undecided", None, math.inf, (), words)
    baselines = {group[0].candidate_id: group for group in _deciding(plain, confirmed)}
    baseline = max(baselines.values(), key=mean_log)
    without = _branch(plain, question)
    simplicity = {group[0].candidate_id: group[0].simplicity for group in groups.values()}
    recommended = preferred(without, {name: simplicity[name] for name in baselines}, noise.dof)
    if not candidates:
        words = f"{level}: undecided, {question.missing or 'no speculative candidate was measured'}"
        return Judgement(level, "undecided", recommended, math.inf, (), words)
    deciding = {group[0].candidate_id for group in _deciding(candidates, confirmed)}
    finalists = _finalists(candidates, question)
    compared = [
        compare(
            level,
            group,
            baseline,
            noise,
            own=finalists.get(group[0].candidate_id),
            best=without.largest if baseline[0].candidate_id in confirmed else None,
            picked_from=question.looks if group[0].candidate_id in confirmed else len(candidates),
            unproven=question.unproven,
        )
        for group in candidates
    ]
    compared.sort(key=lambda one: (one.candidate_id not in deciding, -one.log_ratio))
    asked = compared[: len(deciding)]
    decision, top = _decision(asked), asked[0]
    unproven = question.unproven.get(_SHOWN[decision], "")
    if unproven:
        decision = "undecided"
    if decision == "speculation":
        paying = {one.candidate_id: one for one in asked if _pays(one)}
        recommended = preferred(_branch(candidates, question), {name: simplicity[name] for name in paying}, noise.dof)
        top = paying[recommended]
    words = _words(question, decision, top, unproven)
    return Judgement(level, decision, recommended, top.detectable_effect, tuple(compared), words, unproven)


def _finalists(candidates: Sequence[list[LaunchSpeed]], question: Question) -> dict[str, Known]:
    """Return what the launches that were made after they had been picked say of the finalists, drawn together.

    The first of them chose which finalist goes on, so that its own were lucky once more. What is expected of it, given
    how much finalists may differ, holds however it was chosen (Dawid, *Selection paradoxes of Bayesian inference*,
    1994). The search says nothing here: by its luck they are finalists.
    """
    told = {group[0].candidate_id: known(group, question.noise) for group in candidates}
    seen = {name: Seen(None, one) for name, one in told.items() if name in question.confirmed}
    if not seen:
        return {}
    branch = believed(seen)
    return {name: branch.known(name) for name in seen}


def _branch(groups: Sequence[list[LaunchSpeed]], question: Question) -> Branch:
    """Return what all launches of a branch say of its configurations."""
    told = {group[0].candidate_id: known(group, question.noise) for group in groups}
    again = {name: one for name, one in told.items() if name in question.confirmed}
    if not again:
        return believed({name: Seen(None, one) for name, one in told.items()})
    before = {name: known(group, question.noise) for name, group in by_candidate(question.earlier).items()}
    once = {name: before.get(name) if name in again else one for name, one in told.items()}
    return believed({name: Seen(once[name], again.get(name)) for name in told})


def by_candidate(launches: Sequence[LaunchSpeed]) -> dict[str, list[LaunchSpeed]]:
    """Return the launches of each configuration."""
    groups: dict[str, list[LaunchSpeed]] = {}
    for launch in launches:
        groups.setdefault(launch.candidate_id, []).append(launch)
    return groups


def _deciding(groups: Sequence[list[LaunchSpeed]], confirmed: AbstractSet[str]) -> list[list[LaunchSpeed]]:
    """Return the confirmed configurations that stayed to the end: none was launched two times more; all without any."""
    relaunched = [group for group in groups if group[0].candidate_id in confirmed]
    most = max(map(len, relaunched), default=0)
    return [group for group in relaunched if len(group) >= most - 1] or list(groups)


def _decision(asked: Sequence[Comparison]) -> Decision:
    if any(map(_pays, asked)):
        return "speculation"
    if all(one.speedup.hi < 1.0 for one in asked):
        return "no_speculation"
    return "tie" if all(one.speedup.hi < 1.0 + TIE_MARGIN for one in asked) else "undecided"


def _pays(one: Comparison) -> bool:
    return pays(one.judged) == "pays" and one.speedup.hi >= 1.0 + TIE_MARGIN


def _words(question: Question, decision: Decision, best: Comparison, unproven: str) -> str:
    shown = best.judged
    known = f"{shown.lo:.3f}–{shown.hi:.3f}" if best.long_enough else TOO_SHORT
    needed = f"accept length {best.accept_length:.2f}, break-even {best.break_even:.2f}"
    counts = f"what counts is {question.counted}" if question.counted else needed
    lead = _LEAD[decision] if best.long_enough or decision != "undecided" else _UNMEASURED
    lead = f"undecided: {unproven}" if unproven else lead
    figures = f"{best.candidate_id} runs at {shown.est:.3f} × the best baseline ({known}), {counts}"
    return f"{question.level}: {lead}; {figures}; {_power(best)}"


def _power(best: Comparison) -> str:
    """Return what these launches could tell: "with 5 pairs 5 %, not 2 %"."""
    effect, pairs = best.detectable_effect, min(best.launches)
    if not math.isfinite(effect):
        return "these launches could tell nothing from noise"
    told = f"with {count(pairs, 'pair')} of launches {effect:.1%} can be told from noise"
    return f"{told}, not {effect / 2:.1%}" if effect > TIE_MARGIN else told


_LEAD: dict[Decision, str] = {
    "speculation": "speculation pays",
    "no_speculation": "speculation does not pay, not even the fastest candidate",
    "tie": f"a tie: no candidate is {TIE_MARGIN:.0%} faster, so the simpler engine without speculation wins",
    "undecided": "undecided: do without speculation until more launches show that it pays",
}
_SHOWN: dict[Decision, Pays] = {
    "speculation": "pays", "no_speculation": "loses", "tie": "loses", "undecided": "unclear",
}  # fmt: skip
_UNMEASURED = "undecided: do without speculation until levels measured for longer show that it pays"
