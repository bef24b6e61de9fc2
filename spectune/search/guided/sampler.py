"""The guided search as an Optuna sampler: with a guide over an engine's candidates, without one over any space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from scipy.special import ndtri
from scipy.stats import rankdata

from spectune.search.guided.evidence import Evidence
from spectune.search.guided.loose import suggest
from spectune.search.storage.ledger import EVIDENCE
from spectune.search.storage.values import distribution, searched, stored_params

if TYPE_CHECKING:
    import numpy.typing as npt

    from spectune.search.guided.guide import Guide

STARTUP = 5  # trials drawn at random in a space nothing is known of


class GuidedSampler(BaseSampler):
    """Proposes what the evidence of all finished trials makes most promising.

    With a guide, a trial's evidence (counters, cycle times, failure) is read from its user attribute `evidence`, which
    the ledger writes; the whole assignment is drawn at once and is always a candidate that was not launched before.
    Without one, only parameters and values are looked at.

    Attributes:
        why: Of the last draw of a guide, in one sentence; empty when nothing is left to propose.
    """

    def __init__(self, guide: Guide | None = None, *, seed: int | None = None) -> None:
        self.why = ""
        self._guide = guide
        self._rng = np.random.default_rng(seed)
        self._random = RandomSampler(seed=seed)
        self._intersection = IntersectionSearchSpace()

    def reseed_rng(self) -> None:
        """Draw a new seed."""
        self._rng = np.random.default_rng()
        self._random.reseed_rng()

    def infer_relative_search_space(
        self,
        study: Study,
        trial: FrozenTrial,  # noqa: ARG002 (Optuna's signature)
    ) -> dict[str, BaseDistribution]:
        """Return the guide's whole space; without one, what all trials have in common."""
        if self._guide is not None:
            return {parameter.name: distribution(parameter) for parameter in searched(self._guide.space)}
        common = self._intersection.calculate(study).items()
        return {name: domain for name, domain in common if not domain.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return an assignment; an empty one leaves the draw to `sample_independent`."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if self._guide is not None:
            known = [Evidence.loads(e) for t in trials if (e := t.user_attrs.get(EVIDENCE)) is not None]
            others = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            running = [Evidence.loads(e) for t in others if (e := t.user_attrs.get(EVIDENCE)) is not None]
            advice = self._guide.propose(known, running)
            self.why = "" if advice is None else advice.why
            return {} if advice is None else stored_params(advice.candidate, searched(self._guide.space))
        usable = [t for t in trials if np.isfinite(t.values).all() and search_space.keys() <= t.params.keys()]
        if not search_space:
            return {}
        if len(usable) < STARTUP:
            independent = self._random.sample_independent
            return {name: independent(study, trial, name, domain) for name, domain in search_space.items()}
        scores = _scores(usable, study.directions, self._rng)
        return suggest(search_space, [t.params for t in usable], scores, self._rng)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw a value at random."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)


def _scores(
    trials: Sequence[FrozenTrial], directions: Sequence[StudyDirection], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return one figure per trial: normal scores of the objectives in a random mixture, infeasible trials below all.

    They keep the order alone: one penalty of a million does not make all other trials look alike.
    """
    signs = [1.0 if direction == StudyDirection.MAXIMIZE else -1.0 for direction in directions]
    ranks = rankdata(np.array([t.values for t in trials]) * signs, axis=0)
    scores: npt.NDArray[np.float64] = ndtri((ranks - 0.5) / len(trials)) @ rng.dirichlet(np.ones(len(signs)))
    broken = np.array([any(c > 0 for c in t.constraints.values()) for t in trials])
    scores[broken] = scores.min() - (float(np.std(scores)) or 1.0)
    return scores
