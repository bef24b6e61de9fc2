"""`spectune doctor` on this machine, which has no GPU or has one: it is truthful, and touches nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from forked import spectune
from readme_commands import ROOT, SPECTUNE

SPACE = """schema: 1
name: mine
engine: {{python: {python}, gpus: {gpus}, args: {{model-path: {model}{more}}}}}
search: {{speculative-algorithm: [none]}}
workload: {{prompts: builtin:tiny, levels: [{{concurrency: 1}}]}}
"""

TRIES = 5  # another spectune's search on this machine may end such a process, rightly; doctor would end them all


def doctor(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return spectune("doctor", *arguments, cwd=cwd, **env)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode in (0, 1), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["would_fail"] == bool(done.returncode)
    return answer


def findings(answer: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in answer["findings"]}


def test_it_reads_well_and_leaves_nothing(tmp_path: Path) -> None:
    done = doctor(cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "kernel" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("a search ")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_a_finding(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd '{gone}' && rmdir '{gone}' && exec '{SPECTUNE}' doctor --json"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert findings(told(done))["folder-gone"]["severity"] == "fatal"


def test_the_worst_comes_first(tmp_path: Path) -> None:
    answer = told(
        doctor("--json", cwd=tmp_path, NCCL_ALGO="Tree", SGLANG_SIMULATE_ACC_LEN="3", SGLANG_API_KEY="hunter2")
    )
    assert answer["would_fail"]
    severities = [finding["severity"] for finding in answer["findings"]]
    assert severities == sorted(severities, key=["fatal", "warning", "info"].index)
    assert findings(answer)["nccl-variable"]["way_out"] == "unset NCCL_ALGO"
    assert findings(answer)["faked-acceptance"]["severity"] == "fatal"
    assert "hunter2" not in json.dumps(answer)


def test_leftover_schedulers_are_found_and_left_alone(tmp_path: Path) -> None:
    """sglang#31645 #16756 #23627 #2457: a scheduler without an owner is named, with the command that ends it."""
    for _ in range(TRIES):
        left = subprocess.Popen(
            ["sglang::scheduler_TP3", "-c", "import sys; sys.stdin.read()"], executable=sys.executable,
            stdin=subprocess.PIPE, env={**os.environ, "SPECTUNE_SERVER_ID": "of-a-killed-search"},
        )  # fmt: skip
        try:
            answer = told(doctor("--json", cwd=tmp_path))
            left_alone = left.poll() is None
        finally:
            left.communicate()
        if left_alone:
            break
    assert left_alone
    said = [finding for finding in answer["findings"] if finding["name"] == "leftover-engine"]
    assert any(str(left.pid) in one["seen"] and str(left.pid) in one["way_out"] for one in said)
    assert {"pid": left.pid, "name": "sglang::scheduler_TP3", "ours": True} in answer["leftovers"]["processes"]


def test_a_space_without_its_engine_and_model(tmp_path: Path) -> None:
    space = tmp_path / "mine.yaml"
    space.write_text(SPACE.format(python=sys.executable, gpus=64, model="/nowhere/model", more=", port: 22"))
    answer = told(doctor(str(space), "--json", cwd=tmp_path))
    seen = [one["seen"] for one in answer["findings"] if one["severity"] == "fatal"]
    assert any("no sglang" in one for one in seen)
    assert any("asks for 64 GPUs" in one for one in seen)
    assert any("mine.yaml:3" in one and "/nowhere/model" in one for one in seen)


def test_a_bad_space_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("schema: 1\nnmae: x\n")
    done = doctor("bad.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.yaml:2" in done.stderr
    assert done.stdout == ""


def test_a_running_study_is_said(tmp_path: Path) -> None:
    study = tmp_path / "studies/mine"
    study.mkdir(parents=True)
    (study / "space.yaml").write_text("")
    assert "study-running" not in findings(told(doctor("--json", cwd=tmp_path)))
    with (study / ".lock").open("w"):
        said = findings(told(doctor("--json", cwd=tmp_path)))["study-running"]
    assert "the study mine is being run" in said["seen"]
    assert str(os.getpid()) in said["seen"]


def test_the_quickstart_needs_no_gpu(tmp_path: Path) -> None:
    """No false alarm: nothing that is wrong with GPUs stops a search on the CPU."""
    answer = told(doctor(str(ROOT / "search_spaces/quickstart.yaml"), "--json", cwd=tmp_path, CUDA_VISIBLE_DEVICES=""))
    assert not [
        one for one in answer["findings"] if one["severity"] == "fatal" and one["name"].startswith(("gpu", "driver"))
    ]


def test_a_folder_with_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    (folder := tmp_path / os.fsdecode(b"a\xffb")).mkdir()
    assert any(r"a\udcffb" in disk["path"] for disk in told(doctor("--json", cwd=folder))["disks"])
