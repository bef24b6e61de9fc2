"""One launch: start the engine, measure every level, end it, and say what came of it."""

from __future__ import annotations

import asyncio
import math
import os
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from spectune import files
from spectune.analysis.measurement import LevelMeasurement, NothingMeasuredError, measure_level
from spectune.bench.client import GenerateClient, Sampling
from spectune.bench.level import LevelPlan, LevelProgress, LevelRun
from spectune.bench.load import run_level
from spectune.bench.records import dump_records
from spectune.engines.protocol import Engine, LaunchCommand, Mismatch
from spectune.errors import SpectuneError
from spectune.search.feed import PromptFeed
from spectune.search.records import Seconds, Status, Step, TrialRecord
from spectune.search.watcher import Watcher
from spectune.serving import (
    EngineDied,
    EngineFailed,
    Failure,
    FailureClass,
    PortHeldError,
    Server,
    classify_requests,
    log_tail,
    reserve_ports,
)
from spectune.space import Level, SearchSpace

HOST = "127.0.0.1"
MOST_FAILED = 0.02  # of a level's requests; with more, its figures are about the failures
HANG_S = 60.0  # without a new token on a request that is being served
PROMPTS_AHEAD = 256  # rendered before a level begins
STOP_GRACE_S = 8.0
EXCERPT_BYTES = 2000


class TrialFailed(Exception):
    """The launch gave no measurement to use; what was measured before stays in the record."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass
class Clock:
    """Adds up where the wall time of a launch goes."""

    began: float = field(default_factory=time.monotonic)
    startup: float = 0.0
    measuring: float = 0.0
    shutdown: float = 0.0

    def seconds(self) -> Seconds:
        """Return the account up to now."""
        return Seconds(self.startup, self.measuring, self.shutdown, time.monotonic() - self.began)


class Trial:
    """A launch under way."""

    def __init__(
        self, step: Step, folder: Path, space: SearchSpace, engine: Engine, feed: PromptFeed, watcher: Watcher
    ) -> None:
        self._step, self._folder, self._space = step, folder, space
        self._engine, self._feed, self._watcher = engine, feed, watcher
        self._clock = Clock()
        self._levels: list[LevelMeasurement] = []
        self._suspect: list[Mismatch] = []

    async def run(self) -> TrialRecord:
        """Make the launch and return its record; the engine is gone when this returns or raises."""
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        failure: Failure | None = None
        wanted = self._space.engine.args.get("port")
        with reserve_ports(wanted if isinstance(wanted, int) else None) as ports:
            command = self._engine.command(
                self._step.candidate, host=HOST, port=ports.http, nccl_port=ports.nccl
            )  # fmt: skip
            self._write_launch(command)
            env = command.environment(os.environ) | dict(self._engine.supervised_env)
            server = Server(command.argv, env, port=ports.http, host=HOST, log_path=self._folder / "server.log")
            try:
                await self._serve(server)
            except EngineFailed as died:
                failure = self._engine.classify(died)
            except PortHeldError as held:
                failure = Failure(FailureClass.PORT_IN_USE, str(held), log_tail(server.log_path, EXCERPT_BYTES))
            except TrialFailed as failed:
                failure = failed.failure
            finally:
                await self._end(server)
        return TrialRecord(
            trial=self._step.trial,
            role=self._step.role,
            candidate=self._step.candidate,
            launch_index=self._step.trial,
            why=self._step.why,
            started_at=started_at,
            status=Status.FAILED if failure else Status.SUSPECT if self._suspect else Status.OK,
            seconds=self._clock.seconds(),
            command=command,
            prompts_end=self._feed.position,
            failure=failure,
            suspect=tuple(self._suspect),
            levels=tuple(self._levels),
        )

    async def _serve(self, server: Server) -> None:
        began = time.monotonic()
        self._watcher.says("starting the engine")
        try:
            await server.start()
            await server.wait_ready(
                self._space.engine.startup_timeout, on_progress=lambda line: self._watcher.says(f"starting: {line}")
            )
        finally:
            self._clock.startup = time.monotonic() - began
        info = await server_info(server.url)
        files.write_json(self._folder / "server_info.json", info)
        self._suspect = self._engine.mismatches(self._step.candidate, info)
        async with GenerateClient(server.url, inactivity_s=HANG_S) as client:
            for level in self._space.workload.levels:
                await self._measure(server, client, level)

    async def _measure(self, server: Server, client: GenerateClient, level: Level) -> None:
        workload = self._space.workload
        self._watcher.says(f"{level.name}: preparing prompts")
        await asyncio.to_thread(self._feed.prepare, PROMPTS_AHEAD)
        if not await client.flush_cache():
            self._watcher.notes(f"the engine did not empty its prefix cache before {level.name}")
        plan = LevelPlan(
            concurrency=level.concurrency,
            sampling=Sampling(workload.output_tokens, workload.temperature, workload.ignore_eos),
            precision=workload.precision,
            time_limit_s=workload.level_time_limit,
            hang_s=HANG_S,
        )
        began = time.monotonic()
        try:
            run = await run_level(
                client, self._feed, plan, stop_when=server.exited,
                progress=lambda at: self._watcher.says(f"{level.name}: {describe(at)}"),
            )  # fmt: skip
        finally:
            self._clock.measuring += time.monotonic() - began
        files.write_whole(
            self._folder / f"level-{level.name[0]}{level.concurrency:03d}.jsonl", dump_records(run.records)
        )
        self._judge(server, level, run)
        try:
            measured = measure_level(level.name, run.records, run.measured_s, client_cpu=run.client_cpu)
        except NothingMeasuredError as error:
            excerpt = log_tail(server.log_path, EXCERPT_BYTES)
            raise TrialFailed(Failure(FailureClass.CRASH, str(error), excerpt)) from None
        self._levels.append(measured)
        self._watcher.measured(measured)

    def _judge(self, server: Server, level: Level, run: LevelRun) -> None:
        """Raise if what was measured is not the engine's speed at this level."""
        if server.exited.done():
            raise EngineDied(server.exited.result(), log_tail(server.log_path))
        errors = [record.error for record in run.records if record.error is not None]
        hangs = run.stop_reason == "hang"
        if hangs or not run.records or len(errors) > MOST_FAILED * len(run.records):
            excerpt = log_tail(server.log_path, EXCERPT_BYTES)
            raise TrialFailed(classify_requests(errors, level.name, len(run.records), hangs=hangs, excerpt=excerpt))

    async def _end(self, server: Server) -> None:
        self._watcher.says("ending the engine")
        began = time.monotonic()
        teardown = await asyncio.shield(asyncio.ensure_future(server.stop(STOP_GRACE_S)))
        self._clock.shutdown = time.monotonic() - began
        if teardown.left:
            raise SpectuneError(
                f"{teardown.left} engine processes of trial {self._step.trial} cannot be ended; "
                "see `ps -ef | grep sglang`, then run the same command again"
            )

    def _write_launch(self, command: LaunchCommand) -> None:
        script = f"#!/usr/bin/env bash\nexec {command.shell()}\n"
        files.write_whole(self._folder / "launch.sh", script, executable=True)


def describe(progress: LevelProgress) -> str:
    """Return where a level stands in a few words."""
    text = f"{progress.phase} {progress.elapsed_s:.0f} s, {progress.tokens_per_s:.0f} tok/s"
    if progress.phase == "measuring" and math.isfinite(progress.throughput_precision):
        text += f" ±{progress.throughput_precision:.1%}"
    return text


async def server_info(url: str) -> dict[str, Any]:
    """Return what the running engine says of itself; empty when it does not say."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        for path in ("/server_info", "/get_server_info"):  # the second is the older name
            try:
                async with session.get(url + path, timeout=aiohttp.ClientTimeout(total=30)) as answer:
                    if answer.status == 200:
                        info = await answer.json()
                        return info if isinstance(info, dict) else {}
            except (aiohttp.ClientError, TimeoutError, ValueError):
                continue
    return {}
