"""The HTTP form and the one in virtual time give the same numbers from the same seed."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import aiohttp
import pytest
from simulated_samples import MODEL, a_profile
from simulated_server import engine, speculating

from spectune.engines.simulated import tokens
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine

CHANGES = {
    "noise": {"launch_sd": 0.05, "window_sd": 0.02},
    "acceptance": {"by_class": {"code": 1.2, "chat": 0.8}, "context_halving_ktokens": 2},
}
CLASSES = ("code", "chat")
LOOP = ClosedLoop(4, 24, 120, 150, CLASSES)
WORDS = speculating(3, 2, 6)


async def closed_loop(url: str) -> list[dict[str, object]]:
    numbers = itertools.count()
    found: dict[int, dict[str, object]] = {}

    async def slot(session: aiohttp.ClientSession) -> None:
        while (number := next(numbers)) < LOOP.requests:
            head = tokens.class_id(CLASSES[number % len(CLASSES)])
            prompt = [head, *range(1000 * number, 1000 * number + LOOP.prompt_tokens - 1)]
            body = {"input_ids": prompt, "sampling_params": {"max_new_tokens": LOOP.output_tokens}}
            async with session.post(f"{url}/generate", json=body) as answer:
                found[number] = json.loads(await answer.read())["meta_info"]

    async with aiohttp.ClientSession(trust_env=False) as session, asyncio.TaskGroup() as group:
        for _ in range(LOOP.concurrency):
            group.create_task(slot(session))
    return [found[number] for number in range(LOOP.requests)]


@pytest.mark.parametrize("forced", [{}, {"SGLANG_SIMULATE_ACC_LEN": "2.4"}], ids=["drafted", "forced"])
def test_request_by_request(tmp_path: Path, forced: dict[str, str]) -> None:
    env = {"SPECTUNE_SIM_LAUNCH": "5", **forced}
    with engine(tmp_path, *WORDS, env=env, time_scale=0.1, **CHANGES) as running:
        running.wait_ready()
        served = asyncio.run(closed_loop(running.url))
    words = [*MODEL, "--tp-size", "2", *WORDS]
    _, launch, _ = open_launch(a_profile(**CHANGES), words, env)
    virtual = VirtualEngine(launch).serve(LOOP).requests()
    for number, (over_http, in_process) in enumerate(zip(served, virtual, strict=True)):
        assert over_http["prompt_tokens"] == in_process.prompt_tokens
        assert over_http["completion_tokens"] == in_process.output_tokens
        assert over_http["spec_verify_ct"] == in_process.spec_verify_ct, number
        assert over_http["spec_correct_drafts_histogram"] == list(in_process.spec_correct_drafts_histogram)


def test_the_draws_of_a_request_are_its_own() -> None:
    """However many run beside it, a request verifies the same."""
    words = [*MODEL, *WORDS]
    _, launch, _ = open_launch(a_profile(), words, {})
    alone, many = (VirtualEngine(launch).serve(ClosedLoop(c, 16, 100, 200)).requests() for c in (1, 16))
    assert [one.spec_correct_drafts_histogram for one in alone] == [one.spec_correct_drafts_histogram for one in many]
