"""The worker processes of one simulated engine, and the environment they run in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).with_name("worker.py")


def worker_environment(resolved: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """Return the workers' environment: the launch's, and what SGLang's launcher sets before it spawns (section 1.3).

    Args:
        resolved: SGLang's fields.
        env: The environment of the launch.
    """
    symmetric = bool(resolved.get("enable_symm_mem"))
    nvls = symmetric or bool(resolved.get("enable_nccl_nvls"))
    result = dict(env)
    for name, switched_on in (("NCCL_CUMEM_ENABLE", symmetric), ("NCCL_NVLS_ENABLE", nvls)):
        if switched_on or name not in result:
            result[name] = str(int(switched_on))
    result["CUDA_DEVICE_MAX_CONNECTIONS"] = "8"
    if result.get("TRTLLM_ENABLE_PDL") != "0":
        result["TRTLLM_ENABLE_PDL"] = "1"
    if int(resolved.get("tp_size") or 1) > 1 and (resolved.get("decode_cuda_graph") or {}).get("backend") != "disabled":
        result.setdefault("NCCL_GRAPH_REGISTER", "0")
    return result


class Workers:
    """One scheduler per rank and a detokenizer.

    Attributes:
        processes: (name as SGLang's watchdog calls it, process), rank 0 first.
    """

    def __init__(self, ranks: int, env: Mapping[str, str]) -> None:
        """Start them."""
        self._env = dict(env)
        titles = [(f"scheduler_{rank}", f"sglang::scheduler_TP{rank}") for rank in range(ranks)]
        titles.append(("detokenizer", "sglang::detokenizer"))
        self.processes = [(name, self._start(title)) for name, title in titles]

    def dead(self) -> tuple[str, int, int] | None:
        """Return name, pid and exit code of the first one that has ended."""
        for name, process in self.processes:
            code = process.poll()
            if code is not None:
                return name, process.pid, code
        return None

    def crash(self) -> tuple[str, int, int]:
        """Let rank 0 die as of a fault in native code; returns its name, pid and exit code."""
        name, process = self.processes[0]
        process.send_signal(signal.SIGSEGV)
        return name, process.pid, process.wait()

    def detach_one(self) -> None:
        """Start one that leaves the process tree."""
        self._start("sglang::scheduler_lost", "detach").wait()

    def kill(self) -> None:
        """End all that are left, and wait for them."""
        for _, process in self.processes:
            process.kill()
        for _, process in self.processes:
            process.wait()

    def _start(self, title: str, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), title, str(os.getpid()), *more],
            env=self._env,
            stdin=subprocess.DEVNULL,
        )
