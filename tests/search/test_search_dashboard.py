"""A study's database in Optuna's dashboard: another program's view of it, while the study runs and after."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import spectune
from readme_commands import ROOT

from benchmarks.services.daemon import free_port

DASHBOARD = Path(sys.executable).with_name("optuna-dashboard")
# The guided search may see the end of it before.
SEARCH = ["search", "quickstart", "--engine", "simulated", "--virtual", "--sampler", "random", "--trials"]
STORAGE = re.search(r"bin/optuna-dashboard (\S+)$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=240) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a simulated study that goes by the README's name, and goes on while it is looked at."""
    folder = tmp_path_factory.mktemp("watched")
    done = spectune(*SEARCH, "9", cwd=folder)
    assert (folder / "studies/quickstart/study.db").is_file(), done.stderr
    return folder


@pytest.fixture
def dashboard(folder: Path) -> Iterator[str]:
    port = free_port()
    assert STORAGE is not None, "the README says how to watch a study"
    with (folder / "dashboard.log").open("w") as log:
        program = subprocess.Popen(
            [DASHBOARD, STORAGE[1], "--port", str(port)], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                asked(f"{url}/api/studies")
                break
            except OSError:
                assert program.poll() is None, (folder / "dashboard.log").read_text()
                time.sleep(0.5)
        yield url
    finally:
        program.terminate()
        program.wait(timeout=240)


def test_the_dashboard_opens_a_study_and_follows_it(folder: Path, dashboard: str) -> None:
    (study,) = asked(f"{dashboard}/api/studies")["study_summaries"]
    assert study["study_name"] == "quickstart"
    assert study["directions"] == ["maximize", "maximize"]
    shown = asked(f"{dashboard}/api/studies/{study['study_id']}")
    made = len(list((folder / "studies/quickstart/trials").iterdir()))
    assert len(shown["trials"]) == made
    attributes = {entry["key"]: entry["value"] for entry in shown["trials"][0]["user_attrs"]}
    assert "no speculation" in attributes["label"]
    assert shown["objective_names"] == ["decode_speed@c1", "output_throughput@c8"]
    more = spectune(*SEARCH, "11", cwd=folder)
    assert more.returncode == 0, more.stderr
    later: list[Any] = []
    for _ in range(240):  # it looks at the database every few seconds
        later = asked(f"{dashboard}/api/studies/{study['study_id']}?after=0")["trials"]
        if len(later) > made:
            break
        time.sleep(1)
    assert len(later) > made
