"""What spectune measures of the simulated engine, over HTTP and with its own client, is what the cost model says."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from simulated_samples import MODEL, a_profile, profile_text
from simulated_server import speculating

from spectune.analysis.measure import measure_level
from spectune.analysis.measurement import LevelMeasurement
from spectune.bench.arrivals import ClosedLoop
from spectune.bench.client import GenerateClient, Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.load import run_level
from spectune.bench.prompts import Prompt, TokenizedPrompt
from spectune.engines.simulated.prediction import predict
from spectune.engines.simulated.start import open_launch
from spectune.serving import Server, Teardown, reserve_ports

WORDS = (*MODEL, "--tp-size", "2", "--max-running-requests", "8", *speculating())
CONCURRENCY, PROMPT, OUTPUT = 4, 100, 200
# Slow enough that a busy test machine hardly shows, and prefills that hardly do.
CHANGES = {
    "target": {"step_ms": {"graph": 25.0, "eager": 60.0}, "prefill_ktok_per_s": 1000},
    "startup": {"load_s": 0.1},
}


def prompts() -> Iterator[TokenizedPrompt]:
    for number in range(100_000):
        ids = list(range(1000 * number, 1000 * number + PROMPT))
        yield TokenizedPrompt(Prompt(str(number), "chat", text="ids only"), ids)


async def measured(folder: Path) -> tuple[LevelMeasurement, Teardown]:
    profile = folder / "profile.yaml"
    profile.write_text(profile_text(**CHANGES))
    env = {**os.environ, "SPECTUNE_SIM_PROFILE": str(profile), "SGL_FORCE_SHUTDOWN": "1"}
    with reserve_ports() as ports:
        argv = [sys.executable, "-m", "spectune.engines.simulated", *WORDS, "--port", str(ports.http)]
        server = Server(argv, env, port=ports.http, log_path=folder / "server.log")
        await server.start()
        try:
            await server.wait_ready(60)
            async with GenerateClient(server.url) as client:
                assert await client.flush_cache()
                plan = LevelPlan(ClosedLoop(CONCURRENCY), Sampling(OUTPUT), precision=0.0001, time_limit_s=8.0)
                run = await run_level(client, prompts(), plan, stop_when=server.exited)
        finally:
            teardown = await server.stop()
    assert not any(record.failed for record in run.records)
    return measure_level("c4", run.records, run.measured_s), teardown


def test_the_measurement_is_the_prediction(tmp_path: Path) -> None:
    level, teardown = asyncio.run(measured(tmp_path))
    _, launch, _ = open_launch(a_profile(**CHANGES), WORDS, {})
    predicted = predict(launch, CONCURRENCY, PROMPT + OUTPUT // 2)
    assert level.accept_length.est == pytest.approx(predicted.accept_length, rel=0.08)
    # A busy test machine may be slower than its clock, and makes up for a fraction of a second at most.
    assert 0.95 * predicted.cycle_ms < level.cycle_ms.est < 1.5 * predicted.cycle_ms
    assert level.decode_speed.est < 1.1 * predicted.decode_speed
    assert teardown.left == 0
