"""Launches beside other work: what is recorded, said while the study runs, and told with its answer."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked import python_m
from search_samples import baseline, chain, record, space
from search_simulated import SPACE, write
from test_search_crosschecks import BUSY, seen

from spectune.analysis.launch_noise import ASSUMED_SD
from spectune.machine import CoresUsed, Others
from spectune.search import TrialRecord
from spectune.search.answer.disturbed import busy_remark, summary_of
from spectune.search.answer.summary import summarise
from spectune.search.planning.plan import Stop

CROWDED = Others(CoresUsed(2, 0.4, 1.6, 0.5))
QUIET = Others(CoresUsed(2, 1.5, 0.05, 0.3))
ON_A_GPU = Others(None, {"GPU 1 (python, pid 7)": 43})


def beside(found: TrialRecord, others: Others) -> TrialRecord:
    return dataclasses.replace(found, others={"c1": QUIET, "c8": others})


def test_cores_taken_are_a_note_and_a_gpu_shared_is_no_measurement() -> None:
    assert seen(BUSY, others=QUIET, most_running=16).notes() == []
    assert seen(BUSY, others=CROWDED).notes() == ["others used 1.6 of 2 cores while c8 was measured"]
    assert seen(BUSY, others=CROWDED).contradictions() == []
    (mismatch,) = seen(BUSY, others=ON_A_GPU).contradictions()
    assert mismatch.field == "another program's share of GPU 1 (python, pid 7) at c8"
    assert (mismatch.wanted, mismatch.got) == ("0 %", "43 %")
    shared = [beside(record(n, one, suspect=[mismatch]), ON_A_GPU) for n, one in enumerate((baseline(), chain(3)))]
    made = summarise(shared, space(), None, name="s", engine="SGLang 0.5.23").to_json()
    assert made["recommended"] is None
    assert made["beside"].startswith("made beside other work: 2 of 2 launches; others used up to 43 % of GPU 1")


def test_a_record_keeps_what_others_used() -> None:
    found = beside(record(0, baseline()), CROWDED)
    assert TrialRecord.from_json(found.to_json(), "here") == found
    older = {name: value for name, value in found.to_json().items() if name != "others"}
    assert TrialRecord.from_json(older, "here").others == {}


def test_what_is_said_of_launches_beside_other_work() -> None:
    quiet, crowded = beside(record(0, baseline()), QUIET), beside(record(3, chain(3)), CROWDED)
    assert busy_remark(quiet) is None
    said = busy_remark(crowded)
    assert said is not None
    assert "others used 1.6 of 2 cores while c8 was measured" in said
    assert "the same command" in said
    assert summary_of([quiet, quiet]) is None
    assert (summary_of([quiet, crowded, quiet]) or "").startswith(
        "made beside other work: 1 of 3 launches; others used up to 1.6 of 2 cores (launch 3, c8)"
    )


def words(speeds: list[float], others: Others) -> str:
    found = [beside(record(number, baseline()), others) for number in (0, 1)]
    found += [beside(record(2 + number, chain(3), speed, accept=2.4), others) for number, speed in enumerate(speeds)]
    made = summarise(found, space(), Stop("enough", 4.0), name="s", engine="SGLang 0.5.23").to_json()
    return " ".join(made["details"])


@pytest.mark.parametrize(
    ("speed", "others", "told"),
    [(101.0, CROWDED, True), (101.0, QUIET, False), (160.0, CROWDED, False)],
    ids=["undecided", "undecided on a quiet machine", "clear"],
)
def test_the_verdict_says_so_where_a_reader_asks_why(speed: float, others: Others, *, told: bool) -> None:
    assert ("made beside other work" in words([speed], others)) is told


def test_the_verdict_says_so_where_launches_scatter_more_than_assumed() -> None:
    repeats = [record(number, baseline(), speed) for number, speed in enumerate((100.0, 130.0, 80.0, 120.0))]
    found = [beside(dataclasses.replace(one), CROWDED) for one in [*repeats, record(4, chain(3), 400.0, accept=2.4)]]
    made = summarise(found, space(), Stop("enough", 4.0), name="s", engine="SGLang 0.5.23").to_json()
    assert made["noise"]["launch_sd"] > ASSUMED_SD
    assert "made beside other work: 5 of 5 launches" in " ".join(made["details"])


STUDY = """
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from search_simulated import Silent
from spectune.engines.open import open_engine
from spectune.search import StudyFolder, open_study, run_study
from spectune.space import load_space
space = load_space("sim.yaml")
engine, folder, watcher = open_engine(space), StudyFolder(Path("study")), Silent()
folder.root.mkdir()
open_study(folder, space, engine, None)
ended = asyncio.run(run_study(folder, space, engine, watcher))
print(json.dumps([watcher.lines, [record.to_json()["others"] for record in ended.records]]))
"""


def test_a_study_beside_burning_processes_says_so_at_once_and_once(tmp_path: Path) -> None:
    write(tmp_path, virtual=False, budget={"trials": 2}, workload=SPACE["workload"] | {"level_time_limit": "1s"})
    (tmp_path / "a_study.py").write_text(STUDY)
    cores = len(os.sched_getaffinity(0))
    burn = "import time\nwhile time.process_time() < 120: pass"
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(2 * cores)]  # one a core leaves room
    try:
        done = python_m("a_study", Path(__file__).parent, cwd=tmp_path)  # a process that has started none of them
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert done.returncode == 0, done.stderr
    lines, others = json.loads(done.stdout)
    (before,) = [line for line in lines if line.startswith("other programs use")]
    assert "ps -eo pcpu" in before
    assert len([line for line in lines if "this machine is busy" in line]) == 1
    assert lines.index(before) < min(number for number, line in enumerate(lines) if "this machine is busy" in line)
    for launch in others:
        assert set(launch) == {"c1", "c4"}
        assert all(level["cores"]["others"] > 0.2 * cores for level in launch.values())
