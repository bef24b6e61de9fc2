"""The time of day may be set while a launch is measured; seconds of the epoch in its log then mean two things."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest
from search_simulated import chain, write
from sglang_log_lines import decode

from spectune.engines.address import Address
from spectune.engines.open import open_engine
from spectune.engines.served import Served
from spectune.machine import MachineWatch
from spectune.search.launch.launched import ServedLaunch
from spectune.space import load_space

HOUR_S = 3600.0


def lines(begin_s: float, running: int) -> str:
    """Eleven seconds of a log."""
    stamps = [datetime.fromtimestamp(begin_s + second).isoformat(" ", "seconds") for second in range(11)]  # noqa: DTZ006
    return "".join(decode(500.0, running=running, stamp=stamp) for stamp in stamps)


@pytest.mark.parametrize(
    ("set_by_s", "seen"), [(0.0, 4.0), (-HOUR_S, None), (HOUR_S, None)], ids=["left alone", "set back", "set ahead"]
)
def test_a_level_counts_no_lines_of_another_time(
    set_by_s: float, seen: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = load_space(write(tmp_path))
    engine, log = open_engine(space), tmp_path / "server.log"
    launch = ServedLaunch(
        engine, engine.command(chain(2), host="127.0.0.1", port=1), address=Address.for_launch({}), port=1, log=log,
        hang_s=45.0, notes=lambda _: None, machine=MachineWatch({}, engine.title, gpus=0, variable=None),
    )  # fmt: skip
    begin_s, clock = launch.now(), time.time
    log.write_text(lines(clock() + set_by_s, running=1 if set_by_s else 4))  # of another level, where it was set
    monkeypatch.setattr(time, "time", lambda: clock() + set_by_s)
    served = launch.served(begin_s - 0.5, begin_s + 11.0, running=4)
    assert served == (Served() if seen is None else Served(graph_used=True, running=seen, queued=0.0))
