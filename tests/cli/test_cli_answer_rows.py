"""Which candidates the terminal shows, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spectune.analysis.estimate import Estimate
from spectune.cli.answer_rows import SHOWN_OF_THE_REST, answer_rows
from spectune.search.answer.summary_fields import CandidateLevel
from spectune.search.evidence.figures import Figures


def candidate(
    trial: int, speed: float, *, plain: bool = False, confirmed: bool = False
) -> tuple[CandidateLevel, CandidateLevel]:
    """A candidate at c1 and at c8."""

    def at(level: str, figure: float, of: float) -> CandidateLevel:
        found, speedup = Estimate.exactly(figure), None if plain else Estimate.exactly(figure / of)
        figures = Figures(found, found, found, found, None, speedup, None)
        return CandidateLevel(f"id{trial}", f"launch {trial}", [trial], None, level, confirmed, figures, {}, {})

    return at("c1", speed, 100.0), at("c8", speed / 2.0, 50.0)


def summary(
    *candidates: tuple[CandidateLevel, ...],
    recommended: int | None,
    pareto: list[int],
    plain: list[int],
    against: int = 0,
    tied: tuple[int, ...] = (),
    judged: tuple[int, ...] = (),
) -> Any:
    """What the rows are made of."""
    return SimpleNamespace(
        candidates=[at for levels in candidates for at in levels],
        recommended=None if recommended is None else SimpleNamespace(candidate_id=f"id{recommended}"),
        ties=[SimpleNamespace(candidate_id=f"id{trial}") for trial in tied],
        pareto=pareto,
        baselines=[SimpleNamespace(trial=trial) for trial in plain],
        speedup=SimpleNamespace(baseline_id=f"id{against}"),
        named=[f"id{trial}" for trial in (recommended, *judged)],
    )


PLAIN = [candidate(trial, 100.0 + trial, plain=True) for trial in range(4)]


def test_the_recommended_comes_first_and_baselines_alike_are_one_line():
    fast = candidate(9, 150.0, confirmed=True)
    rows, others = answer_rows(
        summary(*PLAIN, candidate(8, 160.0), fast, recommended=9, pareto=[9, 3], plain=[0, 1, 2, 3], against=2)
    )
    first, *rest = [one.heading for one in rows]
    assert first == "launch 9 (recommended, Pareto-optimal, confirmed)"
    assert rest == ["launch 2", "launch 3 (Pareto-optimal, measured once, not confirmed)", "launch 8"]
    assert [one.recommended for one in rows] == [True, False, False, False]
    assert others == ["and 2 more without speculation, 0.98–0.99 × the best without"]


def test_what_the_verdict_rests_on_is_always_shown_before_faster_ones() -> None:
    many = [candidate(trial, 160.0 + trial) for trial in range(10, 30)]
    judged = candidate(5, 90.0, confirmed=True)
    rows, _ = answer_rows(summary(*PLAIN, *many, judged, recommended=1, pareto=[20], plain=[0, 1, 2, 3], judged=(5, 2)))
    assert [one.label for one in rows[:4]] == ["launch 1", "launch 5", "launch 2", "launch 20"]
    assert rows[1].heading == "launch 5 (confirmed)"


def test_what_the_launches_cannot_tell_from_the_recommended_one_is_marked():
    rows, _ = answer_rows(
        summary(*PLAIN, candidate(8, 149.0), candidate(9, 150.0), recommended=9, pareto=[9], plain=[0], tied=(8,))
    )
    assert "launch 8 (not told apart)" in [one.heading for one in rows]


def test_a_recommended_baseline_is_the_one_shown():
    rows, others = answer_rows(summary(*PLAIN, candidate(7, 50.0), recommended=1, pareto=[1], plain=[0, 1, 2, 3]))
    assert [one.heading for one in rows] == [
        "launch 1 (recommended, Pareto-optimal, measured once, not confirmed)", "launch 7",
    ]  # fmt: skip
    assert len(others) == 1


def test_all_of_the_pareto_set_is_shown_and_the_rest_is_counted():
    many = [candidate(trial, 60.0 + trial) for trial in range(10, 30)]
    rows, others = answer_rows(summary(PLAIN[0], *many, recommended=0, pareto=[0, 10, 11], plain=[0]))
    assert [one.label for one in rows[:3]] == ["launch 0", "launch 11", "launch 10"]
    assert len(rows) == 3 + SHOWN_OF_THE_REST
    assert others == ["and 12 more with speculation, 0.72–0.83 × the best without"]


def test_nothing_measured_is_nothing_to_show():
    assert answer_rows(summary(recommended=None, pareto=[], plain=[])) == ([], [])
