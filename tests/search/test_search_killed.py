"""A search that is killed, or told twice to end, leaves nothing running and no secret, and goes on where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
from forked import spectune
from readme_commands import SPECTUNE
from search_simulated import ALONE, SPACE, write

from benchmarks.services.daemon import eventually
from spectune.engines.simulated.engine import FIRED_FILE
from spectune.search import Status, StudyFolder
from spectune.serving.processes import is_alive


def test_kill_9_during_the_canary(tmp_path: Path) -> None:
    # After four requests, in the middle of the seven of the canary, the engine falls silent, once in the study.
    fault = {"when": {}, "at": "bench", "kind": "hang", "times": 1}
    write(tmp_path, virtual=False, profile={"faults": [fault]}, budget={"trials": 2}, workload=ALONE)
    study = tmp_path / "studies/sim"
    trial = study / "trials/0000-baseline"
    with subprocess.Popen([SPECTUNE, "search", "sim.yaml"], cwd=tmp_path, stderr=subprocess.PIPE) as search:
        assert eventually((study / FIRED_FILE).exists)
        tree = psutil.Process(search.pid).children(recursive=True)
        assert len(tree) > 3, "a guard, a launcher and its workers"
        search.kill()
    assert eventually(lambda: not any(is_alive(process) for process in tree))
    assert not (trial / "canary.json").exists()
    assert not (trial / "result.json").exists()
    done = spectune("search", "sim.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = StudyFolder(study).records()
    found = [(record.trial, record.status) for record in records]
    assert found == [(0, Status.OK), (1, Status.OK)], [(record.failure, record.suspect) for record in records]


def test_a_second_ctrl_c_waits_for_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """The engine does not obey: the first Ctrl-C gives it 8 s, the second leaves the rest to its guard."""
    secret = "correct-horse-battery"
    engine = SPACE["engine"] | {"virtual": False, "args": SPACE["engine"]["args"] | {"served-model-name": secret}}
    long = {"level_time_limit": "10m", "precision": 0.0001}  # it is still measured when the tree is suspended
    write(tmp_path, engine=engine, budget={"trials": 2}, workload=ALONE | long)
    trial = tmp_path / "studies/sim/trials/0000-baseline"
    env = {**os.environ, "SERVICE_PASSWORD": secret}
    with subprocess.Popen([SPECTUNE, "search", "sim.yaml"], cwd=tmp_path, stderr=subprocess.PIPE, env=env) as search:
        assert eventually((trial / "canary.json").exists)
        (guard,) = psutil.Process(search.pid).children()
        tree = guard.children(recursive=True)
        for process in tree:
            process.suspend()
        assert secret in (trial / "server.log").read_text()
        search.send_signal(signal.SIGINT)
        time.sleep(1.0)  # it waits for the engine; nothing is judged by this time
        search.send_signal(signal.SIGINT)
        _, said = search.communicate()
    assert search.returncode == 130, said
    assert said.decode().endswith("interrupted: nothing was finished yet; the same command continues the study sim\n")
    assert secret not in (trial / "server.log").read_text()
    assert eventually(lambda: not any(is_alive(process) for process in (guard, *tree)))
