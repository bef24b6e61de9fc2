"""A launch that others on the network could reach has a key, which is used everywhere and kept nowhere."""

from __future__ import annotations

import re
import secrets
import subprocess
from pathlib import Path

import pytest
import yaml
from forked import spectune
from search_simulated import SPACE, chain, launch, write

from spectune.engines.address import LOOPBACK, Address, host_complaint
from spectune.export import command_text
from spectune.search import Status

KEY = "5ec4e7" * 8
ARGS = SPACE["engine"]["args"]


def open_space(folder: Path, host: str, *, virtual: bool = False) -> Path:
    file = write(folder, budget={"trials": 1})
    space = yaml.safe_load(file.read_text())
    space["engine"] |= {"args": ARGS | {"host": host}, "virtual": virtual}
    file.write_text(yaml.safe_dump(space, sort_keys=False))
    return file


def test_every_launch_beyond_loopback_has_a_key_of_its_own() -> None:
    first, second = (Address.for_launch({"host": "0.0.0.0"}) for _ in "ab")
    assert first.api_key
    assert first.api_key != second.api_key
    assert first.api_key not in repr(first)
    assert (first.host, first.reached_at) == ("0.0.0.0", LOOPBACK)
    assert Address.for_launch({"host": "10.0.0.7"}).reached_at == "10.0.0.7"
    for args in ({}, {"host": "127.0.0.1"}, {"host": "127.0.0.9"}):
        assert Address.for_launch(args).api_key is None


@pytest.mark.parametrize("host", ["example.org", "::", "10.0.0", "10.0.0.256", "", None, 7, ["0.0.0.0"]])
def test_what_is_no_address(host: object) -> None:
    assert "must be an IPv4 address" in (host_complaint(host) or "")


@pytest.mark.parametrize("virtual", [True, False])
def test_the_key_is_used_and_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, virtual: bool) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: KEY)
    found = launch(open_space(tmp_path, "0.0.0.0", virtual=virtual), chain(2))
    assert found.status is Status.OK, found.failure or found.suspect
    assert [level.level for level in found.levels] == ["c1", "c4"]
    assert found.command.argv[found.command.argv.index("--api-key") + 1] == "•••"
    assert KEY not in str(found)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 6
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
    (folder,) = (tmp_path / "studies/one/trials").iterdir()
    assert "api_key" in (folder / "server_info.json").read_text() or virtual
    assert '--api-key "${SPECTUNE_API_KEY:?' in (folder / "launch.sh").read_text()
    assert "api-key" not in command_text(found.command)
    assert "0.0.0.0" not in command_text(found.command)


def test_a_launch_file_listens_beyond_loopback_with_a_key_only(tmp_path: Path) -> None:
    launch(open_space(tmp_path, "0.0.0.0", virtual=True), chain(2))
    (script,) = (tmp_path / "studies/one/trials").glob("*/launch.sh")
    script.write_text(script.read_text().replace("exec ", "echo "))
    for env, code in (({}, 1), ({"SPECTUNE_API_KEY": "mine"}, 0)):
        done = subprocess.run(["bash", script], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == (code != 0)
        assert ("--api-key mine" in done.stdout) == (code == 0)


def test_a_study_beyond_loopback_from_end_to_end(tmp_path: Path) -> None:
    open_space(tmp_path, "0.0.0.0")
    done = spectune("search", "sim.yaml", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    said = (done.stdout + done.stderr).encode()
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    key = re.compile(rb"(?<![0-9a-f])[0-9a-f]{48}(?![0-9a-f])")
    assert not [path for path, content in left.items() if key.search(content)]
    assert not key.search(said)
    (log,) = (tmp_path / "studies/sim/trials/0000-baseline").glob("server.log")
    assert "--api-key •••" in log.read_text()
    (exported, *_) = (tmp_path / "studies/sim/export").glob("*.sh")
    assert "--api-key was given in the trial; spectune writes no secrets" in exported.read_text()


def test_a_space_may_not_search_for_an_address(tmp_path: Path) -> None:
    file = write(tmp_path)
    space = yaml.safe_load(file.read_text())
    space["search"]["host"] = ["0.0.0.0", "127.0.0.1"]
    file.write_text(yaml.safe_dump(space, sort_keys=False))
    done = spectune("search", "sim.yaml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert "'host' says where every launch listens; write it under engine.args" in done.stderr
