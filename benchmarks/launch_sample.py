"""Do the rules tell which launches work? `python -m benchmarks.launch_sample [--legal N] [--json FILE]`.

Launches a random sample of legal candidates of a wide CPU space, and illegal ones past the rules, on the real engine of
the cpu-reference runtime, two at a time. Legal ones must become ready, illegal ones must be refused or die.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.engines import cpu_reference
from spectune.engines.open import open_engine
from spectune.engines.parts import Illegal
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.search.guided.enumeration import legal_candidates
from spectune.serving import EngineFailed, Server, reserve_ports
from spectune.space import Candidate, parse_space

SPACE = """
schema: 1
name: launches
engine: {runtime: cpu-reference, args: {model-path: "runtime:target"}}
search:
  speculative-algorithm: [none, EAGLE3, STANDALONE, NGRAM]
  speculative-draft-model-path: ["runtime:drafter-strong", "runtime:drafter-weak", "runtime:drafter-standalone"]
  speculative-num-steps: {from: 1, to: 6}
  speculative-eagle-topk: [1, 2, 4, 8]
  speculative-num-draft-tokens: {from: 2, to: 32}
  speculative-ngram-capacity: 100000
  max-running-requests: [4, 16]
  chunked-prefill-size: [512, 4096]
  disable-radix-cache: [false, true]
  disable-overlap-schedule: [false, true]
forbid:
  - {speculative-algorithm: EAGLE3, speculative-draft-model-path: "runtime:drafter-standalone"}
  - {speculative-algorithm: STANDALONE, speculative-draft-model-path: "runtime:drafter-strong"}
  - {speculative-algorithm: STANDALONE, speculative-draft-model-path: "runtime:drafter-weak"}
workload: {prompts: builtin:tiny, levels: [{concurrency: 4}]}
"""
EAGLE3 = {
    "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "runtime:drafter-strong",
    "speculative-num-steps": 3, "speculative-eagle-topk": 1, "speculative-num-draft-tokens": 4,
}  # fmt: skip
S, K, N = "speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens"
BROKEN: tuple[dict[str, Any], ...] = (
    {S: 2, K: 4, N: 64},
    {S: 1, K: 2, N: 5},
    {S: 3, K: 2, N: 40},
    {S: 3, K: 2, N: 12},
    {S: 2, K: 8, N: 74},
    {S: 0},
    {S: 3, K: None},
    {S: 3, K: 2, N: None},
    {"pp-size": 2},
    {"page-size": 3, "chunked-prefill-size": 100},
    {"speculative-use-rejection-sampling": True, K: 2, N: 6},
    {"speculative-algorithm": "FOO"},
)
READY_S = 240.0


@dataclass(frozen=True)
class Launch:
    """One launch to make, and what the rules say of it."""

    candidate: Candidate
    predicted: Illegal | None


@dataclass(frozen=True)
class Seen:
    """What came of it."""

    launch: Launch
    ready: bool
    words: str

    @property
    def agrees(self) -> bool:
        """Whether the engine did what the rules say."""
        return self.ready == (self.launch.predicted is None)


def launches(engine: SGLangEngine, legal: int, seed: int) -> Iterator[Launch]:
    space = parse_space(SPACE, Path("launches.yaml"))
    everything = list(legal_candidates(space, engine))
    for candidate in random.Random(seed).sample(everything, legal):
        yield Launch(candidate, None)
    for change in BROKEN:
        values = {name: value for name, value in {**EAGLE3, **change}.items() if value is not None}
        found = engine.canonical(values)
        yield Launch(Candidate.of(values), found if isinstance(found, Illegal) else None)


async def launch(engine: SGLangEngine, wanted: Launch, folder: Path) -> Seen:
    with reserve_ports() as ports:
        command = engine.command(wanted.candidate, host="127.0.0.1", port=ports.http, nccl_port=ports.nccl)
        log = folder / f"{ports.http}-{wanted.candidate.candidate_id}.log"
        server = Server(command.argv, command.environment(os.environ), port=ports.http, log_path=log)
        try:
            async with server:
                await server.wait_ready(READY_S)
        except EngineFailed as failed:
            failure = engine.classify(failed)
            return Seen(wanted, False, f"{failure.failure_class}: {failure.message}")
        return Seen(wanted, True, "ready")


async def run(engine: SGLangEngine, wanted: list[Launch], folder: Path) -> list[Seen]:
    turn = asyncio.Semaphore(2)

    async def one(number: int, this: Launch) -> Seen:
        async with turn:
            seen = await launch(engine, this, folder)
        rule = "legal" if this.predicted is None else this.predicted.rule
        mark = "agrees" if seen.agrees else "DISAGREES"
        print(f"{number:3d} {mark:9} {rule:22} {this.candidate.label[:44]:44} {seen.words[:110]}", flush=True)
        return seen

    return list(await asyncio.gather(*(one(number, this) for number, this in enumerate(wanted))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--legal", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cpu_reference.install(cpu_reference.CPU_REFERENCE)
    engine = open_engine(parse_space(SPACE, Path("launches.yaml")))
    with tempfile.TemporaryDirectory() as folder:
        seen = asyncio.run(run(engine, list(launches(engine, options.legal, options.seed)), Path(folder)))
    for name, group in (("legal", None), ("illegal", Illegal)):
        members = [s for s in seen if (s.launch.predicted is None) == (group is None)]
        print(f"{name}: {sum(s.agrees for s in members)} of {len(members)} as predicted")
    if options.json:
        rows = [
            {
                "label": s.launch.candidate.label,
                "rule": s.launch.predicted.rule if s.launch.predicted else None,
                "ready": s.ready, "agrees": s.agrees, "words": s.words,
            }
            for s in seen
        ]  # fmt: skip
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
