"""The parts of the guided search: what they must hold whatever was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from guided_world import SHAPES, TEXT, engine, search, space
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.engines.draft_trees import chain_lengths
from spectune.search.evidence.setting import Setting
from spectune.search.guided.acceptance import AcceptanceModel, Accepted, even_survival
from spectune.search.guided.acquisition import area_gains, expected_improvement, sureness
from spectune.search.guided.beliefs import Beliefs
from spectune.search.guided.bounds import out_of_reach
from spectune.search.guided.chart import Chart
from spectune.search.guided.cycle import PRIORS, CycleModel, terms
from spectune.search.guided.drafts import Drafts
from spectune.search.guided.encoding import Axis
from spectune.search.guided.evidence import Evidence, evidence_of
from spectune.search.guided.feasibility import fits, suspicion
from spectune.search.guided.forecasts import FRESH, told_by
from spectune.search.guided.guide import Guide
from spectune.search.guided.kernel import Components, Spreads
from spectune.search.guided.mixture import ClassSurvival, cycles
from spectune.search.guided.residual import FITTED, Residual
from spectune.search.guided.table import CandidateTable
from spectune.search.proposing.proposals import Proposer
from spectune.space import Parameter

probabilities = st.floats(0.02, 0.98)
shapes = st.lists(probabilities, min_size=1, max_size=6).map(tuple)


def setting(steps: int, topk: int = 1, tokens: int | None = None, drafter: str | None = "EAGLE3 d") -> Setting:
    if drafter is None:
        return Setting(None, 0, 1, 1, (1, 2, 4, 8), 64)
    return Setting(drafter, steps, topk, tokens or steps + 1, (1, 2, 4, 8), 64)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), shapes, st.floats(1.0, 1e5)), max_size=5))
def test_a_drafters_chains_never_shrink_with_their_length(seen: list[tuple[int, tuple[float, ...], float]]) -> None:
    accepted = []
    for steps, chain, verifies in seen:
        survival = tuple(np.cumprod(chain[:steps]).tolist())
        accepted.append(Accepted(setting(steps), survival, 1.0 + sum(survival), verifies))
    model = AcceptanceModel.fit(accepted, 8)
    lengths = model.lengths(Drafts.of([setting(steps) for steps in range(1, 9)]))
    assert (np.diff(lengths) > 0.0).all()
    assert (lengths <= np.arange(2, 10)).all()
    asked = Drafts.of([setting(8), setting(3, 4, 9), setting(2, drafter="EAGLE3 other")])
    assert np.isfinite(model.features(asked, model.lengths(asked), asked)).all()


def test_one_long_chain_tells_of_all_shorter_ones() -> None:
    chain = SHAPES["org/strong"]
    survival = tuple(np.cumprod(chain).tolist())
    model = AcceptanceModel.fit([Accepted(setting(6), survival, 1.0 + sum(survival), 5000.0)], 6)
    expected = chain_lengths(chain)[1:]
    assert model.lengths(Drafts.of([setting(s) for s in range(1, 7)])) == pytest.approx(expected, rel=0.005)


def test_a_long_chain_tells_of_short_ones_by_class_of_prompts() -> None:
    """Half of the tokens are easy: they take few of a long chain's cycles, and more of a short one's."""
    easy, hard = np.full(7, 0.9), np.full(7, 0.4)
    classes = tuple(ClassSurvival(n, 0.5, tuple(np.cumprod(a).tolist())) for n, a in (("easy", easy), ("hard", hard)))
    counted = np.array(cycles(classes, 10_000.0))
    survival = counted / counted.sum() @ np.array([one.survival for one in classes])
    item = Accepted(setting(7), tuple(survival.tolist()), 1.0 + float(survival.sum()), 10_000.0)
    truth = 2.0 / (1.0 / chain_lengths(easy) + 1.0 / chain_lengths(hard))
    assert item.length == pytest.approx(truth[7]), "tokens over cycles"
    drafts = Drafts.of([setting(steps) for steps in range(1, 8)])
    blind, seeing = (AcceptanceModel.fit([one], 7) for one in (item, replace(item, classes=classes)))
    assert seeing.lengths(drafts) == pytest.approx(truth[1:], rel=0.005)
    assert blind.lengths(drafts)[1] < 0.95 * truth[2]
    mixed = AcceptanceModel.fit([replace(item, classes=classes), item], 7)
    assert not mixed.by_class, "one level does not tell them apart"


@given(st.floats(1.0, 8.0), st.integers(1, 8))
def test_an_even_chain_has_the_length_it_was_made_for(length: float, depth: int) -> None:
    survival = even_survival(length, depth)
    assert list(survival) == sorted(survival, reverse=True)
    assert 1.0 + sum(survival) == pytest.approx(min(length, depth + 1.0), abs=1e-6)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from([1, 8, 32]), st.floats(1.0, 100.0)), min_size=1, max_size=8)
)
def test_coefficients_are_never_negative_and_cycles_always_positive(seen: list[tuple[int, int, float]]) -> None:
    chosen = [(setting(steps) if steps else setting(0, drafter=None), load, ms) for steps, load, ms in seen]
    rows = np.concatenate([terms([one], load, ("EAGLE3 d",)) for one, load, _ in chosen])
    model = CycleModel.fit(rows, np.array([ms for *_, ms in chosen]), min(ms for *_, ms in chosen))
    assert (model.coefficients >= 0.0).all()
    everything = terms([setting(0, drafter=None), setting(1), setting(7, 8, 64)], 64, ("EAGLE3 d",))
    assert everything.shape[1] == len(PRIORS) + 1
    assert (model.ms(everything) > 0.0).all()
    shares = everything * model.coefficients / model.ms(everything)[:, None]
    assert (model.features(everything) <= shares + 1e-12).all(), "no cost may turn out to be a gain"


def test_more_work_never_takes_less_time() -> None:
    rows = terms([setting(s, k, n) for s, k, n in ((1, 1, 2), (2, 1, 3), (4, 2, 8), (6, 4, 16))], 8, ())
    assert (np.diff(rows, axis=0) >= 0.0).all()


def axes() -> tuple[Axis, ...]:
    numbers = Axis.of(Parameter("speculative-num-steps", (3, 1, 2, 4)))
    return numbers, Axis.of(Parameter("a", ("x", "y"))), Axis.of(Parameter("b", (True, False)))


def test_numbers_are_ordered_and_everything_else_is_only_alike_or_not() -> None:
    numbers, words, switch = axes()
    assert numbers.values == (1, 2, 3, 4)
    assert numbers.likeness[0, 1] > numbers.likeness[0, 3] > 0.0
    assert numbers.likeness[0, 4] == 0.0
    assert words.likeness.tolist() == np.eye(3).tolist()
    assert switch.code(True) != switch.code(1)
    assert Axis.of(Parameter("env.X", ("2", "8", "4"))).values == ("2", "4", "8")


codes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=30)
@given(codes, st.integers(0, 2**31))
def test_the_surface_is_the_posterior_of_every_pair(seen: list[tuple[int, int, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = np.array(seen, np.int64)
    features = rng.normal(0, 0.1, (len(at), 2))
    fitted = Residual.fit(Components(axes(), 1), at, features, rng.normal(0, 0.05, (len(at), 2)), Spreads())
    assert (fitted.weights >= 0.0).all()
    drafts, sides = np.arange(4)[:, None], np.array([(i, j) for i in range(2) for j in range(2)])
    surface = fitted.surface(drafts, sides)
    everything = np.array([(d[0], *s) for d in drafts for s in sides])
    assert surface.reshape(2, -1) == pytest.approx(fitted.means(everything), abs=1e-9)
    variances = fitted.variances(everything, np.zeros((16, 2)))
    assert (variances <= fitted.prior_variance + 1e-9).all()
    covariance = fitted.posterior(everything, np.zeros((16, 2)))
    assert np.diag(covariance) == pytest.approx(variances, abs=1e-7)
    apart = np.diag(covariance) + covariance[5, 5] - 2.0 * covariance[:, 5]
    contrasts = fitted.contrasts(everything, np.zeros((16, 2)), everything[5:6], np.zeros((1, 2)))
    assert contrasts == pytest.approx(apart, abs=1e-7)


def test_an_effect_of_one_value_is_found_and_what_was_not_varied_stays_open() -> None:
    rng = np.random.default_rng(0)
    at = np.stack([rng.integers(0, 4, 24), rng.integers(0, 2, 24), np.zeros(24, np.int64)], axis=1)
    values = -0.06 * (at[:, 1] == 1) + rng.normal(0, 0.01, 24)
    fitted = Residual.fit(Components(axes(), 1), at, np.zeros((24, 0)), values[:, None], Spreads())
    means = fitted.means(np.array([[1, 0, 0], [1, 1, 0]]))[0]
    assert means[0] - means[1] == pytest.approx(0.06, abs=0.015)
    seen, unseen = fitted.variances(np.array([[1, 0, 0], [1, 0, 1]]), np.zeros((2, 0)))
    assert unseen > 4 * seen


def test_many_launches_are_all_believed_though_variances_are_fitted_to_some() -> None:
    rng = np.random.default_rng(0)
    count = 3 * FITTED
    at = np.stack([rng.integers(0, 4, count), rng.integers(0, 2, count), rng.integers(0, 2, count)], axis=1)
    values = 0.06 * at[:, 1] - 0.04 * at[:, 2] * (at[:, 0] == 3) + rng.normal(0, 0.01, count)
    fitted = Residual.fit(Components(axes(), 1), at, np.zeros((count, 0)), values[:, None], Spreads())
    everything = np.array([(i, j, k) for i in range(4) for j in range(2) for k in range(2)])
    truth = 0.06 * everything[:, 1] - 0.04 * everything[:, 2] * (everything[:, 0] == 3)
    assert fitted.means(everything)[0] == pytest.approx(truth, abs=0.006)
    assert fitted.noise == pytest.approx(0.01, rel=0.2)
    assert fitted.inverse.shape == (count, count)


@given(st.integers(0, 5000))
def test_a_forecast_rests_on_at_least_nine_of_ten_launches(launches: int) -> None:
    told = told_by(launches)
    assert 0.9 * launches <= told <= launches
    assert told == launches or launches > FRESH
    assert told_by(told) == told, "a block begins where it is told by all before it"


@pytest.mark.parametrize(("size", "least", "most"), [(0.0, 0.0, 0.015), (0.08, 0.04, 0.3)])
def test_the_scale_of_effects_is_learned_from_all_of_them(size: float, least: float, most: float) -> None:
    rng = np.random.default_rng(0)
    at = np.stack([rng.integers(0, 4, 40), rng.integers(0, 2, 40), rng.integers(0, 2, 40)], axis=1)
    values = size * (at[:, 1] - at[:, 2] + at[:, 1] * at[:, 2]) + rng.normal(0, 0.01, 40)
    components, nothing = Components(axes(), 1), np.zeros((40, 0))
    usual, learned = (
        Residual.fit(components, at, nothing, values[:, None], Spreads(), learned=learned) for learned in (False, True)
    )
    assert least < learned.own_deviation < most
    assert (learned.own_deviation > usual.own_deviation) is (size > 0.0)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=9), st.floats(0.0, 1e3), st.floats(1.0, 1e3))
def test_less_memory_is_never_riskier(demands: list[float], ran: float, above: float) -> None:
    chances = fits(np.sort(demands), ran, ran + above)
    assert (np.diff(chances) <= 1e-12).all()
    assert ((chances >= 0.0) & (chances <= 1.0)).all()
    assert fits(np.array([ran + above]), ran, ran + above)[0] == 0.0


EVERYWHERE = np.arange(4)[:, None], np.array([(0, 0), (1, 0), (0, 1), (1, 1)])


def test_what_succeeded_is_no_explanation_of_a_failure() -> None:
    failed, ran = np.array([[3, 1, 0]]), np.array([[3, 0, 0], [0, 0, 1]])
    risk = suspicion(axes(), failed, ran).risk(*EVERYWHERE)
    assert risk[3, 1] == pytest.approx(1.0, abs=0.02)
    assert risk[3, 0] == 0.0
    assert 0.0 < risk[0, 3] < 1.0


def test_what_two_failures_share_is_blamed() -> None:
    ran = np.array([[0, 0, 0], [3, 0, 1], [1, 0, 0]])
    risk = suspicion(axes(), np.array([[0, 1, 0], [3, 1, 1]]), ran).risk(*EVERYWHERE)
    assert risk[1, 1] > 0.5
    assert risk[1, 0] == 0.0


def test_two_regions_are_told_from_what_they_share() -> None:
    """Three values that fail with the flag on, one of them refuted: what all failures share is not to blame."""
    three = (Axis("graphs", (0, 1, 2)), Axis("flag", (False, True)), Axis("other", (0, 1, 2, 3)))
    failed = np.array([[1, 1, 0], [2, 1, 1], [1, 1, 2], [2, 1, 3], [1, 1, 1], [2, 1, 0]])
    ran = np.array([[0, 1, 0], [0, 1, 3], [1, 0, 1], [2, 0, 0], [2, 0, 2]])
    risk = suspicion(three, failed, ran).risk(np.array([[0], [1], [2]]), np.array([(1, 2), (0, 3)]))
    assert (risk[1:, 0] > 0.95).all(), "other values of the third parameter fail as well"
    assert (risk[0] < 0.05).all()
    assert (risk[1:, 1] < 0.05).all()


@given(st.data())
def test_risks_are_probabilities_and_contradict_no_launch(data: st.DataObject) -> None:
    rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=6)
    failed, ran = data.draw(rows), data.draw(rows)
    risk = suspicion(axes(), np.array(failed), np.array(ran)).risk(
        np.arange(4)[:, None], np.array([(flag, other) for flag in range(2) for other in range(3)])
    )
    assert (risk >= 0.0).all()
    assert (risk <= 1.0).all()
    assert all(risk[code, 3 * flag + other] < 1e-9 for code, flag, other in ran)


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(-1, 1))
def test_expected_improvement(mean: float, deviation: float, best: float) -> None:
    gain = expected_improvement(np.array([mean]), np.array([deviation]), best)[0]
    assert gain >= max(0.0, mean - best) - 1e-6
    assert 0.0 <= sureness(np.array([mean]), np.array([deviation]), best)[0] <= 1.0


FORBIDDING = TEXT + 'forbid: [{speculative-eagle-topk: ">1", env.NCCL_PROTO: LL}, {speculative-num-steps: 6}]\n'


@pytest.mark.parametrize("text", [TEXT, FORBIDDING])
def test_the_table_holds_exactly_the_legal_candidates(text: str) -> None:
    at = space(text)
    table = CandidateTable.of(at, engine(at))
    legal = {candidate.candidate_id for candidate in Proposer(at, engine(at)).all()}
    listed = [table.candidate(number) for number in np.flatnonzero(table.allowed)]
    assert {candidate.candidate_id for candidate in listed} == legal
    assert len(listed) == len(legal)
    assert all(table.number(table.candidate(number)) == number for number in range(0, table.size, 37))


def test_evidence_survives_an_optuna_trial() -> None:
    at = space()
    for record in search(at, 5):
        told = [{"code": level.per_position, "chat": level.per_position[:1]} for level in record.levels]
        levels = tuple(
            replace(level, per_position_by_class=own, requests_by_class={"code": 30, "chat": 10})
            for level, own in zip(record.levels, told, strict=True)
        )
        (evidence,) = evidence_of([replace(record, levels=levels)], at)
        assert [one.share for one in evidence.levels[0].classes] == [0.25, 0.75][: 2 * record.candidate.speculative]
        assert Evidence.loads(evidence.dumps()) == evidence


def test_a_drafter_that_cannot_pay_is_dropped_and_the_reason_said() -> None:
    at = space(TEXT.replace("{from: 1, to: 6}", "{from: 1, to: 2}"))
    guide = Guide(at, engine(at))
    records = list(search(at, 8))
    beliefs = guide.beliefs.openly(evidence_of(records, at))
    drafter = "EAGLE3 org/weak"
    ceiling = float(beliefs.score.max()) + 2.0
    reasons = out_of_reach(beliefs, ceiling, frozenset({drafter}))
    assert list(reasons) == [drafter]
    assert "with every draft right it would still be" in reasons[drafter]
    assert out_of_reach(beliefs, float(beliefs.score.min()), frozenset({drafter})) == {}


points = st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=6)


@given(points, points)
def test_area_gains_are_what_the_area_grows_by(
    front: list[tuple[float, float]], new: list[tuple[float, float]]
) -> None:
    def area(of: list[tuple[float, float]]) -> float:
        rows, found, height = sorted(of, reverse=True), 0.0, 0.0
        for x, y in rows:
            found += x * max(0.0, y - height)
            height = max(height, y)
        return found

    gains = area_gains(np.array(new), np.array(front), np.zeros(2))
    assert gains == pytest.approx([area([*front, point]) - area(front) for point in new], abs=1e-9)


def test_of_a_mean_of_two_objectives_an_unexplained_one_makes_half_the_doubt() -> None:
    goals = ("{minimize: ttft_p95_ms, level: c8}", "{maximize: decode_speed, level: c1}")
    head, rest = TEXT.split("objectives:")
    deviations = []
    for asked in (goals[:1], goals):
        at = space(f"{head}objectives: [{', '.join(asked)}]\n{rest.splitlines()[1]}\n")
        evidence = [
            replace(item, targets=tuple(log + 0.1 * (row == 0) * index for row, log in enumerate(item.targets or ())))
            for index, item in enumerate(evidence_of(search(space(), 12), at))
        ]
        beliefs = Beliefs(Chart.of(at, engine(at)), at, ()).openly(evidence)
        deviations.append(beliefs.deviations(np.arange(20)))
    assert deviations[1] == pytest.approx(0.5 * deviations[0])
