"""Both engines that speak SGLang's command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_lives import Lives, Program

PROFILE = Path(__file__).with_name("quick.yaml")


@pytest.fixture(scope="session")
def simulated_lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    """The launches of the simulated engine."""
    program = Program(
        (sys.executable, "-m", "spectune.engines.simulated"),
        os.environ
        | {"SPECTUNE_SIM_PROFILE": str(PROFILE), "SPECTUNE_SIM_TIME_SCALE": "0.2", "CONTRACT_MARK": "visible"},
        {"model-path": "target", "context-length": 2048, "max-total-tokens": 16384, "mem-fraction-static": 0.5,
         "decode-log-interval": 5},
        Path("org"),
    )  # fmt: skip
    lives = Lives(program, tmp_path_factory.mktemp("simulated"))
    yield lives
    lives.close()


@pytest.fixture(scope="session", params=[pytest.param("real", marks=pytest.mark.engine), "simulated"])
def lives(request: pytest.FixtureRequest) -> Lives:
    """The launches of one engine."""
    chosen = request.getfixturevalue(f"{request.param}_lives")
    assert isinstance(chosen, Lives)
    return chosen
