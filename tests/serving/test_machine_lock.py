from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.errors import SpectuneError
from spectune.serving import held_locks
from spectune.serving.machine_lock import FOLDER_VARIABLE, MOST_BYTES, SHOWN, Holder, holder_of, lock_folder, try_lock

HOLDS = """
import sys
from pathlib import Path
from spectune.serving.machine_lock import try_lock
lock = try_lock("gpu-x", "their study", Path(sys.argv[1]))
print(lock is not None, flush=True)
sys.stdin.read()
"""

# Takes a lock and gives it back, file and all, as often as told; counts who else was inside meanwhile.
COMES_AND_GOES = """
import os, sys
from pathlib import Path
from spectune.serving.machine_lock import try_lock
folder, others, had = Path(sys.argv[1]), 0, 0
while had < 15:
    lock = try_lock("x", "s", folder)
    if lock is None:
        continue
    had += 1
    try:
        os.mkdir(folder / "inside")
        for _ in range(3):
            os.sched_yield()
        os.rmdir(folder / "inside")
    except FileExistsError:
        others += 1
    lock.release()
print(others)
"""


def holding(folder: Path) -> subprocess.Popen[str]:
    """Another process that has the lock gpu-x."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-c", HOLDS, str(folder)]
    other = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert other.stdout is not None
    assert other.stdout.readline() == "True\n"
    return other


def test_a_lock_is_one_processs_until_it_is_killed(tmp_path: Path) -> None:
    with holding(tmp_path) as other:
        assert try_lock("gpu-x", "ours", tmp_path) is None
        assert holder_of("gpu-x", tmp_path) == Holder(other.pid, "their study")
        assert held_locks(tmp_path) == {"gpu-x": Holder(other.pid, "their study")}
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert (tmp_path / "gpu-x.lock").exists(), "nobody was left to remove it"
    assert held_locks(tmp_path) == {}, "a file that nobody holds is harmless, and not told of"
    with try_lock("gpu-x", "ours", tmp_path) or pytest.fail("still held"):
        assert held_locks(tmp_path) == {"gpu-x": Holder(os.getpid(), "ours")}
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_where_there_is_no_room_for_its_holders_name(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))  # no file may grow, as on a full disk
    try:
        lock = try_lock("gpu-x", "ours", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with lock or pytest.fail("not held"):
        assert try_lock("gpu-x", "theirs", tmp_path) is None
        assert held_locks(tmp_path) == {"gpu-x": Holder()}


def test_a_lock_given_back_leaves_no_file(tmp_path: Path) -> None:
    lock = try_lock("a", "s", tmp_path)
    assert lock is not None
    assert try_lock("a", "s", tmp_path) is None, "not even this process gets it twice"
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_of_a_removed_file_is_not_the_lock(tmp_path: Path) -> None:
    """Who opened the file before its holder removed it locks the file that is there now."""
    with try_lock("a", "s", tmp_path) or pytest.fail("held"):
        (tmp_path / "a.lock").unlink()
        with try_lock("a", "s", tmp_path) or pytest.fail("a removed file holds nobody up"):
            assert try_lock("a", "s", tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_comes_and_goes_is_never_held_twice(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = [sys.executable, "-c", COMES_AND_GOES, str(tmp_path)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) for _ in range(3)]
    assert [process.communicate(timeout=240)[0] for process in running] == ["0\n"] * 3


def test_everybody_may_use_the_locks_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "locks"
    before = os.umask(0o077)
    try:
        with try_lock("a", "s", folder) or pytest.fail("held"):
            assert stat.S_IMODE((folder / "a.lock").stat().st_mode) == 0o666
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777


def test_links_are_not_followed_and_nothing_is_written_through_them(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "a.lock").symlink_to(victim)
    os.link(victim, tmp_path / "b.lock")
    os.mkfifo(tmp_path / "c.lock")
    (tmp_path / "d.lock").mkdir()
    (tmp_path / "e.lock").symlink_to(tmp_path / "nowhere")
    for name in "abcde":
        with pytest.raises(SpectuneError, match=rf"cannot lock .*{name}\.lock: .*{FOLDER_VARIABLE}"):
            try_lock(name, "s", tmp_path)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert held_locks(tmp_path) == {}


def test_a_folder_that_is_a_link_to_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "round"))
    with pytest.raises(SpectuneError, match="a link, or no folder"):
        try_lock("a", "mine")
    assert held_locks() == {}


def test_a_folder_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(SpectuneError, match="a link, or no folder"):
            try_lock("a", "s", tmp_path / name)


def test_the_folder_is_the_same_for_all_users_or_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    usual = lock_folder()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert lock_folder() == usual
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "ours"))
    assert lock_folder() == tmp_path / "ours"
    assert held_locks() == {}, "a folder that is not there holds nothing"


@given(words=st.binary(max_size=2 * MOST_BYTES) | st.from_type(type).map(lambda kind: repr(kind).encode()))
def test_whatever_stands_in_a_lock_is_no_more_than_words(
    words: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("words")
    (folder / "a.lock").write_bytes(words)
    assert str(holder_of("a", folder)).isprintable()


@pytest.mark.parametrize("told", [[], {}, {"pid": "x"}, {"pid": None, "study": 3}, {"pid": [], "study": []}, "x", 7])
def test_words_of_another_form_name_nobody(told: object, tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text(json.dumps(told))
    assert holder_of("a", tmp_path).pid is None


def test_a_hostile_name_cannot_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text(json.dumps({"pid": 3, "study": "\x1b[31mred\n" + "x" * 500}))
    text = str(holder_of("a", tmp_path))
    assert text.isprintable()
    assert len(text) < SHOWN + 40
    lock = try_lock("../../etc/x", "s", tmp_path)
    assert lock is not None
    assert [path.name for path in tmp_path.iterdir() if path.name != "a.lock"] == [".._.._etc_x.lock"]
