"""What the load client costs and how well it keeps time: `python -m benchmarks.load_client [--sglang FOLDER]`.

1. CPU per streamed chunk, beside `sglang.benchmark.serving` on the same simulated engine in the same run. Both clients
   run in turns with few and with many requests, in processes of their own; the difference leaves out their start.
   SGLang's client needs the cpu-reference runtime and the package datasets: `pip install --target FOLDER datasets`.
2. Times to first token and between chunks, against the clock of a server that stamps all it writes.
3. Many streams at once: what the server wrote must all arrive.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from spectune.bench.arrivals import ClosedLoop
from spectune.bench.client import GenerateClient, Sampling
from spectune.bench.level import LevelPlan, LevelRun
from spectune.bench.load import run_level
from spectune.bench.prompts import Prompt, TokenizedPrompt
from spectune.engines.cpu_reference import CPU_REFERENCE, install
from spectune.serving import Server, reserve_ports

MOST_CPU_RATIO = 0.7
MOST_ERROR_MS = 1.0
CONCURRENCY, MANY = 64, 256
ENGINE = (
    "--model-path", "moonshotai/Kimi-K2.5", "--tp-size", "8", "--mem-fraction-static", "0.85", "--attention-backend",
    "triton", "--max-running-requests", "64", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path",
    "1.4m", "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
)  # fmt: skip
PROMPT_TOKENS, OUTPUT_TOKENS, VOCABULARY = 64, 256, 400
FEW, LOTS = 64, 1024  # requests; SGLang's client takes seconds of CPU to start, so the others must be many
ROUNDS = 2


def asked(*, spread: bool) -> Iterator[TokenizedPrompt]:
    """Prompts that begin with their number, endless; with answers of different lengths so that they end one by one."""
    draw = random.Random(1)
    for number in itertools.count(1000):
        ids = [number, *(draw.randrange(VOCABULARY) for _ in range(PROMPT_TOKENS - 1))]
        tokens = draw.randrange(OUTPUT_TOKENS // 2, OUTPUT_TOKENS) if spread else OUTPUT_TOKENS
        yield TokenizedPrompt(Prompt(str(number), "random", "-", output_tokens=tokens), ids)


async def ask(url: str, concurrency: int, requests: int | None = None, time_limit_s: float = 3600.0) -> LevelRun:
    """Run spectune's client in this process, over so many requests or so much time."""
    plan = LevelPlan(
        ClosedLoop(concurrency), Sampling(OUTPUT_TOKENS, ignore_eos=True), precision=-1.0, time_limit_s=time_limit_s,
        warmup_limit_s=0.5, drain_limit_s=60,
    )  # fmt: skip
    prompts = itertools.islice(asked(spread=requests is None), requests)
    async with GenerateClient(url) as client:
        return await run_level(client, prompts, plan)


def cpu_s(argv: list[str], env: dict[str, str]) -> float:
    """Return the CPU seconds of a process that has to succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{argv[1:4]} failed:\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def spectune_argv(url: str, requests: int) -> list[str]:
    return [sys.executable, "-m", "benchmarks.load_client", "--client", url, str(requests)]


def sglang_argv(url: str, requests: int, python: str, tokenizer: str) -> list[str]:
    return [
        python, "-m", "sglang.benchmark.serving", "--backend", "sglang", "--base-url", url,
        "--model", "moonshotai/Kimi-K2.5", "--tokenizer", tokenizer, "--dataset-name", "random-ids",
        "--tokenize-prompt",
        "--random-input-len", str(PROMPT_TOKENS), "--random-output-len", str(OUTPUT_TOKENS),
        "--random-range-ratio", "1", "--num-prompts", str(requests), "--max-concurrency", str(CONCURRENCY),
        "--warmup-requests", "0", "--disable-tqdm", "--output-file", os.devnull,
    ]  # fmt: skip


async def compare_cpu(datasets: Path | None, folder: Path) -> dict[str, float]:
    """Return microseconds of CPU per chunk of each client; chunks per request are the same for both."""
    clients: dict[str, Any] = {"spectune": (spectune_argv, dict(os.environ))}
    if datasets is not None:
        runtime = install(CPU_REFERENCE)
        path = os.pathsep.join([str(datasets), runtime.env["PYTHONPATH"]])
        env = {**os.environ, **runtime.env, "PYTHONPATH": path, "NO_PROXY": "127.0.0.1"}
        python, tokenizer = str(runtime.python), str(runtime.models / "target")
        clients["SGLang"] = (lambda url, n: sglang_argv(url, n, python, tokenizer), env)
    found: dict[str, float] = {}
    with reserve_ports() as ports:
        argv = [sys.executable, "-m", "spectune.engines.simulated", *ENGINE, "--port", str(ports.http)]
        env = {**os.environ, "SPECTUNE_SIM_PROFILE": "kimi-k2.5-pcie", "SPECTUNE_SIM_TIME_SCALE": "0.25"}
        async with Server(argv, env, port=ports.http, log_path=folder / "engine.log") as server:
            await server.wait_ready(120)
            run = await ask(server.url, CONCURRENCY, FEW)
            chunks = sum(len(record.chunks) for record in run.records) / len(run.records)
            spent: dict[tuple[str, int], list[float]] = {}
            for _ in range(ROUNDS):
                for (name, (argv_of, environment)), requests in itertools.product(clients.items(), (FEW, LOTS)):
                    cpu = await asyncio.to_thread(cpu_s, argv_of(server.url, requests), environment)
                    spent.setdefault((name, requests), []).append(cpu)
            for name in clients:  # what else runs on the machine only ever adds to it
                more = min(spent[name, LOTS]) - min(spent[name, FEW])
                found[name] = 1e6 * more / (chunks * (LOTS - FEW))
    return found


async def stamped(concurrency: int, seconds: float) -> tuple[LevelRun, dict[str, Any]]:
    """Return a level on the stamping server, and what that says it wrote."""
    with reserve_ports() as ports:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.stamped_server", str(ports.http), stdout=subprocess.PIPE
        )
        try:
            assert server.stdout is not None
            await server.stdout.readline()
            url = f"http://127.0.0.1:{ports.http}"
            run = await ask(url, concurrency, time_limit_s=seconds)
            async with aiohttp.ClientSession(trust_env=False) as session, session.get(f"{url}/stamps") as answer:
                return run, await answer.json()
        finally:
            server.kill()
            await server.wait()


def errors_ms(run: LevelRun, stamps: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much times to first token and between chunks differ from the server's own, in milliseconds.

    Of the requests of the steady state: a level begins with as many connections at once.
    """
    assert run.measured_s is not None
    first, between = [], []
    for record in run.records:
        if record.sent_s < run.measured_s[0]:
            continue
        received_s, written_s = stamps[record.prompt_id]
        arrived_s = [at for at, _ in record.chunks]
        if record.completed and len(arrived_s) == len(written_s):
            first.append(arrived_s[0] - record.sent_s - (written_s[0] - received_s))
            between.append(np.diff(arrived_s) - np.diff(written_s))
    return 1000 * np.abs(first), 1000 * np.abs(np.concatenate(between))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sglang", type=Path, metavar="FOLDER", help="has the package datasets; compares the clients")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement against the stamping server")
    parser.add_argument("--client", nargs=2, metavar=("URL", "REQUESTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        await ask(options.client[0], CONCURRENCY, int(options.client[1]))
        return
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    met = True
    with tempfile.TemporaryDirectory() as name:
        cpu = await compare_cpu(options.sglang, Path(name))
    for client, cost_us in cpu.items():
        print(f"CPU per chunk, {client:8}  {cost_us:8.1f} µs")
    if "SGLang" in cpu:
        ratio = cpu["spectune"] / cpu["SGLang"]
        met = met and ratio <= MOST_CPU_RATIO
        print(f"ratio                    {ratio:8.2f}      target at most {MOST_CPU_RATIO:g}")
    run, stamps = await stamped(CONCURRENCY, options.seconds)
    for what, error in zip(("time to first token", "time between chunks"), errors_ms(run, stamps), strict=True):
        p50, p95 = np.percentile(error, [50, 95])
        met = met and p95 <= MOST_ERROR_MS
        print(f"{what}, c{CONCURRENCY}: off by {p50:.2f} ms (median), {p95:.2f} ms (p95) of {error.size:,}; "
              f"target p95 {MOST_ERROR_MS:g} ms")  # fmt: skip
    run, stamps = await stamped(MANY, options.seconds)
    records = run.records
    wrote, got = sum(len(written) for _, written in stamps.values()), sum(len(record.chunks) for record in records)
    lost = sum(not record.completed for record in records)
    met = met and not lost and wrote == got
    print(f"{MANY} streams at once: {len(records):,} requests, {lost} lost; chunks written {wrote:,}, received {got:,}")
    print(f"targets: {'met' if met else 'missed'}; load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
