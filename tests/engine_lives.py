"""Launches of an engine from start to end, each made once in a test session and shared by the tests that need it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from spectune.bench import tiny_language
from spectune.engines.sglang.arguments import to_argv
from spectune.serving import EngineDied, Server, reserve_ports

START_S, END_S, ANSWER_S = 600, 240, 240
OUTPUT_TOKENS = 64
MODELS = ("model-path", "speculative-draft-model-path")
# Loopback must never go through a proxy the environment may name.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


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
# Every launch with the way it is ended.
LAUNCHES: Mapping[str, tuple[dict[str, Any], str]] = {
    "baseline": ({}, "sigterm"),
    "eagle3-chain": (eagle3(3, 1, 4), "stop"),
    "eagle3-tree": (eagle3(3, 4, 12), "sigint"),
    "standalone": (STANDALONE, "worker killed"),
    "ngram": (NGRAM, "stop"),
}


@dataclass(frozen=True)
class Program:
    """An engine: what stands before SGLang's arguments, its environment, arguments it needs, and its models."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    args: Mapping[str, Any]
    models: Path


@dataclass(frozen=True)
class Answer:
    """What came back of one HTTP request."""

    status: int
    kind: str
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[bytes]:
        return [part.removeprefix(b"data: ") for part in self.body.split(b"\n\n") if part]


@dataclass(frozen=True)
class Output:
    """What one prompt was answered with."""

    prompt: str
    ids: tuple[int, ...]
    accept_length: float | None


@dataclass(frozen=True)
class Life:
    """A launch that is over: what it answered and how it ended.

    Attributes:
        outputs: Of the prompts of `PROMPTS`.
        code: Exit code of its first process.
        left_over: Whether processes had to be killed after that.
        log: All of its log.
    """

    outputs: tuple[Output, ...]
    code: int | None
    left_over: bool
    log: str


PROMPTS = tuple(tiny_language.prompt(random.Random(seed), cls) for seed in range(6) for cls in tiny_language.CLASSES)


class Running:
    """One engine that serves, for tests that are no coroutines."""

    def __init__(self, program: Program, arguments: Mapping[str, Any], log: Path) -> None:
        self._stack = ExitStack()
        ports = self._stack.enter_context(reserve_ports())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._stack.callback(self._stop_loop)
        given = {**program.args, **arguments, "port": ports.http, "nccl-port": ports.nccl}
        models = {name: str(program.models / given[name]) for name in MODELS if name in given}
        argv = [*program.command, *to_argv(given | models)]
        self._server = Server(argv, program.env, port=ports.http, log_path=log)
        self.pid = self._wait(self._server.start())
        self._stack.callback(lambda: self._wait(self._server.stop()))

    @property
    def log(self) -> str:
        return self._server.log_path.read_text(errors="replace")

    @property
    def address(self) -> tuple[str, int]:
        return self._server.host, self._server.port

    def processes(self) -> list[psutil.Process]:
        return [psutil.Process(pid) for pid in self._server.pids()]

    def wait_ready(self) -> None:
        self._wait(self._server.wait_ready(START_S))

    def get(self, path: str) -> Answer:
        return self._ask(urllib.request.Request(self._server.url + path))

    def post(self, path: str, body: Any) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._ask(urllib.request.Request(self._server.url + path, data, {"Content-Type": "application/json"}))

    def output(self, prompt: str) -> Output:
        sampling = {"temperature": 0, "max_new_tokens": OUTPUT_TOKENS, "ignore_eos": True}
        answer = self.post("/generate", {"text": prompt, "sampling_params": sampling}).json()
        verifies = answer["meta_info"].get("spec_verify_ct")
        length = answer["meta_info"]["completion_tokens"] / verifies if verifies else None
        return Output(prompt, tuple(answer["output_ids"]), length)

    def end(self, how: str) -> tuple[int | None, bool]:
        """End it; returns the exit code and whether processes had to be killed after that."""
        match how:
            case "sigterm":
                os.kill(self.pid, signal.SIGTERM)
            case "sigint":
                os.kill(self.pid, signal.SIGINT)
            case "worker killed":
                next(one for one in self.processes() if "sglang::scheduler" in " ".join(one.cmdline())).kill()
            case _:
                self._wait(self._server.stop())
        code = self._wait(self._exit_code(), END_S)
        return code, self._wait(self._server.stop()).forced

    def close(self) -> None:
        self._stack.close()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _exit_code(self) -> int | None:
        return await self._server.exited

    def _ask(self, request: urllib.request.Request) -> Answer:
        try:
            with OPENER.open(request, timeout=ANSWER_S) as answer:
                return Answer(answer.status, answer.headers.get_content_type(), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers.get_content_type(), error.read())

    def _wait(self, coroutine: Coroutine[Any, Any, Any], seconds: float | None = None) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)


class Lives:
    """The launches of one engine in this session: each is made at most once, and one at a time."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._lives: dict[str, Life] = {}
        self._now: tuple[str, Running, tuple[Output, ...]] | None = None

    def serving(self, name: str) -> Running:
        """Return the engine of a launch while it serves."""
        if self._now is None or self._now[0] != name:
            self.close()
            running = Running(self._program, LAUNCHES[name][0], self._folder / f"{name}.log")
            try:
                running.wait_ready()
                # Several at a time, so that batches are mixed and of changing size.
                with ThreadPoolExecutor(4) as pool:
                    self._now = (name, running, tuple(pool.map(running.output, PROMPTS)))
            except BaseException:
                running.close()
                raise
        return self._now[1]

    def of(self, name: str) -> Life:
        """Return a launch that is over."""
        if name not in self._lives:
            self.serving(name)
            self.close()
        return self._lives[name]

    def refused(self, name: str, arguments: Mapping[str, Any], words: Sequence[str] = ()) -> tuple[int | None, str]:
        """Return exit code and log of a launch that ends before it serves."""
        program = Program((*self._program.command, *words), self._program.env, self._program.args, self._program.models)
        running = Running(program, arguments, self._folder / f"{name}.log")
        try:
            running.wait_ready()
        except EngineDied as died:
            return died.returncode, running.log
        finally:
            running.close()
        raise AssertionError("it serves")

    def close(self) -> None:
        """End the launch that serves, in its own way."""
        if self._now is None:
            return
        name, running, outputs = self._now
        self._now = None
        try:
            code, left_over = running.end(LAUNCHES[name][1])
            self._lives[name] = Life(outputs, code, left_over, running.log)
        finally:
            running.close()
