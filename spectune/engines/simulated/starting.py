"""The start of the simulated engine up to its HTTP server: weights, memory, graphs, with SGLang's log lines."""

from __future__ import annotations

import asyncio

from spectune.engines.simulated import memory
from spectune.engines.simulated.failing import (
    LAUNCHER_TRACEBACK,
    NO_SUCH_GPU,
    Dying,
    EngineEnded,
    error_of,
    not_enough_memory,
)
from spectune.engines.simulated.fault_actions import FaultActions
from spectune.engines.simulated.information import Information
from spectune.engines.simulated.log import EngineLog

MAX_PREFILL_TOKENS = 16384  # SGLang's default


class Starting:
    """Takes the engine through the points startup, load and capture."""

    def __init__(
        self, information: Information, faults: FaultActions, dying: Dying, log: EngineLog, time_scale: float
    ) -> None:
        self._information, self._faults, self._dying, self._log = information, faults, dying, log
        self._scale = time_scale
        self._setup, self._file = information.launch.setup, information.launch.profile.file

    async def run(self) -> None:
        """Start, or die."""
        await self._faults.starting("startup")
        doom = self._information.command.doom
        if doom is not None and doom.failure.at == "startup":
            raise EngineEnded(self._dying.by_refusal(LAUNCHER_TRACEBACK + doom.error))
        if self._setup.ranks > self._file.gpu.count:
            self._dying.by_scheduler(NO_SUCH_GPU, "startup")
        if not memory.weights_fit(self._file, self._setup):
            self._dying.by_scheduler(not_enough_memory(self._setup.mem_fraction), "startup")
        await self._load()
        free_gb = self._file.gpu.memory_gb - memory.static_gb(self._file, self._setup)
        self._log.scheduler(f"Memory pool end. avail mem={free_gb:.2f} GB")
        await self._capture(free_gb)
        launch, resolved = self._information.launch, self._information.command.resolved
        self._log.scheduler(
            f"max_total_num_tokens={launch.kv_tokens}, chunked_prefill_size={resolved.get('chunked_prefill_size')}, "
            f"max_prefill_tokens={resolved.get('max_prefill_tokens', MAX_PREFILL_TOKENS)}, "
            f"max_running_requests={launch.most_running}, context_len={self._information.limits.context}, "
            f"available_gpu_mem={free_gb:.2f} GB"
        )

    async def _load(self) -> None:
        total, weights = self._file.gpu.memory_gb, memory.weights_gb(self._file, self._setup)
        self._log.scheduler(f"Load weight begin. avail mem={total:.2f} GB")
        seconds = self._file.startup.load_s
        await self._work("load_weight", seconds)
        await self._faults.starting("load")
        self._log.scheduler(
            f"Load weight end. elapsed={seconds:.2f} s, type=Simulated, avail mem={total - weights:.2f} GB, "
            f"mem usage={weights:.2f} GB."
        )
        doom = self._information.command.doom
        if doom is not None and doom.failure.at == "load":
            self._dying.by_scheduler(doom.error, "load")

    async def _capture(self, free_gb: float) -> None:
        await self._faults.starting("capture")
        setup, captured = self._setup, self._information.launch.captured
        if not captured:
            return
        what = "target verify" if setup.speculative else "target decode"
        self._log.scheduler(
            f"Capture {what} CUDA graph begin. backend=full, num_tokens_per_req={setup.num_draft_tokens}, "
            f"avail mem={free_gb:.2f} GB"
        )
        seconds = self._file.startup.capture_s_per_graph * len(captured)
        await self._work(self._setup.verifying, seconds)
        if not memory.graphs_fit(self._file, setup):
            self._dying.by_scheduler(error_of("oom", "capture"), "capture")
        used = memory.graphs_gb(self._file, setup)
        self._log.scheduler(
            f"Capture {what} CUDA graph end. bs={list(captured)}, elapsed={seconds:.2f} s, "
            f"mem usage={used:.2f} GB, avail mem={free_gb - used:.2f} GB."
        )

    async def _work(self, name: str, seconds: float) -> None:
        """Take the simulated time of a phase."""
        self._information.startup_s[name] = seconds
        await asyncio.sleep(seconds * self._scale)
