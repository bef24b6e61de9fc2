"""`--api-key`: who is served without one, by the rule and over HTTP."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_server import OPENER, engine

from spectune.engines.simulated.authorization import allowed

KEY = "a-key-for-tests"


@given(key=st.text(min_size=1), said=st.text() | st.none())
def test_only_the_key_opens(key: str, said: str | None) -> None:
    assert allowed("GET", "/server_info", f"Bearer {key}", key)
    assert allowed("GET", "/server_info", f"bearer {key}", key)
    assert allowed("GET", "/server_info", said, key) is (said is not None and said.lower() == f"bearer {key}".lower())


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/ready", "/metrics"])
def test_probes_need_none(path: str) -> None:
    assert allowed("GET", path, None, KEY)
    assert allowed("OPTIONS", "/generate", None, KEY)
    assert allowed("POST", "/generate", None, None)


def test_over_http(tmp_path: Path) -> None:
    with engine(tmp_path, "--api-key", KEY) as running:
        running.wait_ready()
        assert running.get("/health")[0] == 200
        for answer in (running.get("/server_info"), running.get("/nothing"), running.post("/flush_cache", {})):
            assert answer == (401, b'{"error":"Unauthorized"}')
        assert running.post("/generate", {"text": "x"})[0] == 401
        asked = urllib.request.Request(running.url + "/server_info", headers={"Authorization": f"Bearer {KEY}"})
        with OPENER.open(asked) as known:
            assert json.loads(known.read())["api_key"] == KEY
