"""When a search ends: its models have to be sure after each of the last launches, and surprises count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from guided_world import TEXT, engine, search, space

from spectune.search.guided.beliefs import Beliefs
from spectune.search.guided.chart import Chart
from spectune.search.guided.evidence import Evidence, evidence_of
from spectune.search.guided.guide import Guide
from spectune.search.guided.stopping import HOLDS, LARGE, SURE, Outlook, Outlooks, outlook
from spectune.space import Candidate

SEEN = tuple(Evidence(Candidate.of({"n": n}), None) for n in range(9))
LITTLE, MUCH = 0.2 * (1.0 - SURE), 4.0 * (1.0 - SURE)


def told(outlooks: Sequence[Outlook | None], asked: list[int] | None = None) -> Outlooks:
    """Return outlooks, the first of them before any launch; what is asked for is noted."""

    def look(seen: tuple[Evidence, ...]) -> Outlook | None:
        if asked is not None:
            asked.append(len(seen))
        return outlooks[len(seen)]

    return Outlooks(look)


def chances(*found: float) -> list[Outlook]:
    return [Outlook(chance, chance / 10.0, 1) for chance in found]


def test_the_least_sure_of_the_last_launches_counts() -> None:
    outlooks = told(chances(MUCH, LITTLE, MUCH, LITTLE, LITTLE / 2, LITTLE / 4, MUCH))
    found = [outlooks.after(SEEN[:n]) for n in range(2, 7)]
    assert [one and one.chance for one in found] == [MUCH, MUCH, MUCH, LITTLE, MUCH]
    assert [one and one.enough for one in found] == [False, False, False, True, False]


def test_fewer_launches_than_it_takes_tell_nothing() -> None:
    outlooks = told([None, *chances(LITTLE, LITTLE, LITTLE)])
    assert [outlooks.after(SEEN[:n]) for n in range(HOLDS)] == [None] * HOLDS
    assert outlooks.after(SEEN[:HOLDS]) == Outlook(LITTLE, LITTLE / 10.0, 1)


def test_a_machine_with_effects_of_its_own_is_asked_about_more_often() -> None:
    outlooks = [replace(one, holds=HOLDS + 2) for one in chances(MUCH, *[LITTLE] * (HOLDS + 2))]
    found = [told(outlooks).after(SEEN[:n]) for n in (HOLDS, HOLDS + 1, HOLDS + 2)]
    assert [one is not None and one.enough for one in found] == [False, False, True]
    assert found[-1] is not None
    assert f"after each of the last {HOLDS + 2} launches" in found[-1].reason


@pytest.mark.parametrize(("effects", "launches"), [(0.1, HOLDS), (1.0, HOLDS), (2.0, 2 * HOLDS), (9.0, LARGE * HOLDS)])
def test_how_often_the_models_have_to_be_sure_grows_with_the_effects_they_found(effects: float, launches: int) -> None:
    at = space()
    beliefs = Beliefs(Chart.of(at, engine(at)), at, ()).soberly(tuple(evidence_of(search(at, 14), at)))
    weights = beliefs.residual.weights.copy()
    weights[1:-2] *= (0.999 * effects * beliefs.residual.noise / beliefs.residual.own_deviation) ** 2
    unseen = replace(beliefs.residual, weights=weights, inverse=np.zeros_like(beliefs.residual.inverse))
    found = replace(beliefs, residual=unseen)
    assert outlook(found, np.array([0, 1]), np.array([2]), 1.0).holds == launches


def test_where_nothing_is_left_but_what_cannot_pay_no_launch_is_waited_for() -> None:
    barren = Outlook(0.0, 0.0, dropped=("weak is dropped",), barren=True)
    assert told([*chances(MUCH, MUCH), barren]).after(SEEN[:2]) == barren


def test_earlier_launches_are_asked_about_only_where_they_decide_and_once() -> None:
    asked: list[int] = []
    outlooks = told(chances(MUCH, MUCH, MUCH, MUCH, LITTLE, LITTLE, LITTLE), asked)
    for n in (3, 4, 5, 6, 6):
        outlooks.after(SEEN[:n])
    assert asked == [3, 4, 5, 6]
    outlooks.after((*SEEN[1:6], SEEN[0]))
    assert asked[4:] == [6, 5, 4], "other launches, however many"


def test_deviations_are_widened_by_what_surprised_just_now() -> None:
    at = space()
    chart = Chart.of(at, engine(at))
    evidence = tuple(evidence_of(search(at, 14), at))
    last = evidence[-1]
    assert last.targets is not None
    surprised = Evidence(last.candidate, tuple(log + 1.0 for log in last.targets), last.levels)
    usual, after = (Beliefs(chart, at, ()).forecasts(known) for known in (evidence, (*evidence[:-1], surprised)))
    assert usual.inflation(evidence) >= usual.miss(evidence)
    known = (*evidence[:-1], surprised)
    assert after.inflation(known) == pytest.approx(after.miss(known))
    assert after.inflation(known) > 2.0 * usual.inflation(evidence)


def test_while_nothing_keeps_the_constraints_the_search_goes_on_for_one_that_may() -> None:
    free = search(space(), 6)
    best = max(level.decode_speed.est for record in free for level in record.levels if level.level == "c1")
    for least, enough in ((1.03 * best, False), (100.0 * best, True)):
        at = space(f"{TEXT}constraints: [{{decode_speed: {{min: {least}}}, level: c1}}]\n")
        guide, evidence = Guide(at, engine(at)), evidence_of(free, at)
        found = guide.outlook(evidence)
        assert found is not None
        assert (found.kept, found.enough) == (False, enough)
        pays = guide.paying(evidence, scatter=0.0)
        assert (pays is None) is enough
    assert found.reason.startswith("no launched candidate keeps the constraints, and by this search's model no untried")
    assert "finalists" not in found.reason


def test_the_last_launch_says_whether_any_keeps_the_constraints() -> None:
    none = [Outlook(chance, 0.0, 1, kept=False) for chance in (LITTLE, 2.0 * LITTLE)]
    found = told([*none, *chances(LITTLE)]).after(SEEN[:2])
    assert found is not None
    assert (found.chance, found.kept) == (2.0 * LITTLE, True)
