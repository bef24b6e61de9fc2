"""Cycle times: the cost model's terms, fitted with coefficients that cannot be negative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from spectune.analysis.estimate import Floats
from spectune.calibration.observed import Observed
from spectune.engines.simulated.profile_schema import Moe

KNEES = (32, 64, 128, 256, 512)  # tokens of one forward beyond which one more costs more: compute bound
EXPERTS = ((2, 8), (8, 64), (8, 256), (8, 384))  # active of all, as published mixtures of experts have them
LEAST_SPREAD = 0.003  # relative: no cycle is known better, whatever its interval says
TARGET_GRAPH, TARGET_EAGER, DRAFT_GRAPH, DRAFT_EAGER, TOKEN, MIXTURE, BEYOND, KV, DRAFT_TOKEN = range(9)
"""The terms. Of those that a study does not tell apart the earlier one takes all: a forward costs its step first."""
TOLD_APART = 0.05
"""Part of a term that has to vary beside the terms before it. Less is the jitter of lengths, not an experiment."""
STEEPEST = 999.0  # times a token's cost that one beyond the knee adds: a profile's knee_factor is 1,000 at most


@dataclass(frozen=True)
class CycleFit:
    """The fitted terms; milliseconds unless stated otherwise.

    Attributes:
        coefficients: One for each of the terms above; those of BEYOND per token, of KV per 1,000 tokens.
        knee_tokens: Where the cost of a token rises; None where no rise is seen.
        moe: Active and all experts of the saturating term; None where none is seen.
        verify_graph: Whether the target's forwards under speculation replay graphs.
        seen: Terms that launches have; the others are assumed.
        told: Those among them that vary beside the terms before them; the others are part of these, and 0.
        residual: Relative standard deviation of what the terms miss.
    """

    coefficients: tuple[float, ...]
    knee_tokens: int | None
    moe: tuple[int, int] | None
    verify_graph: bool
    seen: frozenset[int] = field(default_factory=frozenset)
    told: frozenset[int] = field(default_factory=frozenset)
    residual: float = 0.0

    def cycle_ms(self, one: Observed) -> float:
        """Return the cycle of a level without effects."""
        return float(_row(one, self.knee_tokens, self.moe, verify_graph=self.verify_graph) @ self.coefficients)


def fit_cycle(points: Sequence[Observed], factors: Mapping[int, float], launch_sd: float) -> CycleFit:
    """Fit all cycles, choosing the shape of the target's work by Akaike's criterion for few data.

    Relative errors count (each row is divided by its cycle), weighed by what each launch knows of itself and
    by how much launches differ. The shapes are linear, one with a knee, and one that saturates as a mixture of experts
    does; AICc is that of Hurvich and Tsai, *Biometrika* 76 (1989).

    Args:
        points: Levels of launches, at least one.
        factors: Index of a point → what other parameters multiply its cycle by.
        launch_sd: Relative standard deviation between launches.
    """
    verify_graph = _verify_graph(points)
    shapes: list[tuple[int | None, tuple[int, int] | None]] = [(None, None)]
    shapes += [(knee, None) for knee in KNEES]
    shapes += [(None, experts) for experts in EXPERTS]
    cycles = np.array([one.cycle_ms / factors.get(index, 1.0) for index, one in enumerate(points)])
    weights = 1.0 / np.array([max(LEAST_SPREAD, math.hypot(one.spread, launch_sd)) for one in points])
    weights /= weights.mean()
    fits = [_fit(points, cycles, weights, knee, moe, verify_graph=verify_graph) for knee, moe in shapes]
    return min(fits, key=lambda found: found[0])[1]


def _fit(
    points: Sequence[Observed],
    cycles: Floats,
    weights: Floats,
    knee: int | None,
    moe: tuple[int, int] | None,
    *,
    verify_graph: bool,
) -> tuple[float, CycleFit]:
    """Return AICc and the fit of one shape."""
    rows = np.array([_row(one, knee, moe, verify_graph=verify_graph) for one in points])
    scaled = rows * (weights / cycles)[:, None]
    size = np.linalg.norm(scaled, axis=0)
    told = told_apart(scaled)
    found, missed = nnls(scaled[:, told] / size[told], weights)
    coefficients = np.zeros(rows.shape[1])
    coefficients[told] = found / size[told]
    active, count = int(np.count_nonzero(found)) + (moe is not None or knee is not None), len(points)
    squares = max(missed**2 / count, LEAST_SPREAD**2)
    spare = count - active - 1
    criterion = count * math.log(squares) + 2 * active * (count / spare if spare > 0 else math.inf)
    if coefficients[BEYOND] > STEEPEST * coefficients[TOKEN]:
        criterion = math.inf  # no profile says this
    errors = np.log(np.maximum(rows @ coefficients, 1e-9) / cycles)
    fit = CycleFit(
        coefficients=tuple(map(float, coefficients)),
        knee_tokens=knee if knee is not None and coefficients[BEYOND] > 0.0 else None,
        moe=moe if moe is not None and coefficients[MIXTURE] > 0.0 else None,
        verify_graph=verify_graph,
        seen=frozenset(np.flatnonzero(size > 0.0).tolist()),
        told=frozenset(told),
        residual=float(np.sqrt(np.mean(errors**2))),
    )
    return criterion, fit


def told_apart(columns: Floats) -> list[int]:
    """Return which columns vary beside those before them, taken up in their order.

    Where the rest of a column is no more than jitter, its coefficient would be anything, at the cost of the others.

    Args:
        columns: One for each term, shape (points, terms).
    """
    told: list[int] = []
    basis = np.zeros((len(columns), 0))
    for index, column in enumerate(columns.T):
        rest = column - basis @ (basis.T @ column)
        length = float(np.linalg.norm(rest))
        if length > TOLD_APART * float(np.linalg.norm(column)):
            told.append(index)
            basis = np.column_stack([basis, rest / length])
    return told


def _row(one: Observed, knee: int | None, moe: tuple[int, int] | None, *, verify_graph: bool) -> Floats:
    """Return what each term is multiplied by (docs/profiles.md, "The arithmetic")."""
    setup, tokens = one.setup, one.tokens(verify_graph=verify_graph)
    graph = one.graph(verify_graph=verify_graph)
    row = np.zeros(9)
    row[TARGET_GRAPH if graph else TARGET_EAGER] = 1.0
    row[TOKEN] = tokens - 1
    row[BEYOND] = 0.0 if knee is None else max(0, tokens - knee)
    row[KV] = one.kv_ktokens
    if moe is not None:
        idle = 1.0 - moe[0] / moe[1]
        row[MIXTURE] = idle - idle**tokens
    drafting_in_graph = bool(setup.captured) and one.batch <= setup.captured[-1]
    row[DRAFT_GRAPH if drafting_in_graph else DRAFT_EAGER] = setup.draft_forwards
    row[DRAFT_TOKEN] = setup.draft_forwards * one.batch * setup.eagle_topk
    return row


def _verify_graph(points: Sequence[Observed]) -> bool:
    """Whether verifies replay graphs: unless every log says they do not where plain decoding would."""
    told = [one.graph_used for one in points if one.setup.speculative and one.graph(verify_graph=True)]
    known = [used for used in told if used is not None]
    return not known or any(known)


def as_moe(fit: CycleFit) -> Moe | None:
    """Return the saturating term as a profile has it."""
    if fit.moe is None:
        return None
    return Moe(active=fit.moe[0], experts=fit.moe[1], expert_ms=fit.coefficients[MIXTURE])
