"""On the real server, greedy float32 output is the same with and without speculation."""

from __future__ import annotations

import asyncio
import json
import os
import random
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spectune.bench import tiny_language
from spectune.engines.cpu_reference import Runtime
from spectune.engines.sglang.arguments import to_argv
from spectune.serving import Server, reserve_ports

START_SECONDS = 180
OUTPUT_TOKENS = 64
MODELS = ("model-path", "speculative-draft-model-path")
# Loopback must never go through a proxy the environment may name.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Output:
    """What one request returned."""

    prompt: str
    ids: tuple[int, ...]
    accept_length: float | None


def eagle3(steps: int, topk: int, draft_tokens: int) -> dict[str, Any]:
    return {
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": "drafter-strong",
        "speculative-num-steps": steps,
        "speculative-eagle-topk": topk,
        "speculative-num-draft-tokens": draft_tokens,
    }


STANDALONE = eagle3(3, 1, 4) | {
    "speculative-algorithm": "STANDALONE",
    "speculative-draft-model-path": "drafter-standalone",
}
NGRAM = {
    "speculative-algorithm": "NGRAM",
    "speculative-num-draft-tokens": 8,
    "speculative-ngram-capacity": 100_000,  # the default takes 2.5 GB of memory
}


def generate(port: int, prompt: str, tokens: int = OUTPUT_TOKENS) -> Output:
    sampling = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/generate",
        json.dumps({"text": prompt, "sampling_params": sampling}).encode(),
        {"Content-Type": "application/json"},
    )
    with OPENER.open(request, timeout=120) as response:
        answer = json.load(response)
    verifies = answer["meta_info"].get("spec_verify_ct")
    length = answer["meta_info"]["completion_tokens"] / verifies if verifies else None
    return Output(prompt, tuple(answer["output_ids"]), length)


def outputs(runtime: Runtime, log: Path, arguments: dict[str, Any]) -> list[Output]:
    """Outputs for six prompts of each class, several at a time so that batches are mixed and of changing size."""
    prompts = [tiny_language.prompt(random.Random(seed), cls) for seed in range(6) for cls in tiny_language.CLASSES]

    async def ask() -> list[Output]:
        with reserve_ports() as ports:
            fixed = {**runtime.args, "model-path": "target", "dtype": "float32", "nccl-port": ports.nccl}
            given = {**fixed, **arguments, "port": ports.http}
            models = {name: str(runtime.models / given[name]) for name in MODELS if name in given}
            argv = [str(runtime.python), "-m", "sglang.launch_server", *to_argv(given | models)]
            server = Server(argv, os.environ | runtime.env, port=ports.http, log_path=log)
            async with server:
                await server.wait_ready(START_SECONDS)
                with ThreadPoolExecutor(4) as pool:
                    loop = asyncio.get_running_loop()
                    asked = [loop.run_in_executor(pool, generate, ports.http, prompt) for prompt in prompts]
                    return list(await asyncio.gather(*asked))

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def baseline(cpu_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Output]:
    """What the target says without speculation."""
    return outputs(cpu_runtime, tmp_path_factory.mktemp("baseline") / "server.log", {})


def check_same(speculated: Sequence[Output], baseline: Sequence[Output], least_accepted: float) -> None:
    differing = [
        (plain.prompt, plain.ids, other.ids)
        for plain, other in zip(baseline, speculated, strict=True)
        if plain.ids != other.ids
    ]
    assert not differing
    lengths = [output.accept_length for output in speculated if output.accept_length is not None]
    assert len(lengths) == len(speculated), "requests without a verify: the server did not speculate"
    assert sum(lengths) / len(lengths) > least_accepted


@pytest.mark.engine
def test_baseline_is_long_and_not_repetitive(baseline: Sequence[Output]) -> None:
    assert all(output.accept_length is None for output in baseline)
    assert {len(output.ids) for output in baseline} == {OUTPUT_TOKENS}
    assert min(len(set(output.ids)) for output in baseline) >= 8
    assert len({output.ids for output in baseline}) == len(baseline)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("arguments", "least_accepted"),
    [
        pytest.param(eagle3(3, 1, 4), 2.5, id="eagle3-chain"),
        pytest.param(eagle3(3, 4, 12), 2.5, id="eagle3-tree"),
        pytest.param(STANDALONE, 2.5, id="standalone"),
    ],
)
def test_speculation_does_not_change_greedy_output(
    cpu_runtime: Runtime, baseline: Sequence[Output], tmp_path: Path, arguments: dict[str, Any], least_accepted: float
) -> None:
    check_same(outputs(cpu_runtime, tmp_path / "server.log", arguments), baseline, least_accepted)


@pytest.mark.engine
@pytest.mark.services  # compiles C++ when it starts
def test_ngram_does_not_change_greedy_output(cpu_runtime: Runtime, baseline: Sequence[Output], tmp_path: Path) -> None:
    check_same(outputs(cpu_runtime, tmp_path / "server.log", NGRAM), baseline, 1.0)
