import math
import random

import pytest
from analysis_records import made_record
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.estimate import Estimate
from spectune.analysis.joint_swings import CommonSwings, joint_swings
from spectune.analysis.measure import measure_level
from spectune.analysis.steady import shares

LENGTH_S, BLOCKS = 20.0, 20


def together(rng, *, requests=16, swing=0.0, jitter=0.0):
    """Requests that all decode throughout, 50 chunks a second; every second has a pace of its own, the same for all."""
    paces = [1.0 + rng.gauss(0.0, swing) for _ in range(100)]
    records = []
    for _ in range(requests):
        now, tokens, chunks = 0.0, 1, [(0.0, 1)]
        while now < LENGTH_S + 1.0:
            now += 0.02 * paces[int(now)] * (1.0 + rng.uniform(-jitter, jitter))
            tokens += 2
            chunks.append((now, tokens))
        records.append(made_record(chunks=tuple(chunks), verifies=len(chunks) - 1, correct=len(chunks) - 1))
    return records


def swings(records):
    return joint_swings(shares(records, (0.0, LENGTH_S)), (0.0, LENGTH_S))


def test_an_even_pace_swings_not_at_all():
    assert swings(together(random.Random(1))).relative_sd < 1e-3


def test_a_pace_that_all_share_adds_what_it_scatters_by():
    found = [swings(together(random.Random(seed), swing=0.05)).relative_sd for seed in range(12)]
    assert sum(found) / len(found) == pytest.approx(0.05 / math.sqrt(BLOCKS), rel=0.25)


def test_scatter_that_each_request_has_for_itself_is_left_to_the_bootstrap():
    assert swings(together(random.Random(1), jitter=0.3)).relative_sd < 0.002


def test_intervals_of_the_decode_speed_cover_a_truth_that_swings():
    """Sixteen requests see the same twenty seconds: their speeds agree with each other, and not with the truth."""
    levels = [measure_level("c16", together(random.Random(s), swing=0.05), (0.0, LENGTH_S)) for s in range(60)]
    for name, truth in (("decode_speed", 100.0), ("cycle_ms", 20.0)):
        figures = [getattr(level, name) for level in levels]
        assert sum(figure.lo <= truth <= figure.hi for figure in figures) >= 53


@given(
    est=st.floats(0.1, 1e4), down=st.floats(0.0, 0.5), up=st.floats(0.0, 0.5), sd=st.floats(0.0, 0.5),
    dof=st.integers(1, 19),
)  # fmt: skip
def test_widening_never_narrows(est, down, up, sd, dof):
    figure = Estimate(est, est * (1 - down), est * (1 + up))
    wide = CommonSwings(sd, dof).widen(figure)
    assert wide.est == est
    assert wide.lo <= figure.lo + 1e-9 * est
    assert wide.hi >= figure.hi - 1e-9 * est


def test_what_is_unknown_stays_unknown():
    wide = CommonSwings(0.1, 3).widen(Estimate(5.0, -math.inf, math.inf))
    assert (wide.lo, wide.hi) == (-math.inf, math.inf)
