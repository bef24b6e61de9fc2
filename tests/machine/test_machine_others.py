"""Who uses the cores and the GPUs: real processes that burn time, and a driver that names who computes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_driver import FakeDriver
from hypothesis import given
from hypothesis import strategies as st

from spectune.machine import CoreMeter, CoresUsed, Others, cores_in_use
from spectune.machine.cores import busy_seconds, own_seconds, waiting_seconds

BURN = "import time\nwhile time.process_time() < 300: pass"
# Works off a second of processor time, in a child that ends and in one that goes on, and says what the cores did.
OWN = """
import json, subprocess, sys, time
from spectune.machine import CoreMeter
from spectune.machine.cores import own_seconds
work = "import time\\nwhile time.process_time() < 0.6: pass"
meter = CoreMeter()
before = own_seconds()
subprocess.run([sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}])"])
living = subprocess.Popen([sys.executable, "-c", work + "\\nprint(flush=True); input()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
living.stdout.readline()
own, used = own_seconds() - before, meter.read()
living.communicate(b"\\n")
print(json.dumps([own, used.own, used.others, used.cores]))
"""
# Looks on until others have burnt a second of its cores.
LOOK = """
import json, time
from spectune.machine import CoreMeter
meter, began = CoreMeter(), time.monotonic()
while True:
    used = meter.read_after(0.2)
    passed = time.monotonic() - began
    if used.others * passed > 1.0 or passed > 300:
        print(json.dumps([used.own, used.others, passed]))
        break
    time.sleep(0.1)
"""


def run(program: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True)
    return list(json.loads(done.stdout))


@pytest.fixture
def burner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing but use a core, for minutes at most; it is no child of those who look."""
    process = subprocess.Popen([sys.executable, "-c", BURN])
    yield process
    process.kill()
    process.wait()


def test_what_a_tree_uses_is_its_own_the_ended_and_their_children_too() -> None:
    own, used, _, cores = run(OWN)
    assert own > 1.1
    assert 0 < used <= cores


def test_what_a_stranger_uses_is_of_others(burner: subprocess.Popen[bytes]) -> None:
    own, others, passed = run(LOOK)
    assert burner.poll() is None
    assert others * passed > 1.0
    assert own < others


def test_time_of_own_processes_only_grows() -> None:
    seen = [own_seconds() for _ in range(5)]
    assert seen == sorted(seen)


TICKS = st.integers(0, 10**9)


@given(rows=st.lists(st.lists(TICKS, min_size=8, max_size=10), min_size=1, max_size=6), data=st.data())
def test_busy_is_all_but_idle_on_the_cores_asked_for(rows: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(range(len(rows))), min_size=1))
    lines = [f"cpu{number} " + " ".join(map(str, row)) for number, row in enumerate(rows)]
    text = "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 5 6", "ctxt 7", ""])
    wanted = sum(sum(rows[number][:8]) - rows[number][3] - rows[number][4] for number in chosen) / 100
    assert busy_seconds(text, chosen) == pytest.approx(wanted)


@pytest.mark.parametrize("text", ["", "cpu 1 2 3", "cpu0 a b c", "cpu7 1 2 3 4 5 6 7 8", "\n\n"])
def test_a_kernel_that_does_not_tell(text: str) -> None:
    assert busy_seconds(text, {0, 1}) is None


def test_waiting_is_read_in_seconds() -> None:
    full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"
    assert waiting_seconds(f"some avg10=0.07 avg60=1.52 avg300=2.50 total=15456312061\n{full}") == 15456.312061
    assert waiting_seconds(full) is None
    assert waiting_seconds("") is None


def test_a_machine_without_these_files_says_nothing(tmp_path: Path) -> None:
    assert CoreMeter(tmp_path).read_after(0.2) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu0 garbage\n")
    assert CoreMeter(tmp_path).read_after(0.2) is None


@pytest.mark.parametrize(
    ("used", "short"),
    [
        (CoresUsed(2, 0.4, 1.6, 0.5), True),
        (CoresUsed(2, 1.9, 0.1, 0.5), False),  # the engine waits for its own threads
        (CoresUsed(64, 8.0, 10.0, 0.01), False),  # there is room for all
        (CoresUsed(64, 8.0, 56.0, 0.9), True),
        (CoresUsed(64, 8.0, 10.0), False),
        (CoresUsed(64, 30.0, 30.0), True),
    ],
)
def test_cores_are_missed_where_others_take_some_and_there_is_no_room(used: CoresUsed, *, short: bool) -> None:
    assert used.short is short
    assert Others(used).noticeable is short
    assert Others(used, {"GPU 0 (python, pid 7)": 5}).noticeable


def test_what_others_used_in_words_and_back() -> None:
    used = Others(CoresUsed(2, 0.4, 1.62, 0.5), {"GPU 1 (python, pid 7)": 43})
    assert str(used) == "1.6 of 2 cores and 43 % of GPU 1 (python, pid 7)"
    assert Others.from_json(json.loads(json.dumps(used.to_json()))) == used
    assert Others.from_json(json.loads(json.dumps(Others().to_json()))) == Others()
    for damaged in ({"cores": "many", "on_gpus": {}}, {"cores": None, "on_gpus": {"GPU 1": "much"}}):
        with pytest.raises((TypeError, KeyError)):
            Others.from_json(damaged)


def test_a_busy_machine_is_a_finding_before_anything_is_launched() -> None:
    assert cores_in_use(None) == []
    assert cores_in_use(CoresUsed(64, 0.1, 10.0)) == []
    (found,) = cores_in_use(CoresUsed(2, 0.1, 1.2))
    assert (found.name, found.severity) == ("cores-in-use", "warning")
    assert found.seen == "other programs use 1.2 of 2 cores"
    assert "ps -eo pcpu" in found.way_out


def test_who_computes_on_a_gpu_of_the_launch(driver: FakeDriver) -> None:
    """A stranger that computes is named with its share; one that only holds memory, or another launch's GPU, is not."""
    strangers = [
        subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) for _ in "ab"
    ]
    busy, idle = (process.pid for process in strangers)
    driver.says(
        "count 2",
        f"0.processes {busy}:512,{idle}:512,4000000:1",
        f"0.utilization {busy}:12,{busy}:43,{idle}:1,4000000:99",
        f"1.processes {busy}:512",
        f"1.utilization {busy}:80",
    )
    program = """
import json, os
from spectune.machine import MachineWatch
def seen(**chosen):
    return dict(MachineWatch({}, **chosen).look({os.getpid()}).on_gpus)
print(json.dumps([seen(gpus=1), seen(gpus=0), seen(gpus=1, variable="1"), seen(gpus=2)]))
"""
    try:
        first, none, second, both = driver.answer(program)
    finally:
        for process in strangers:
            process.communicate()
    assert list(first.values()) == [43]
    assert f"pid {busy}" in next(iter(first))
    assert none == {}
    assert list(second.values()) == [80]
    assert list(both.values()) == [43, 80]


def test_the_engine_itself_is_no_other(driver: FakeDriver) -> None:
    program = f"""
import json, os, pathlib
from spectune.machine import MachineWatch
pathlib.Path({str(driver.state)!r}).write_text(
    f"count 1\\n0.processes {{os.getpid()}}:90000\\n0.utilization {{os.getpid()}}:99\\n"
)
watch = MachineWatch({{}}, gpus=1)
print(json.dumps([dict(watch.look({{os.getpid()}}).on_gpus), dict(watch.look({{1}}).on_gpus)]))
"""
    alone, stranger = driver.answer(program)
    assert alone == {}
    assert list(stranger.values()) == [99]
