"""The README's main command on the real engine: killed, refused, interrupted, continued, and answered."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from forked import spectune
from readme_commands import SPECTUNE, main_command, spectune_commands

from spectune.engines.cpu_reference import Runtime
from spectune.serving import reserve_ports
from spectune.space import Candidate

pytestmark = pytest.mark.engine

GONE_WITHIN_S = 60  # an engine has 8 s to leave; all else takes its time where the machine is busy
LAUNCH_S = 600
STUDY_S = 3600


def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


class Run:
    """`spectune search` in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out.txt"
        with self.out.open("w") as out, (folder / "err.txt").open("a") as err:
            self.process = subprocess.Popen(
                [SPECTUNE, *main_command()], cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self.tree: set[psutil.Process] = set()

    def during(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something to happen while it runs, taking note of its processes."""

        def seen() -> bool:
            assert self.process.poll() is None, f"it ended before: {what}"
            self.tree |= set(psutil.Process(self.process.pid).children(recursive=True))
            return condition()

        until(seen, LAUNCH_S, what)

    def left(self) -> list[psutil.Process]:
        return [p for p in self.tree if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@dataclass(frozen=True)
class Lived:
    """A study that has seen everything, and what was seen of it."""

    folder: Path
    output: str
    left_after_kill: list[Any]
    left_after_interrupt: list[Any]
    interrupted_code: int
    interrupted_finished: bool
    seconds_to_interrupt: float

    @property
    def study(self) -> Path:
        return self.folder / "studies/quickstart"

    def results(self) -> list[dict[str, Any]]:
        found = [json.loads(p.read_text()) for p in self.study.glob("trials/*/result.json")]
        return sorted(found, key=lambda result: result["trial"])

    def spectune(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return spectune(*arguments, cwd=self.folder)


@pytest.fixture(scope="module")
def lived(cpu_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Kill -9 in trial 1; make trial 1 one that the engine dies of; Ctrl-C in trial 2; then let it end."""
    folder = tmp_path_factory.mktemp("lived")
    trials = folder / "studies/quickstart/trials"

    first = Run(folder)
    first.during(lambda: "server_args" in text(trials / "0001/server.log"), "the engine of trial 1 starts")
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    poll_gone(first)
    left_after_kill = first.left()

    force(trials / "0001/candidate.json", num_steps=2, eagle_topk=4, num_draft_tokens=64)
    second = Run(folder)
    second.during((trials / "0001/result.json").exists, "trial 1 ends")
    second.during((trials / "0002/server_info.json").exists, "trial 2 is measured")
    began = time.monotonic()
    os.kill(second.process.pid, signal.SIGINT)
    code = second.process.wait(timeout=LAUNCH_S)
    finished = (trials / "0002/result.json").exists()
    poll_gone(second)
    seconds = time.monotonic() - began

    third = Run(folder)
    assert third.process.wait(timeout=STUDY_S) == 0, (folder / "err.txt").read_text()
    return Lived(folder, third.out.read_text(), left_after_kill, second.left(), code, finished, seconds)


def poll_gone(run: Run) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while run.left() and time.monotonic() < deadline:
        time.sleep(0.1)


def text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def force(path: Path, **numbers: int) -> None:
    """Put numbers past the rules into a launch that was begun."""
    content = json.loads(path.read_text())
    changed = {f"speculative-{name.replace('_', '-')}": value for name, value in numbers.items()}
    candidate = Candidate.of({**content["values"], **changed})
    path.write_text(json.dumps({**content, **candidate.to_json()}))


def test_kill_9_leaves_no_engine(lived: Lived) -> None:
    assert lived.left_after_kill == []


def test_ctrl_c_ends_the_engine_and_says_130(lived: Lived) -> None:
    assert lived.interrupted_code == 130
    assert lived.left_after_interrupt == []
    assert lived.seconds_to_interrupt < GONE_WITHIN_S
    assert not lived.interrupted_finished, "it waits for no launch to be measured"
    assert "the same command continues the study" in text(lived.folder / "err.txt")


def test_the_killed_launch_was_made_again_and_none_is_missing_or_double(lived: Lived) -> None:
    results = lived.results()
    assert [result["trial"] for result in results] == list(range(10))
    searched = [r["candidate_id"] for r in results if r["role"] == "search"]
    assert len(set(searched)) == len(searched)


def test_a_launch_the_engine_dies_of_is_classified_in_the_logs_own_words(lived: Lived) -> None:
    failed = lived.results()[1]
    assert failed["status"] == "failed"
    assert failed["failure_class"] == "unsupported"
    assert "selected index k out of range" in failed["failure_message"]
    assert failed["levels"] == []


def test_everything_else_was_measured_as_asked_for(lived: Lived) -> None:
    others = [r for r in lived.results() if r["trial"] != 1]
    assert {r["status"] for r in others} == {"ok"}
    assert [level["level"] for level in others[0]["levels"]] == ["c1", "c8"]
    assert all(level["failed"] == 0 and level["n_requests"] > 0 for r in others for level in r["levels"])


def test_accept_length_is_one_without_speculation_and_differs_by_class_with_it(lived: Lived) -> None:
    ok = [r for r in lived.results() if r["status"] == "ok"]
    for result in ok:
        speculative = result["values"]["speculative-algorithm"] != "none"
        length = result["levels"][0]["accept_length"][0]
        assert (length > 1.2) if speculative else (length == 1.0)
    strong = next(r for r in ok if "strong" in str(r["values"].get("speculative-draft-model-path")))
    by_class = {name: e[0] for name, e in strong["levels"][0]["accept_length_by_class"].items()}
    assert set(by_class) == {"prose", "code", "counting"}
    assert max(by_class.values()) > 1.05 * min(by_class.values())


def test_every_prompt_is_used_once(lived: Lived) -> None:
    seen: set[str] = set()
    for path in lived.study.glob("trials/*/level-*.jsonl"):
        ids = [json.loads(line)["prompt_id"] for line in path.read_text().splitlines()]
        assert not seen & set(ids), path
        assert len(set(ids)) == len(ids)
        seen |= set(ids)
    assert len(seen) >= sum(level["n_requests"] for result in lived.results() for level in result["levels"])


def test_the_answer_ends_with_files_that_exist(lived: Lived) -> None:
    *_, launch, report = lived.output.strip().splitlines()
    assert launch.startswith("launch file: ")
    assert report.startswith("report: ")
    for line in (launch, report):
        assert (lived.folder / line.partition(": ")[2]).is_file()
    summary = json.loads((lived.study / "summary.json").read_text())
    assert " ".join(summary["sentence"].split()) in " ".join(lived.output.split())
    assert summary["finished"]
    assert summary["verdict"] in ("speculation", "no_speculation", "tie", "undecided")
    assert summary["failures"] == {"unsupported": 1}


def test_the_finished_study_answers_again_without_a_launch(lived: Lived) -> None:
    before = sorted(lived.study.glob("trials/*"))
    again = lived.spectune(*main_command(), "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == json.loads((lived.study / "summary.json").read_text())
    assert sorted(lived.study.glob("trials/*")) == before


@pytest.mark.parametrize("name", ["studies", "report", "export", "calibrate", "breakeven"])
def test_the_readmes_commands_on_a_study(lived: Lived, name: str) -> None:
    commands = [c for c in spectune_commands() if c[0] == name and ("quickstart" in " ".join(c) or len(c) == 1)]
    assert commands
    for arguments, extra in itertools.product(commands, ([], ["--json"])):
        (lived.study.parent.parent / "my-machine.yaml").unlink(missing_ok=True)  # calibrate overwrites nothing
        done = lived.spectune(*arguments, *extra)
        assert done.returncode == 0, done.stderr
        assert any(word in done.stdout for word in ("launch-", "quickstart", "break-even"))


def test_a_launch_of_the_study_is_diagnosed(lived: Lived) -> None:
    """As the README does with the log that comes with it."""
    done = lived.spectune("diagnose", "--log", "studies/quickstart/trials/0002/server.log", "--baseline", "430")
    assert done.returncode == 0, done.stderr
    assert "break-even: 430 tok/s × " in done.stdout


@pytest.fixture
def exported(lived: Lived) -> Iterator[int]:
    """The recommended file, started by hand on a port of its own."""
    line = next(line for line in lived.output.splitlines() if line.startswith("launch file: "))
    with reserve_ports() as ports, (lived.folder / "by-hand.log").open("w") as log:
        env = {**os.environ, "PORT": str(ports.http)}
        process = subprocess.Popen(
            ["bash", lived.folder / line.partition(": ")[2]], cwd=lived.folder, env=env,
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        yield ports.http
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for one in tree:
            one.kill()
        psutil.wait_procs(tree, timeout=240)
        process.wait()


def test_the_exported_file_serves(exported: int) -> None:
    body = json.dumps({"text": "the red fox", "sampling_params": {"max_new_tokens": 8, "temperature": 0}}).encode()
    answers: list[dict[str, Any]] = []

    def asked() -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{exported}/generate", body, {"Content-Type": "application/json"}
        )  # fmt: skip
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=LAUNCH_S) as answer:
                answers.append(json.load(answer))
        except OSError:
            return False
        return True

    until(asked, LAUNCH_S, "the exported launch serves")
    assert answers[0]["meta_info"]["completion_tokens"] == 8
