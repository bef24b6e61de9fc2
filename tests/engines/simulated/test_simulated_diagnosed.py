"""A running engine, its log and a probe of it tell the same story."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forked import spectune
from simulated_server import engine, speculating


def diagnosed(*arguments: str) -> Any:
    done = spectune("diagnose", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_log_server_and_probe_agree(tmp_path: Path) -> None:
    with engine(tmp_path, *speculating(3)) as running:
        running.wait_ready()
        for _ in range(3):
            running.generate(400)
        told = diagnosed("--url", running.url)
        probed = diagnosed("--url", running.url, "--probe")
    logged = diagnosed("--log", str(running.log_path))
    for found in (told, probed, logged):
        assert found["server"]["algorithm"] == "EAGLE3"
        assert found["server"]["kv_tokens"] == logged["server"]["kv_tokens"]
        assert found["server"]["captured"] == logged["server"]["captured"] > 0
        assert found["load"]["accept_length"] == pytest.approx(logged["load"]["accept_length"], rel=0.25)
        assert found["server"]["simulated"]
        assert found["causes"] == []
    assert logged["load"]["in_graph"] == 1.0
    assert probed["source"]["probed"]
    assert probed["load"]["decode_speed"] > 0


def test_a_verify_without_graphs_is_one_story(tmp_path: Path) -> None:
    """No line of a capture, an empty list of the server, `cuda graph: False`: SGLang says no more either."""
    with engine(tmp_path, *speculating(3), target={"verify_graph": False}) as running:
        running.wait_ready()
        for _ in range(2):
            running.generate(400)
        told = diagnosed("--url", running.url)
        probed = diagnosed("--url", running.url, "--probe")
    logged = diagnosed("--log", str(running.log_path))
    assert "CUDA graph begin" not in running.log
    assert "cuda graph: False" in running.log
    for found in (told, probed, logged):
        assert found["server"]["captured"] == 0
        assert [cause["name"] for cause in found["causes"]] == ["eager"]
    assert told["actions"] == probed["actions"] == logged["actions"]
