"""Secrets in files, values and spaces are blotted out; everything else stays as it is."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spectune.blotting import blot_file, blotted, blotted_yaml
from spectune.errors import SpectuneError
from spectune.serving import Failure, FailureClass
from spectune.withheld import BLOT, hides_secret, secret_variables

SECRET = "hf_" + "Qz7" * 9


def test_a_file_loses_its_secrets_and_keeps_the_rest(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"before \xff\n" + f"token={SECRET}, again {SECRET}\n".encode() + b"after, without a line end")
    blot_file(log, {SECRET, "not-in-there"})
    assert (
        log.read_bytes() == b"before \xff\n" + f"token={BLOT}, again {BLOT}\n".encode() + b"after, without a line end"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"]


def test_where_there_is_no_room_the_file_stays_and_is_named(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"token={SECRET}\n" + "x" * 1000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # no file may grow beyond it, as on a full disk
    try:
        with pytest.raises(SpectuneError, match=r"cannot blot secrets out of .*server\.log"):
            blot_file(log, {SECRET})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"], "nothing half written takes up more room"


def test_a_file_without_secrets_is_not_written(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"nothing to hide\n")
    before = log.stat()
    blot_file(log, {SECRET})
    assert (log.stat().st_ino, log.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    blot_file(tmp_path / "none", {SECRET})


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner, inner)))
def test_what_holds_no_secret_is_the_same_afterwards(value: object) -> None:
    assert blotted(value, [SECRET]) == value


def test_of_two_secrets_the_longer_one_goes_first() -> None:
    assert blotted({"a": ("x-secret-long", ["secret"])}, ["secret", "secret-long"]) == {"a": (f"x-{BLOT}", [BLOT])}


def test_data_classes_lose_their_secrets_and_keep_their_type() -> None:
    failure = Failure(FailureClass.CRASH, "crash of secret-long", "x")
    assert blotted([failure], ["secret-long", "crash"]) == [Failure(FailureClass.CRASH, f"{BLOT} of {BLOT}", "x")]


def test_variables_are_known_by_name_or_value() -> None:
    env = {
        "HF_TOKEN": "short",
        "SOME_KEY": "long-enough",
        "MIRROR": "https://me:0pen@host",
        "WHEELS": "https://aToken0fMine@host/simple",
        "DATABASE": "postgresql://me@host/studies",
        "NCCL_ALGO": "Ring-and-more",
    }
    assert secret_variables(env) == {"long-enough", "https://me:0pen@host", "https://aToken0fMine@host/simple"}
    assert hides_secret("tokenizer-path", [f"https://{BLOT}@host"]), "what was blotted out once is never exported"


def test_a_space_whose_secret_is_a_block_stays_a_space() -> None:
    text = "engine:\n  env:\n    API_KEY: |\n      first line\n      second line\n    NCCL_ALGO: Ring\nname: x\n"
    assert yaml.safe_load(blotted_yaml(text)) == {
        "engine": {"env": {"API_KEY": BLOT, "NCCL_ALGO": "Ring"}},
        "name": "x",
    }
