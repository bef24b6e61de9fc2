"""On the real server, greedy float32 output is the same with and without speculation."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spectune.engines.cpu_reference import Runtime, tiny_language

START_SECONDS = 180
OUTPUT_TOKENS = 64
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


@contextmanager
def served(runtime: Runtime, log: Path, arguments: dict[str, Any]) -> Iterator[int]:
    """Launch the real server on a free port; end its whole session afterwards."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {**runtime.args, "model-path": "target", "dtype": "float32", "host": "127.0.0.1", "port": port, **arguments}
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [runtime.python, "-m", "sglang.launch_server", *words],
            cwd=runtime.models,  # the model names above are folders there
            env=os.environ | runtime.env,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until_it_generates(server, port, log)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_until_it_generates(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()[-4000:]
        try:
            generate(port, "the red fox", tokens=1)
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"not ready after {START_SECONDS} s: {log.read_text()[-4000:]}")


def outputs(runtime: Runtime, log: Path, arguments: dict[str, Any]) -> list[Output]:
    """Outputs for six prompts of each class, several at a time so that batches are mixed and of changing size."""
    prompts = [tiny_language.prompt(random.Random(seed), cls) for seed in range(6) for cls in tiny_language.CLASSES]
    with served(runtime, log, arguments) as port, ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda prompt: generate(port, prompt), prompts))


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
