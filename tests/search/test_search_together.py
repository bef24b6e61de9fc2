"""`spectune search --storage` and `spectune worker`, with real processes on a simulated machine."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from forked import spectune
from search_simulated import chain, write
from search_workers import Started, all_wait, held_back, records, space

from benchmarks.services.daemon import eventually
from spectune.engines.open import open_engine
from spectune.search import Role, Status, Step
from spectune.search.shared.description import change
from spectune.search.shared.meeting import Meeting
from spectune.search.shared.mirror import SECOND
from spectune.search.shared.storage import Address, open_storage
from spectune.search.shared.trials import SharedTrials
from spectune.search.storage.given_up import MOST_LOST
from spectune.serving.processes import is_alive
from spectune.space import load_space


def shared(folder: Path) -> str:
    return f"sqlite:///{folder}/shared.db"


def said(folder: Path, *arguments: str, storage: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    folder.mkdir(exist_ok=True)
    return spectune(*arguments, cwd=folder, SPECTUNE_STORAGE=storage)


def environments(pid: int) -> Iterator[bytes]:
    """Yield the environment of every process below one that runs a program of its own.

    Between fork and exec a process is its parent's memory, and shows what that was started with.
    """
    proc, own = Path("/proc"), Path("/proc", str(pid), "cmdline").read_bytes()
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(OSError):
            if (proc / str(process.pid) / "cmdline").read_bytes() not in {own, b""}:
                yield (proc / str(process.pid) / "environ").read_bytes()


def test_two_that_search_share_the_launches(tmp_path: Path) -> None:
    storage, search = shared(tmp_path), ("search", "../sim.yaml", "--place")
    space(tmp_path, trials=6)
    with contextlib.ExitStack() as running:
        with held_back(storage):
            one = running.enter_context(Started(tmp_path / "a", *search, "A", storage=storage))
            other = running.enter_context(Started(tmp_path / "b", *search, "B", storage=storage))
            assert all_wait(one, other), one.said + other.said
        assert (one.ends(), other.ends()) == (0, 0), one.said + other.said
    by_a, by_b = records(tmp_path / "a"), records(tmp_path / "b")
    assert by_a == by_b
    assert [record.trial for record in by_a] == list(range(6))
    assert {record.place for record in by_a} == {"A", "B"}
    summaries = [json.loads((tmp_path / folder / "studies/sim/summary.json").read_bytes()) for folder in ("a", "b")]
    assert summaries[0]["verdict"] == summaries[1]["verdict"] != "no_speculation"
    for folder in ("a", "b"):
        assert not (tmp_path / folder / "studies/sim" / SECOND).exists()
        assert (tmp_path / folder / "reports/sim.html").exists()
        assert said(tmp_path / folder, "breakeven", "sim").returncode == 0
    again = said(tmp_path / "late", "worker", "sim", "--storage", storage, "--json")
    told = json.loads(again.stdout)
    assert (again.returncode, told["study"], told["launches"]) == (0, "sim", 6)
    assert list((tmp_path / "late").iterdir()) == [], "who comes late has nothing to keep"
    in_words = said(tmp_path / "late", "worker", "sim", "--storage", storage).stdout
    assert "the study sim has ended after 6 launches" in in_words
    copy = said(tmp_path / "late", "search", "../sim.yaml", "--storage", storage)
    assert copy.returncode == 0, "which is how to have the answer here"
    assert [record.trial for record in records(tmp_path / "late")] == list(range(6))


def test_a_worker_makes_no_database(tmp_path: Path) -> None:
    missing = said(tmp_path / "a", "worker", "sim", "--storage", f"sqlite:///{tmp_path}/shraed.db")
    assert missing.returncode == 2
    assert f"there is no database {tmp_path}/shraed.db" in missing.stderr
    (tmp_path / "other.db").touch()
    another = said(tmp_path / "a", "worker", "sim", "--storage", f"sqlite:///{tmp_path}/other.db")
    assert another.returncode == 2
    assert "there are no studies in" in another.stderr
    assert (tmp_path / "other.db").stat().st_size == 0
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a", tmp_path / "other.db"]
    assert list((tmp_path / "a").iterdir()) == []


def test_kill_9_of_a_worker_costs_no_launch(tmp_path: Path) -> None:
    storage, search = shared(tmp_path), ("search", "../sim.yaml", "--takeover-after", "4s", "--place", "A")
    space(tmp_path, trials=4)
    with Started(tmp_path / "a", *search, storage=storage) as lost:
        assert lost.says("[1]"), lost.said
        tree = psutil.Process(lost.process.pid).children(recursive=True)
        lost.process.kill()
        lost.process.wait()
    finished = len(records(tmp_path / "a"))
    with Started(tmp_path / "b", "worker", "sim", "--place", "B", storage=storage) as worker:
        assert worker.ends() == 0, worker.said
    made = records(tmp_path / "b")
    assert [record.trial for record in made] == [0, 1, 2, 3]
    assert [record.place for record in made] == ["A"] * finished + ["B"] * (4 - finished)
    assert 1 <= finished < 4
    assert eventually(lambda: not any(is_alive(process) for process in tree))
    with Started(tmp_path / "a", *search, storage=storage) as again:  # finds nothing left to do
        assert again.ends() == 0, again.said
    assert records(tmp_path / "a") == made


def test_workers_of_one_folder_have_a_copy_each(tmp_path: Path) -> None:
    space(tmp_path, trials=4)
    storage = shared(tmp_path)
    with contextlib.ExitStack() as running:
        with held_back(storage):
            first, second = (
                running.enter_context(Started(tmp_path / "a", "search", "../sim.yaml", storage=storage)) for _ in "ab"
            )
            assert eventually(lambda: first.said.count("allows on this machine") == 2), first.said  # one file for both
        assert (first.ends(), second.ends()) == (0, 0), first.said
    assert records(tmp_path / "a") == records(tmp_path / "a", "sim.worker2")


def test_a_worker_that_is_ended_names_the_study_and_not_its_copy(tmp_path: Path) -> None:
    space(tmp_path, trials=40)  # more than anybody waits for
    storage = shared(tmp_path)
    with (
        Started(tmp_path / "a", "search", "../sim.yaml", storage=storage) as first,
        Started(tmp_path / "a", "search", "../sim.yaml", storage=storage) as second,
    ):
        for log in ("sim/trials/*/server.log", "sim.worker2/trials/*/server.log"):
            assert eventually(lambda log=log: any((tmp_path / "a/studies").glob(log))), first.said
        first.process.terminate()
        second.process.terminate()
        assert (first.ends(), second.ends()) == (130, 130), first.said
    said = [line for line in first.said.splitlines() if line.startswith("interrupted: ")]
    ends = [line for line in said if not line.startswith("interrupted: ending what is under way")]
    assert len(ends) == 2
    assert all(line.endswith("the same command continues the study sim") for line in ends)


def test_launches_made_alone_are_shared_and_then_not_gone_on_with_alone(tmp_path: Path) -> None:
    write(tmp_path, budget={"trials": 3})
    assert said(tmp_path / "a", "search", "../sim.yaml", "--trials", "2").returncode == 0
    alone = records(tmp_path / "a")
    storage = shared(tmp_path)
    told = said(tmp_path / "a", "search", "../sim.yaml", storage=storage)
    assert told.returncode == 0, told.stderr
    assert "sent 2 finished launches that only this machine had" in told.stderr
    assert said(tmp_path / "b", "search", "../sim.yaml", storage=storage).returncode == 0
    assert records(tmp_path / "b")[:2] == alone
    refused = said(tmp_path / "a", "search", "../sim.yaml")
    assert refused.returncode == 2
    assert "is a copy of the shared study sim: go on with --storage URL" in refused.stderr


def test_another_study_of_that_name_is_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, budget={"trials": 2})
    assert said(tmp_path / "a", "search", "../sim.yaml", storage=shared(tmp_path)).returncode == 0
    write(tmp_path, budget={"trials": 2}, search={"speculative-algorithm": ["none", "NGRAM"]})
    assert said(tmp_path / "b", "search", "../sim.yaml").returncode == 0
    refused = said(tmp_path / "b", "worker", "sim", storage=shared(tmp_path))
    assert refused.returncode == 2
    assert "holds another study than the shared one" in refused.stderr
    assert said(tmp_path / "b", "search", "../sim.yaml", "--trials", "3").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["worker", "sim"], "a worker needs the database of its study: --storage URL, or $SPECTUNE_STORAGE"),
        (["worker", "sim", "--storage", "URL"], "there is no database"),
        (["worker", "sim", "--storage", ""], "--storage is empty; it must be postgresql://"),
        (["search", "../sim.yaml", "--storage", ""], "--storage is empty; it must be postgresql://"),
        (["worker", "../sim", "--storage", "URL"], "a study's name is made of"),
        (["worker", "sim", "--storage", "postgresql://u:pa55word@127.0.0.1:9/d"], "Connection refused"),
        (["search", "../sim.yaml", "--storage", "URL", "--takeover-after", "1s"], "must be at least 3 s, but got 1s"),
        (
            ["search", "../sim.yaml", "--storage", "URL", "--takeover-after", "721h"],
            "must be at most 720 h, but got 721h",
        ),
        (["search", "../sim.yaml", "--storage", "URL", "--takeover-after", "soon"], "a duration must look like 90s"),
        (["search", "../sim.yaml", "--storage", "URL", "--place", "a place"], "a place is made of"),
    ],
)
def test_bad_input_is_one_message(tmp_path: Path, arguments: list[str], words: str) -> None:
    write(tmp_path, budget={"trials": 3})
    told = said(tmp_path / "a", *(shared(tmp_path) if word == "URL" else word for word in arguments))
    assert told.returncode == 2
    assert words in told.stderr
    assert "pa55word" not in told.stderr
    assert "Traceback" not in told.stderr


def test_what_differs_from_the_shared_study_is_refused(tmp_path: Path) -> None:
    write(tmp_path, budget={"trials": 2})
    storage = shared(tmp_path)
    assert said(tmp_path / "a", "search", "../sim.yaml", "--storage", storage).returncode == 0
    write(tmp_path, budget={"trials": 2}, search={"speculative-algorithm": ["none", "NGRAM"]})
    space = said(tmp_path / "b", "search", "../sim.yaml", "--storage", storage)
    assert "begun with another search space" in space.stderr
    write(tmp_path, budget={"trials": 2}, profile={"seed": 4})
    engine = said(tmp_path / "b", "search", "../sim.yaml", "--storage", storage)
    assert "another engine: profile.yaml differs" in engine.stderr
    assert "--allow-other-engine" in engine.stderr
    write(tmp_path, budget={"trials": 2})
    sampler = said(tmp_path / "b", "search", "../sim.yaml", "--storage", storage, "--sampler", "random")
    assert "was begun with --sampler guided" in sampler.stderr
    assert {told.returncode for told in (space, engine, sampler)} == {2}
    write(tmp_path, budget={"trials": 3}, profile={"seed": 4})
    allowed = said(tmp_path / "b", "search", "../sim.yaml", "--storage", storage, "--allow-other-engine")
    assert allowed.returncode == 0, allowed.stderr
    assert "the budget of the shared study is the one given now" in allowed.stderr
    assert records(tmp_path / "b")[2].notes[-1].startswith("made with another engine: profile.yaml differs")


def test_a_worker_that_lacks_the_sampler_says_so(tmp_path: Path) -> None:
    write(tmp_path, budget={"trials": 1})
    said(tmp_path / "a", "search", "../sim.yaml", storage=shared(tmp_path))
    meeting = Meeting.at(shared(tmp_path), "sim")
    change(meeting.storage, meeting.address, "sim", replace(meeting.require(), sampler="of-a-newer-spectune"))
    refused = said(tmp_path / "b", "worker", "sim", storage=shared(tmp_path))
    assert (refused.returncode, "is not a sampler" in refused.stderr) == (2, True), refused.stderr
    assert "Traceback" not in refused.stderr


def test_no_process_inherits_the_password_of_a_storage(tmp_path: Path) -> None:
    space(tmp_path, trials=2)
    storage = f"{shared(tmp_path)}?timeout=59"  # what stands for a password: SQLite takes none
    with Started(tmp_path / "a", "search", "../sim.yaml", storage=storage) as search:
        inherited: list[bytes] = []
        assert eventually(lambda: bool(inherited.extend(environments(search.process.pid)) or inherited)), search.said
        assert search.ends() in {0, 1}, search.said  # whatever came of the launches
    assert not any(b"timeout=59" in environ for environ in inherited)
    assert "timeout=59" not in search.said
    assert not [path for path in (tmp_path / "a").rglob("*") if path.is_file() and b"timeout=59" in path.read_bytes()]


def test_a_launch_that_no_worker_survives_has_failed_and_the_study_goes_on(tmp_path: Path) -> None:
    storage, deadly = shared(tmp_path), Step(1, Role.SEARCH, chain(2), "to see", "elsewhere")
    file = write(tmp_path, budget={"trials": 1})
    said(tmp_path, "search", "sim.yaml", storage=storage)
    trials = SharedTrials(open_storage(Address.of(storage)), "sim", load_space(file), "lost", 60)
    for _ in range(MOST_LOST):
        claim = trials.claim(deadly, known=[0])
        assert claim is not None
        trials.abandon(claim)

    more = said(tmp_path, "search", "sim.yaml", "--trials", "5", storage=storage)
    assert f"each of the {MOST_LOST} workers" in more.stderr, more.stderr
    found = {record.trial: record for record in records(tmp_path)}
    assert list(found) == list(range(5))
    failure = found[1].failure
    assert failure is not None
    assert (found[1].candidate, found[1].status, failure.failure_class) == (chain(2), Status.FAILED, "worker_lost")
    assert found[1].command.argv == open_engine(load_space(file)).command(chain(2), host="127.0.0.1", port=30000).argv
    assert not [r for r in found.values() if r.candidate == chain(2) and r.trial != 1], "it is not launched again"
