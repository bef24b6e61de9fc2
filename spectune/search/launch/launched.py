"""An engine that one trial has to itself, from its start to its end."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from spectune.bench.canary import Answer, ask
from spectune.bench.client import GenerateClient
from spectune.bench.course import GiveUp
from spectune.bench.level import LevelPlan, LevelProgress, LevelRun
from spectune.bench.load import run_level
from spectune.bench.prompts import TokenizedPrompt
from spectune.engines.address import Address, authorization
from spectune.engines.protocol import Effective, Engine, LaunchCommand
from spectune.engines.served import Served
from spectune.machine import Difference, MachineWatch, Others
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.inquiry import context_length, server_info
from spectune.serving import EngineDied, Failure, GpuMemory, Server, Teardown, environments, log_tail

PROMPTS_AHEAD = 256  # rendered before a level begins
EXCERPT_BYTES = 2000  # of a log, enough to see what an engine died of
DYING_S = 10.0  # SGLang takes 6 s over the end of a scheduler, and drops its connections before it is gone


class TrialFailed(Exception):
    """A launch gave no measurement to use; what was measured before stays in the record."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


Says = Callable[[str], None]
"""Takes what is going on, in a few words; replaces the words before it."""


class Launched(Protocol):
    """One launch of an engine. Times are its own: simulated seconds where time is virtual."""

    def now(self) -> float:
        """Return seconds on a clock that only moves forward."""
        ...

    async def start(self, timeout_s: float, says: Says) -> Mapping[str, Any]:
        """Start it and wait until it answers; returns what it then says of itself, empty where it does not.

        Raises:
            EngineFailed: It died, or was not ready in time.
            PortHeldError: Another program answers on its port.
        """
        ...

    async def measure(
        self, plan: LevelPlan, prompts: PromptFeed, says: Says, give_up: GiveUp | None = None
    ) -> LevelRun:
        """Put a load on it; whatever becomes of it, what was measured is returned."""
        ...

    async def answers(
        self, prompts: Sequence[TokenizedPrompt], *, together: bool, temperature: float = 0.0
    ) -> list[Answer]:
        """Return its answers, in one batch or one after the other; errors stand in them."""
        ...

    def workers(self, title: str) -> list[Mapping[str, str]]:
        """Return the environment of every process whose name begins with `title`."""
        ...

    def effective(self, server_info: Mapping[str, Any]) -> Effective:
        """Return what it really runs."""
        ...

    def served(self, begin_s: float, end_s: float, running: int | None) -> Served:
        """Return what it says itself of the time between two moments of its clock.

        Args:
            begin_s: The first.
            end_s: The second.
            running: Requests that were to run at once; None where they came as they came.
        """
        ...

    def died(self) -> EngineDied | None:
        """Return how it ended by itself, None while it lives."""
        ...

    def machine_changes(self) -> tuple[Difference, ...]:
        """Return how the machine was not what it was when the study began, as far as it has anything to do with it."""
        ...

    def others(self) -> Others:
        """Return what other programs used of the machine while the last level was measured."""
        ...

    async def stop(self, grace_s: float) -> Teardown:
        """End it, whatever state it is in."""
        ...

    def log_tail(self, max_bytes: int = EXCERPT_BYTES) -> str:
        """Return the end of its log."""
        ...


class ServedLaunch:
    """A process tree that answers over HTTP."""

    def __init__(
        self, engine: Engine, command: LaunchCommand, *, address: Address, port: int, log: Path, hang_s: float,
        notes: Says, machine: MachineWatch,
    ) -> None:  # fmt: skip
        """Prepare a launch.

        Args:
            engine: Reads its log.
            command: The process to start.
            address: Where it will listen.
            port: Likewise.
            log: File for all it says.
            hang_s: Seconds without a new token on a request that is being served, after which it hangs.
            notes: Takes what is worth a line of its own.
            machine: Has looked at the machine before this launch.
        """
        env = command.environment(os.environ)
        host, headers = address.reached_at, authorization(address.api_key)
        self._server = Server(command.argv, env, port=port, host=host, log_path=log, headers=headers)
        self._client = GenerateClient(self._server.url, inactivity_s=hang_s, headers=headers)
        self._headers = headers
        self._engine, self._notes, self._hang_s, self._machine = engine, notes, hang_s, machine
        self._gpus = GpuMemory(engine.gpus_held, env.get("CUDA_VISIBLE_DEVICES"))
        self._others = Others()
        self.now = time.monotonic
        self._level_began_at = _epoch()

    async def start(self, timeout_s: float, says: Says) -> Mapping[str, Any]:
        """Start the process tree on free GPUs and wait for one real generation."""
        await self._gpus.wait_until_free(says)
        await self._server.start()
        began = time.monotonic()
        await self._server.wait_ready(
            timeout_s, on_progress=lambda stage: says(_starting(time.monotonic() - began, stage))
        )
        return await server_info(self._server.url, self._headers)

    async def measure(
        self, plan: LevelPlan, prompts: PromptFeed, says: Says, give_up: GiveUp | None = None
    ) -> LevelRun:
        """Run the load client against it."""
        says("preparing prompts")
        prompts.fit(await context_length(self._server.url, self._headers))
        await asyncio.to_thread(prompts.prepare, PROMPTS_AHEAD)
        async with self._client as client:
            if not await client.flush_cache():
                self._notes("the engine did not empty its prefix cache before a level")
            await asyncio.to_thread(self._machine.begin)
            self._level_began_at = _epoch()
            run = await run_level(
                client, prompts, plan,
                stop_when=self._server.exited, give_up=give_up, progress=lambda at: says(describe(at)),
            )  # fmt: skip
        self._others = await asyncio.to_thread(self._machine.look, self._server.pids())
        return run

    async def answers(
        self, prompts: Sequence[TokenizedPrompt], *, together: bool, temperature: float = 0.0
    ) -> list[Answer]:
        """Ask over HTTP; where answers are missing, wait until it is clear whether the engine is dying of it."""
        url, patience_s = self._server.url, self._hang_s
        answers = await ask(
            url, prompts, together=together, temperature=temperature, patience_s=patience_s, headers=self._headers
        )
        if any(answer.error is not None for answer in answers):
            await asyncio.wait([self._server.exited], timeout=DYING_S)
        return answers

    def workers(self, title: str) -> list[Mapping[str, str]]:
        """Read what the kernel shows of each process."""
        return environments(self._server.server_id, title)

    def effective(self, server_info: Mapping[str, Any]) -> Effective:
        """Read its log."""
        return self._engine.effective(self._server.log_path, server_info)

    def served(self, begin_s: float, end_s: float, running: int | None) -> Served:
        """Read its log, which counts in seconds of the epoch.

        Only what lies between the moments by the time of day as it was then and as it is now: where it was set
        meanwhile, nothing of another time is taken for this one.
        """
        epochs = self._level_began_at, _epoch()
        return self._engine.served(self._server.log_path, max(epochs) + begin_s, min(epochs) + end_s, running)

    def died(self) -> EngineDied | None:
        """Return how the first process ended."""
        if not self._server.exited.done():
            return None
        return EngineDied(self._server.exited.result(), log_tail(self._server.log_path))

    def machine_changes(self) -> tuple[Difference, ...]:
        """Return what was seen before the launch and after each level."""
        return self._machine.changes

    def others(self) -> Others:
        """Return what was seen when the level had ended."""
        return self._others

    async def stop(self, grace_s: float) -> Teardown:
        """End the process tree, and give the driver time to take back its memory."""
        teardown = await self._server.stop(grace_s)
        if (missing := await self._gpus.wait_until_back()) is not None:
            self._notes(missing)
        return teardown

    def log_tail(self, max_bytes: int = EXCERPT_BYTES) -> str:
        """Return the end of the log file."""
        return log_tail(self._server.log_path, max_bytes)


def _starting(seconds: float, stage: str) -> str:
    """Say for how long an engine has been starting, and what it is doing by its log."""
    return f"the engine starts, for {seconds:.0f} s now" + (f": {stage}" if stage else "")


def _epoch() -> float:
    """Return the time of day at which the clock of launches stood at 0; it moves when the time of day is set."""
    return time.time() - time.monotonic()


def describe(progress: LevelProgress) -> str:
    """Return where a level stands in a few words."""
    text = f"{progress.phase} {progress.elapsed_s:.0f} s, {progress.tokens_per_s:.0f} tok/s"
    if progress.phase == "measuring" and math.isfinite(progress.speed_precision):
        text += f" ±{progress.speed_precision:.1%}"
    return text
