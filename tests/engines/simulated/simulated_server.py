"""Real processes of the simulated engine for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulated_samples import MODEL, profile_text

from spectune.serving import reserve_ports

DEADLINE_S = 240.0
# Loopback must never go through a proxy the environment may name.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass
class Running:
    """One engine."""

    process: subprocess.Popen[bytes]
    url: str
    log_path: Path

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def get(self, path: str) -> tuple[int, bytes]:
        return self._ask(urllib.request.Request(self.url + path))

    def post(self, path: str, body: Any) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._ask(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}))

    def generate(self, tokens: int = 8, **body: Any) -> Any:
        prompt = body or {"text": "Hello"}
        status, answer = self.post("/generate", {**prompt, "sampling_params": {"max_new_tokens": tokens}})
        assert status == 200, answer
        return json.loads(answer)

    def wait_ready(self) -> None:
        self.wait_for(self._ready)

    def wait_for(self, condition: Any) -> None:
        end = time.monotonic() + DEADLINE_S
        while not condition():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.02)

    def ended(self) -> int:
        return self.process.wait(DEADLINE_S)

    def _ready(self) -> bool:
        try:
            return self.get("/ready")[0] == 200
        except OSError:
            return False

    def _ask(self, request: urllib.request.Request) -> tuple[int, bytes]:
        try:
            with OPENER.open(request, timeout=DEADLINE_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


@contextmanager
def engine(
    folder: Path,
    *words: str,
    env: dict[str, str] | None = None,
    time_scale: float = 0.05,
    held: bool = False,
    **changes: Any,
) -> Iterator[Running]:
    """Start an engine with the test profile, whose port may be held; it and its workers are gone afterwards."""
    profile = folder / "profile.yaml"
    profile.write_text(profile_text(**changes))
    with reserve_ports() as ports, ExitStack() as holder, (folder / "server.log").open("wb") as log:
        if held:
            holder.enter_context(socket.create_server(("127.0.0.1", ports.http)))
        argv = [sys.executable, "-m", "spectune", "simulate", "--profile", str(profile), "--port", str(ports.http)]
        argv += ["--time-scale", str(time_scale), "--", *MODEL, "--tp-size", "2", *words]
        process = subprocess.Popen(
            argv, stdout=log, stderr=log, env={**os.environ, **(env or {})}, start_new_session=True
        )
        try:
            yield Running(process, f"http://127.0.0.1:{ports.http}", folder / "server.log")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def speculating(steps: int = 3, topk: int = 1, tokens: int | None = None) -> tuple[str, ...]:
    given = {"num-steps": steps, "eagle-topk": topk, "num-draft-tokens": steps + 1 if tokens is None else tokens}
    words = [word for name, value in given.items() for word in (f"--speculative-{name}", str(value))]
    return ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "org/drafter", *words)
