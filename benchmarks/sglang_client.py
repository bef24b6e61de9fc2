"""Whether SGLang's own benchmark client and spectune's see the same: `python -m benchmarks.sglang_client --help`.

Each client gets a simulated engine of its own with the same launch number, and sends requests of the same lengths at
the same concurrency, so both meet the same drafts and the same noise. SGLang's client runs unmodified in the
cpu-reference runtime; it also needs the package `datasets`, which that runtime does not have:

    pip install --target FOLDER datasets
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from spectune.bench.arrivals import ClosedLoop
from spectune.bench.client import GenerateClient, Sampling
from spectune.bench.level import LevelPlan
from spectune.bench.load import run_level
from spectune.bench.prompts import Prompt, TokenizedPrompt
from spectune.engines.cpu_reference import CPU_REFERENCE, Runtime, install
from spectune.serving import Server, reserve_ports

TOLERANCE = 0.02
ENGINE = (
    "--model-path", "moonshotai/Kimi-K2.5", "--tp-size", "8", "--mem-fraction-static", "0.85", "--attention-backend",
    "triton", "--max-running-requests", "64", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path",
    "1.4m", "--speculative-num-steps", "5", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "6",
    "--disable-radix-cache",  # the random prompts of the two clients do not share beginnings equally often
)  # fmt: skip
VOCABULARY = 400  # ids that the tokenizer of the tiny models has


@dataclass(frozen=True)
class Load:
    """What both clients send."""

    concurrency: int
    requests: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Seen:
    """What a client saw: tok/s over its whole run, and the mean over requests of the time per token after the first."""

    output_throughput: float
    tpot_ms: float


@asynccontextmanager
async def engine(profile: str, folder: Path) -> AsyncIterator[str]:
    with reserve_ports() as ports:
        argv = [sys.executable, "-m", "spectune.engines.simulated", *ENGINE, "--port", str(ports.http)]
        env = {**os.environ, "SPECTUNE_SIM_PROFILE": profile}
        async with Server(argv, env, port=ports.http, log_path=folder / f"server-{ports.http}.log") as server:
            await server.wait_ready(120)
            yield server.url
            behind = server.log_path.read_text().count("behind its clock")
            if behind:
                print(f"note: the simulated engine complained {behind} times of being behind its clock")


async def spectune_client(url: str, load: Load) -> Seen:
    draw = random.Random(1)
    prompts = [
        TokenizedPrompt(
            Prompt(str(number), "random", "-"), [draw.randrange(VOCABULARY) for _ in range(load.prompt_tokens)]
        )
        for number in range(load.requests)
    ]
    plan = LevelPlan(
        ClosedLoop(load.concurrency), Sampling(load.output_tokens, ignore_eos=True), precision=0.0, time_limit_s=3600,
        warmup_limit_s=0, drain_limit_s=3600,
    )  # fmt: skip
    async with GenerateClient(url) as client:
        run = await run_level(client, iter(prompts), plan)
    records = run.records
    assert len(records) == load.requests
    assert not any(record.failed for record in records)
    took = max(record.end_s for record in records) - min(record.sent_s for record in records)
    tpots = [
        (record.chunks[-1][0] - record.chunks[0][0]) / (record.output_tokens - 1) for record in records
    ]  # fmt: skip
    return Seen(sum(record.output_tokens for record in records) / took, 1000 * sum(tpots) / len(tpots))


async def sglang_client(url: str, load: Load, runtime: Runtime, datasets: Path, folder: Path) -> Seen:
    result = folder / "sglang.jsonl"
    argv = [
        str(runtime.python), "-m", "sglang.benchmark.serving", "--backend", "sglang", "--base-url", url,
        "--model", "moonshotai/Kimi-K2.5", "--tokenizer", str(runtime.models / "target"),
        "--dataset-name", "random-ids", "--tokenize-prompt",
        "--random-input-len", str(load.prompt_tokens), "--random-output-len", str(load.output_tokens),
        "--random-range-ratio", "1", "--num-prompts", str(load.requests), "--max-concurrency", str(load.concurrency),
        "--warmup-requests", "0", "--disable-tqdm", "--output-file", str(result),
    ]  # fmt: skip
    path = os.pathsep.join([str(datasets), runtime.env["PYTHONPATH"]])
    env = {**os.environ, **runtime.env, "PYTHONPATH": path, "NO_PROXY": "127.0.0.1"}
    done = await asyncio.to_thread(subprocess.run, argv, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"SGLang's client failed:\n{done.stderr[-3000:]}")
    told = json.loads(result.read_text().splitlines()[-1])
    assert told["completed"] == load.requests, told
    return Seen(told["output_throughput"], told["mean_tpot_ms"])


async def compare(profile: str, load: Load, datasets: Path) -> bool:
    """Print one row; returns whether the two agree."""
    runtime = install(CPU_REFERENCE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with engine(profile, folder) as url:
            ours = await spectune_client(url, load)
        async with engine(profile, folder) as url:
            theirs = await sglang_client(url, load, runtime, datasets, folder)
    speed, tpot = ours.output_throughput / theirs.output_throughput - 1, ours.tpot_ms / theirs.tpot_ms - 1
    print(
        f"{load.concurrency:11d} {ours.output_throughput:11.1f} {theirs.output_throughput:9.1f} {100 * speed:+8.2f} %"
        f" {ours.tpot_ms:11.2f} {theirs.tpot_ms:9.2f} {100 * tpot:+8.2f} %"
    )
    return max(abs(speed), abs(tpot)) <= TOLERANCE


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=Path, required=True, help="folder that has the package datasets")
    parser.add_argument("--profile", default="kimi-k2.5-pcie")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=8, help="requests per slot")
    parser.add_argument("--prompt-tokens", type=int, default=200)
    parser.add_argument("--output-tokens", type=int, default=128)
    options = parser.parse_args()
    print(f"simulated engine, profile {options.profile}, EAGLE3 5/1/6; load average {os.getloadavg()[0]:.2f}")
    print(f"{'':11} {'output throughput, tok/s':^32} {'time per output token, ms':^33}")
    print("concurrency    spectune    SGLang  difference    spectune    SGLang  difference")
    rows = []
    for concurrency in options.concurrency:
        load = Load(concurrency, options.rounds * concurrency, options.prompt_tokens, options.output_tokens)
        rows.append(await compare(options.profile, load, options.datasets))
    verdict = "met" if all(rows) else "missed"
    print(f"target: within {100 * TOLERANCE:g} % on both: {verdict}; load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
