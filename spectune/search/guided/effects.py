"""What each searched parameter does, with an interval, "makes no difference" and "unknown" included.

The question is what another value does instead of the best candidate's, all else equal as far as that is legal
(`neighbours`), on average over the best candidates that were launched: those of the recommended branch, for draft
parameters those with speculation. The answer is a contrast of predictions: what the fitted acceptance and cycle models
expect, plus the Gaussian process on what these leave over, whose posterior covariance gives the interval. So an effect
that no launch could have shown keeps its doubt, and launches that differ in several parameters share what they show.
Where no two launches differ in just that, the effect is a prediction, and says so. The deviations are widened by how
far each launch lies from what all others predict of it (leave-one-out errors of the process), never narrowed; by how
much more launches of one candidate differ than the process takes for noise; and by a part of what the law of trees
expects, which random machines broke.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spectune.analysis.estimate import Estimate
from spectune.engines.protocol import Engine
from spectune.search.evidence.noise import scatter_of
from spectune.search.evidence.setting import RELEVANT, Setting
from spectune.search.evidence.speeds import of_objective
from spectune.search.guided.drafts import Drafts
from spectune.search.guided.encoding import Axis, encode
from spectune.search.guided.evidence import Evidence, evidence_of
from spectune.search.guided.kernel import Components, Spreads
from spectune.search.guided.landscape import UNEXPLAINED
from spectune.search.guided.neighbours import Changes, Question, questions
from spectune.search.guided.physics import Physics, Target, Works, targets_of
from spectune.search.guided.residual import Residual
from spectune.search.storage.records import TrialRecord
from spectune.space import Candidate, Objective, SearchSpace, Value, text_of

Floats = npt.NDArray[np.float64]
Basis = Literal["launches", "prediction", "nothing"]

LEAST_LAUNCHES = 3  # different candidates; fewer leave nothing to tell effects apart with
LEAST_INFLATION = 1.5  # of the deviations: beliefs are narrower than truth where a machine has laws of its own
NO_DIFFERENCE = 0.02  # an interval within this much of nothing is none
NEVER_SEEN = 0.15  # standard deviation of the log effect of what no launch has varied
TREE_LAW = 0.5  # part of what trees are expected to add for their shape that may be wrong whatever was launched
LARGEST = math.log(1000.0)  # of log effects: no value changes a figure by a larger factor
Z95 = 1.96


@dataclass(frozen=True)
class Effect:
    """What one value does instead of another to one objective.

    Attributes:
        parameter: Its name.
        speculates: Whether the candidates that it is changed in do: with speculation it may do something else.
        value: What it is changed to.
        against: Its value in the best candidate of the branch.
        together: What has to change with it for the launch to be legal: name → value now and before.
        objective: The metric.
        level: Where it is measured.
        change: Of the metric, relative: 0.05 is 5 % more of it.
        basis: "launches" where two that were measured differ in just this, "prediction" where what the models know of
            it comes from launches that differ in more, "nothing" where nothing is known.
        says: The same in words.
    """

    parameter: str
    speculates: bool
    value: Value
    against: Value
    together: Changes
    objective: str
    level: str
    change: Estimate
    basis: Basis
    says: str

    @property
    def among(self) -> str:
        """Which candidates it is changed in."""
        return f"the best candidates {'with' if self.speculates else 'without'} speculation"

    @property
    def instead(self) -> str:
        """The change in words: `4 instead of 5 (with speculative-num-draft-tokens 5 instead of 6)`."""
        beside = ", ".join(_beside(name, now, before) for name, (now, before) in self.together.items())
        return f"{text_of(self.value)} instead of {text_of(self.against)}" + (f" ({beside})" if beside else "")

    def to_json(self) -> dict[str, Any]:
        """Return an entry of `effects` in `summary.json`."""
        return {
            "parameter": self.parameter, "speculates": self.speculates,
            "value": _plain(self.value), "against": _plain(self.against),
            "together": {name: [_plain(now), _plain(before)] for name, (now, before) in self.together.items()},
            "instead": self.instead, "objective": self.objective, "level": self.level,
            "effect": self.change.to_json(), "basis": self.basis, "says": self.says,
        }  # fmt: skip


def effects(
    records: Sequence[TrialRecord], space: SearchSpace, recommended: Candidate | None, rules: Engine
) -> list[Effect]:
    """Return the effect of every other value that the best candidate may have, objective by objective.

    Args:
        records: Launches that can be compared with each other.
        space: Their search space.
        recommended: The candidate the study recommends; None when there is none.
        rules: What is legal.
    """
    measured = [item for item in evidence_of(records, space) if item.targets is not None]
    if len({item.candidate for item in measured}) < LEAST_LAUNCHES or recommended is None:
        return []
    ranked = sorted(measured, key=lambda item: -sum((item.targets or ())[: len(space.objectives)]))
    best = list(dict.fromkeys([recommended, *(item.candidate for item in ranked)]))
    asked = list(questions(best, space, rules))
    if not asked:
        return []
    targets = targets_of(space)[: len(space.objectives)]
    noise = np.array([scatter_of(records, of_objective(objective)) for objective in space.objectives])
    logs, deviations = _differences(asked, measured, targets, space, noise)
    return [
        _answered(question, measured, objective, float(logs[row, column]), float(deviations[row, column]))
        for column, question in enumerate(asked)
        for row, objective in enumerate(space.objectives)
    ]


def _differences(
    questions: Sequence[Question],
    measured: Sequence[Evidence],
    targets: Sequence[Target],
    space: SearchSpace,
    noise: Floats,
) -> tuple[Floats, Floats]:
    """Return the log differences and their standard deviations, shape (targets, questions).

    Args:
        questions: What is asked.
        measured: Launches.
        targets: The objectives.
        space: The search space.
        noise: Of each target from launch to launch, as the study's own repeats tell, shape (targets,).
    """
    varied = sorted((p for p in space.parameters.values() if not p.is_fixed), key=lambda p: not p.is_speculative)
    axes = tuple(map(Axis.of, varied))
    components = Components(axes, sum(p.is_speculative for p in varied))
    asked = [candidate for question in questions for pair in question.pairs for candidate in pair]
    candidates = [item.candidate for item in measured] + asked
    count, codes = len(measured), encode(axes, [candidate.values for candidate in candidates])
    expected, features, grown = _physics(candidates, measured, targets, space, float(noise.max()))
    values = np.array([item.targets for item in measured]).T
    logs, deviations = np.zeros((2, len(targets), len(questions)))
    explained = np.array([target.load is not None for target in targets]) & bool(features.shape[1])
    for rows, spreads, used in ((explained, Spreads(), None), (~explained, UNEXPLAINED, 0)):
        if not rows.any():
            continue
        left = values[: len(targets)][rows] - expected[rows, :count]
        middle = np.median(left, axis=1, keepdims=True)
        parts = features[:, :used]
        fitted = Residual.fit(components, codes[:count], parts[:count], (left - middle).T, spreads)
        means = expected[rows, count:] + fitted.means(codes[count:]) + fitted.shift(parts[count:])
        inflation = np.maximum(LEAST_INFLATION, np.maximum(_missed(fitted), noise[rows] / fitted.noise))
        at = 0
        for column, question in enumerate(questions):
            its = slice(at, at := at + 2 * len(question.pairs))
            contrast = np.tile([1.0, -1.0], len(question.pairs)) / len(question.pairs)
            covariance = fitted.posterior(codes[count:][its], parts[count:][its])
            logs[rows, column] = means[:, its] @ contrast
            spread = inflation * math.sqrt(max(0.0, float(contrast @ covariance @ contrast)))
            deviations[rows, column] = np.hypot(spread, TREE_LAW * abs(float(grown[count:][its] @ contrast)))
    return logs, deviations


def _physics(
    candidates: Sequence[Candidate],
    measured: Sequence[Evidence],
    targets: Sequence[Target],
    space: SearchSpace,
    scatter: float,
) -> tuple[Floats, Floats, Floats]:
    """Return what is expected of each target, what may be wrong with it, and the log accept length of trees.

    Nothing where no level tells of cycles.
    """
    settings = [Setting.of({**space.engine.args, **candidate.values}) for candidate in candidates]
    loads = [target.load for target in targets if target.load is not None]
    if not loads or all(level.concurrency is None for item in measured for level in item.levels):
        return np.zeros((len(targets), len(candidates))), np.zeros((len(candidates), 0)), np.zeros(len(candidates))
    drafters = sorted({setting.drafter for setting in settings if setting.drafter is not None})
    depth = max(setting.depth for setting in settings)
    physics = Physics.fit(measured, settings[: len(measured)], drafters, depth, scatter=scatter)
    works = Works.of(settings, loads, drafters)
    chains = [replace(s, topk=1, tokens=min(s.steps + 1, s.tokens)) for s in settings]
    lengths, short = (physics.acceptance.lengths(Drafts.of(drafts)) for drafts in (settings, chains))
    return physics.expected(works, targets), physics.features(works, targets, works.drafts), np.log(lengths / short)


def _missed(fitted: Residual) -> Floats:
    """Return the root mean square of each target's leave-one-out errors in their own deviations.

    Rasmussen and Williams 2006, equation 5.12: error α_i / K⁻¹_ii, variance 1 / K⁻¹_ii.
    """
    found: Floats = np.sqrt(np.mean(np.square(fitted.alpha) / np.diag(fitted.inverse)[:, None], axis=0))
    return found


def _answered(
    question: Question, measured: Sequence[Evidence], objective: Objective, log: float, deviation: float
) -> Effect:
    unknown = _unknown(question, measured)
    if unknown:
        log, deviation = 0.0, NEVER_SEEN
    sign = 1.0 if objective.direction == "maximize" else -1.0
    lo, est, hi = (_relative(sign * log + z * deviation) for z in (-Z95, 0.0, Z95))
    change = Estimate(est, lo, hi)
    launched = {item.candidate for item in measured}
    shown = any(launched.issuperset(pair) for pair in question.pairs)
    return Effect(
        question.parameter.name, question.speculates, question.value, question.against, question.together,
        objective.metric, objective.level, change,
        "nothing" if unknown else "launches" if shown else "prediction",
        unknown or _words(change) + ("" if shown else ", predicted"),
    )  # fmt: skip


def _relative(log: float) -> float:
    return math.expm1(min(max(log, -LARGEST), LARGEST))


def _unknown(question: Question, measured: Sequence[Evidence]) -> str:
    """Return why nothing is known of a value, empty when something is."""
    name = question.parameter.name
    seen = {item.candidate.values[name] for item in measured if name in item.candidate.values}
    if len(seen) < 2:
        return "unknown: never varied"
    predicted = name in RELEVANT or Axis.of(question.parameter).ordered
    return "" if predicted or question.value in seen else "unknown: never launched"


def _words(change: Estimate) -> str:
    if max(-change.lo, change.hi) <= NO_DIFFERENCE:
        return f"makes no difference (within ±{max(-change.lo, change.hi):.1%})"
    interval = f"{change.lo:+z.1%} to {change.hi:+z.1%}"
    return f"{change.est:+z.1%} ({interval})" if change.lo > 0.0 or change.hi < 0.0 else f"not decided ({interval})"


def _beside(name: str, now: Value | None, before: Value | None) -> str:
    if now is None:
        return f"without {name}"
    return f"with {name} {text_of(now)}" + ("" if before is None else f" instead of {text_of(before)}")


def _plain(value: Value | None) -> Any:
    return list(value) if isinstance(value, tuple) else value
