"""A machine drawn at random, by other laws than the guided search assumes.

The verify costs a power of its tokens plus a step per tile; drafters cost differently and their positions follow any
shape; trees spread their nodes by depth and saturate with a power of breadth; system parameters have effects of their
own, pairs of any parameters interact by up to 10 %, sometimes at high load only, and regions of the space fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.worlds.world import LevelTruth, Outcome
from spectune.serving import FailureClass
from spectune.space import Candidate, IntegerRange, Parameter, SearchSpace, Value

STEPS, TOPK, TOKENS = "speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens"
DRAFTER = "speculative-draft-model-path"
INTERACTIONS, STRONGEST = 8, 0.10
LARGEST_FAILURE = 0.25  # of the combinations of its parameters
FAILURES = (FailureClass.CRASH, FailureClass.UNSUPPORTED, FailureClass.NCCL, FailureClass.HANG)


@dataclass(frozen=True)
class Atom:
    """One parameter has one value, or one up to (or from) it."""

    name: str
    kind: str
    value: Value

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether it holds; a parameter that is absent never does."""
        found: Any = values.get(self.name)
        if found is None:
            return False
        operand: Any = self.value
        if self.kind == "=":
            return bool(found == operand)
        return bool(found <= operand if self.kind == "<=" else found > operand)


@dataclass(frozen=True)
class Effect:
    """A factor on the cycle, from a concurrency on."""

    atoms: tuple[Atom, ...]
    log: float
    from_concurrency: int = 0


class RandomMachine:
    """One draw."""

    def __init__(self, seed: int, space: SearchSpace) -> None:
        rng = np.random.default_rng([7, seed])
        self._space, self._seed = space, seed
        self._base = math.exp(rng.uniform(math.log(5), math.log(30)))
        self._host = rng.uniform(0.03, 0.2) * self._base
        self._eager = math.exp(rng.uniform(math.log(1.2), math.log(3.0)))
        self._verify_graph = rng.random() < 0.7
        self._power, self._work = rng.uniform(0.5, 1.6), math.exp(rng.uniform(math.log(0.05), math.log(1.0)))
        self._tile, self._tile_cost = int(rng.choice([16, 32, 64])), rng.uniform(0.0, 0.06)
        self._draft = math.exp(rng.uniform(math.log(0.02), math.log(0.25)))
        self._draft_eager = rng.uniform(1.0, 2.5)
        self._draft_power, self._draft_work = rng.uniform(0.5, 1.3), rng.uniform(0.0, 0.02)
        drafters = space.parameters[DRAFTER].values if DRAFTER in space.parameters else ("",)
        self._speed = {str(name): math.exp(rng.uniform(-0.35, 0.4)) for name in drafters}
        self._shape = {str(name): _shape(rng) for name in drafters}
        self._gain, self._saturation, self._decay = rng.uniform(0.2, 0.9), rng.uniform(0.4, 1.5), rng.uniform(0.5, 1.0)
        varied = [p for p in space.parameters.values() if not p.is_fixed and p.name != "speculative-algorithm"]
        loads = [level.concurrency or 1 for level in space.workload.levels]
        self._effects = [
            Effect((Atom(p.name, "=", value),), float(rng.normal(0.0, 0.03)))
            for p in varied if not p.is_speculative for value in p.values[1:] if rng.random() < 0.6
        ]  # fmt: skip
        for _ in range(INTERACTIONS):
            chosen = rng.choice(len(varied), 2, replace=False)
            atoms = tuple(_atom(rng, varied[i]) for i in chosen)
            start = int(rng.choice(loads)) if rng.random() < 0.3 else 0
            self._effects.append(Effect(atoms, float(rng.uniform(-STRONGEST, STRONGEST)), start))
        self._failures = _failures(rng, varied)
        self._graph_tokens = math.exp(rng.uniform(math.log(1500), math.log(9000)))
        self._tau = lru_cache(maxsize=None)(self._survival)

    @property
    def name(self) -> str:
        """Its number."""
        return f"random-{self._seed}"

    @property
    def failure_regions(self) -> int:
        """Regions that fail, that of graph memory included."""
        return len(self._failures) + 1

    def outcome(self, candidate: Candidate) -> Outcome:
        """Return the truth about a candidate."""
        values = {**self._space.engine.args, **candidate.values}
        for atoms, failure in self._failures:
            if all(atom.holds(values) for atom in atoms):
                return Outcome(failure=failure)
        captured = _captured(values)
        steps, topk, tokens = (
            tuple(int(str(values[name])) for name in (STEPS, TOPK, TOKENS)) if candidate.speculative else (0, 1, 1)
        )
        if sum(captured) * tokens > self._graph_tokens:
            return Outcome(failure=FailureClass.MEMORY)
        drafter = str(values.get(DRAFTER, ""))
        survival = self._tau(drafter, steps, topk, tokens) if candidate.speculative else ()
        effects = [e for e in self._effects if all(atom.holds(values) for atom in e.atoms)]
        levels = {}
        for level in self._space.workload.levels:
            load = level.concurrency or 1
            factor = math.exp(sum(e.log for e in effects if load >= e.from_concurrency))
            levels[level.name] = LevelTruth(
                survival, factor * self._cycle(captured, load, steps, topk, tokens, drafter), load
            )
        return Outcome(levels)

    def _cycle(self, captured: tuple[int, ...], load: int, steps: int, topk: int, tokens: int, drafter: str) -> float:
        width = next((size for size in captured if size >= load), None)
        graph = width is not None and (tokens == 1 or self._verify_graph)
        n = (width if graph and width else load) * tokens
        step = self._base * (1.0 if graph else self._eager)
        verify = step + self._base * (
            self._work * (n / 64) ** self._power + self._tile_cost * (math.ceil(n / self._tile) - 1)
        )
        draft = (
            self._base * self._draft * self._speed.get(drafter, 1.0) * (1.0 if width is not None else self._draft_eager)
        )
        draft *= 1.0 + self._draft_work * (load * topk) ** self._draft_power
        return float(self._host + verify + steps * draft)

    def _survival(self, drafter: str, steps: int, topk: int, tokens: int) -> tuple[float, ...]:
        shares = self._decay ** np.arange(steps)
        nodes = (tokens - 1) * shares / shares.sum()
        alive, found = 1.0, []
        for depth, node in enumerate(nodes):
            a = self._shape[drafter][min(depth, len(self._shape[drafter]) - 1)]
            if topk > 1:
                breadth = min(float(topk if depth == 0 else topk**2), max(node, 0.3))
                a = a * breadth if breadth < 1 else a + (1 - a) * self._gain * (1 - breadth**-self._saturation)
            alive *= a
            found.append(alive)
        return tuple(found)


def _shape(rng: np.random.Generator) -> tuple[float, ...]:
    """Draw P(i-th drafted token right | all before it right)."""
    first = rng.uniform(0.35, 0.9)
    drift, jitter = rng.normal(-0.03, 0.04), rng.uniform(0.0, 0.06)
    raw = first + drift * np.arange(12) + np.cumsum(rng.normal(0, jitter, 12))
    return tuple(np.clip(raw, 0.1, 0.95).tolist())


def _atom(rng: np.random.Generator, parameter: Parameter) -> Atom:
    values = list(parameter.values)
    if isinstance(parameter.domain, IntegerRange) or all(type(v) is int for v in values):
        cut = values[int(rng.integers(0, len(values) - 1))]
        return Atom(parameter.name, str(rng.choice(["<=", ">"])), cut)
    return Atom(parameter.name, "=", values[int(rng.integers(len(values)))])


def _failures(rng: np.random.Generator, varied: list[Parameter]) -> list[tuple[tuple[Atom, ...], FailureClass]]:
    """Draw one to three regions that spare the first value of every parameter taken together."""
    first = {p.name: p.values[0] for p in varied}
    wanted = int(rng.integers(1, 4))
    found: list[tuple[tuple[Atom, ...], FailureClass]] = []
    while len(found) < wanted:
        chosen = rng.choice(len(varied), int(rng.integers(1, 3)), replace=False)
        atoms = tuple(_atom(rng, varied[i]) for i in chosen)
        share = math.prod(
            sum(atom.holds({atom.name: v}) for v in varied[i].values) / len(varied[i].values)
            for i, atom in zip(chosen, atoms, strict=True)
        )
        if share <= LARGEST_FAILURE and not all(atom.holds(first) for atom in atoms):
            found.append((atoms, FAILURES[int(rng.integers(len(FAILURES)))]))
    return found


def _captured(values: Mapping[str, Any]) -> tuple[int, ...]:
    if values.get("disable-decode-cuda-graph") is True:
        return ()
    sizes = values.get("cuda-graph-bs-decode", (1, 2, 4, 8, 16, 32, 64))
    return tuple(sorted(sizes)) if isinstance(sizes, tuple | list) else (int(sizes),)
