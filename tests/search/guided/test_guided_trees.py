"""The law of trees, fitted: what measured ones say of it."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from spectune.engines.draft_trees import Branching, tree_lengths
from spectune.search.evidence.setting import Setting
from spectune.search.guided.acceptance import AcceptanceModel, Accepted, even_survival
from spectune.search.guided.branching import USUAL, Misfit, SeenTree, fitted
from spectune.search.guided.drafts import Drafts

# Accept lengths of 3/1/4, 5/1/6, 7/1/8, 5/3/6 and 7/4/8 (SpecBundle, sgl-project/SpecForge docs/spec_bundle, batch 8).
MEASURED = {
    "Kimi-K2 gsm8k": (3.2714, 4.1204, 4.6553, 3.5748, 3.4420),
    "Kimi-K2 math500": (3.4681, 4.6102, 5.3831, 3.5278, 3.1436),
    "Qwen3-30B gpqa": (2.5958, 3.0078, 3.2165, 2.6947, 2.9175),
    "Llama-3.3-70B gpqa": (2.0451, 2.1688, 2.1850, 2.2263, 2.3146),
    "Qwen3-Next-80B gsm8k": (3.1339, 3.9038, 4.3456, 4.0227, 4.6076),
}
TREES = ((5, 3, 6), (7, 4, 8))


def chain_of(short: float, middle: float, long: float) -> tuple[float, ...]:
    """Return a_1 … a_7 that give the chains of 3, 5 and 7 steps their lengths, alike between them."""
    found, survived = [], 1.0
    for positions, gained in ((3, short - 1.0), (2, middle - short), (2, long - middle)):
        low, high = 0.0, 1.0
        for _ in range(40):
            a = (low + high) / 2.0
            enough = survived * sum(a**i for i in range(1, positions + 1)) >= gained
            low, high = (low, a) if enough else (a, high)
        found += [low] * positions
        survived *= low**positions
    return tuple(found)


def misses(branching: Branching, name: str) -> list[float]:
    chain, trees = chain_of(*MEASURED[name][:3]), MEASURED[name][3:]
    return [
        math.log(float(tree_lengths(chain, k, branching, 64)[s, n]) / length)
        for (s, k, n), length in zip(TREES, trees, strict=True)
    ]


def test_the_usual_ranking_tells_measured_trees_better_than_a_perfect_one() -> None:
    usual, perfect = (
        math.sqrt(statistics.fmean(miss**2 for name in MEASURED for miss in misses(b, name)))
        for b in (USUAL, Branching(USUAL.breadth))
    )
    assert usual < 0.8 * perfect, "though one of the five, Qwen3-Next's, ranks as well as it drafts"


@pytest.mark.parametrize("name", MEASURED)
def test_both_measured_trees_of_a_drafter_are_told_by_one_breadth_and_confidence(name: str) -> None:
    chain, lengths = chain_of(*MEASURED[name][:3]), MEASURED[name][3:]
    seen = [SeenTree(chain, s, k, n, length) for (s, k, n), length in zip(TREES, lengths, strict=True)]
    assert max(map(abs, misses(fitted(seen, USUAL), name))) < 0.13


def test_what_was_launched_tells_breadth_and_confidence() -> None:
    chain, truth = (0.85, 0.8, 0.75, 0.7, 0.7, 0.65), Branching(0.45, 0.4)
    shapes = [(s, k, n) for k in (2, 4, 8) for s in (2, 4, 6) for n in (s + 1, 2 * s + 2, 4 * s)]
    seen = [SeenTree(chain, s, k, n, float(tree_lengths(chain, k, truth, 64)[s, n])) for s, k, n in shapes]
    found = fitted(seen, USUAL)
    assert found.breadth == pytest.approx(truth.breadth, rel=0.1)
    assert found.confidence == pytest.approx(truth.confidence, rel=0.1)
    assert Misfit(seen, USUAL)(found) < Misfit(seen, USUAL)(Branching(0.45, 0.5)) / 4, (
        "one without the other is far off"
    )
    assert fitted([], USUAL) == USUAL


def test_a_wide_tree_leaves_the_ranking_open() -> None:
    chain, (steps, topk, tokens) = (0.82, 0.78, 0.75, 0.7, 0.66, 0.62), (5, 2, 11)
    alike = [float(tree_lengths(chain, topk, Branching(0.3, k), 64)[steps, tokens]) for k in (0.5, 0.7, 1.0)]
    assert alike == pytest.approx([alike[0]] * 3, rel=0.01), "it holds nearly the same drafts"
    found = fitted([SeenTree(chain, steps, topk, tokens, alike[0])] * 2, USUAL)
    assert 0.55 < found.confidence < 0.85, "amid what is possible, not the guess at its edge"


@pytest.mark.parametrize("breadth", [0.15, 0.35, 0.6])
def test_a_drafter_that_knows_every_chance_is_told(breadth: float) -> None:
    chain, truth = (0.85, 0.8, 0.75, 0.7, 0.7, 0.65), Branching(breadth, 1.0)
    shapes = [(s, k, n) for k in (2, 4, 8) for s in (2, 4, 6) for n in (s + 1, 2 * s + 2, 4 * s)]
    seen = [SeenTree(chain, s, k, n, float(tree_lengths(chain, k, truth, 64)[s, n])) for s, k, n in shapes]
    found = fitted(seen, USUAL)
    assert 0.9 < found.confidence <= 1.0
    assert found.breadth == pytest.approx(breadth, rel=0.1)


def test_a_tight_tree_is_doubted_until_one_was_launched() -> None:
    def launched(topk: int, length: float) -> Accepted:
        setting = Setting("EAGLE3 d", 5, topk, 6, (1, 2, 4, 8), 64)
        return Accepted(setting, even_survival(length, 5), length, 5000.0)

    chain, tree = launched(1, 4.0), launched(3, 4.0)
    drafts = Drafts.of([chain.setting, tree.setting])
    doubts = []
    for seen in ([chain], [chain, tree]):
        model = AcceptanceModel.fit(seen, 5)
        lengths = model.lengths(drafts)
        features = model.features(drafts, lengths, drafts)
        assert np.linalg.norm(features[0]) == pytest.approx(0.0), "the chain itself was tried"
        doubts.append(float(np.linalg.norm(features[1])))
        assert lengths[1] <= lengths[0] + 1e-9
    assert doubts[1] < 0.5 * doubts[0]
    assert doubts[0] > 0.05
