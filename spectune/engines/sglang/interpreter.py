"""The Python that has SGLang: asked through subprocesses, never imported into spectune's own process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO, Any

from spectune.engines.protocol import EngineSoftware
from spectune.engines.sglang.options import Options
from spectune.errors import SpectuneError
from spectune.printable import printable

VERSION = re.compile(r"\d+(\.\w+)*([+-][\w.]+)?")
LOADING_S, RENDERING_S = 600.0, 120.0  # a tokenizer that takes longer hangs
VERSION_QUERY = "import importlib.metadata as m; print(m.version('sglang'))"


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that can (or cannot) import sglang.

    Attributes:
        python: Program name or path.
        env: Variables it needs on top of the caller's environment.
    """

    python: str
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the environment its subprocesses run in."""
        return {**os.environ, **self.env}

    def path(self) -> str | None:
        """Return the program's full path; None when there is no such program."""
        return shutil.which(self.python)

    def sglang_version(self, timeout_s: float = 60.0) -> str | None:
        """Return the version of its SGLang without importing it; None when there is none.

        Raises:
            SpectuneError: It does not answer in time.
        """
        asked = self._ask(["-c", VERSION_QUERY], timeout_s)
        answer = asked.stdout.strip()
        return answer if asked.returncode == 0 and VERSION.fullmatch(answer) else None

    def software(self, timeout_s: float = 60.0) -> EngineSoftware:
        """Return the versions of its packages without importing them; nothing when it does not answer."""
        try:
            answer = json.loads(self._ask([str(_script("installed.py"))], timeout_s).stdout)
            packages = {str(name): str(version) for name, version in answer["packages"].items()}
            return EngineSoftware(packages, answer["sitecustomize"] and str(answer["sitecustomize"]))
        except (SpectuneError, ValueError, LookupError, TypeError, AttributeError):
            return EngineSoftware()

    def options(self, version: str, cache: Path, timeout_s: float = 300.0) -> Options:
        """Return its SGLang's launch options; asks its parser once per version (seconds), then reads `cache`.

        Raises:
            SpectuneError: Its SGLang cannot be imported or does not answer in time, or `cache` cannot be written.
        """
        file = cache / f"options-{version}-{self._fingerprint()}.json"
        try:
            return Options.parse(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass  # not asked yet, or not what was written: ask (again)
        asked = self._ask([str(_script("parser.py"))], timeout_s)
        try:
            answer = _answer_among(asked.stdout)
            options = Options.parse(answer)
        except (ValueError, LookupError, TypeError, AttributeError):
            last = (asked.stderr.strip().splitlines() or [f"it ended with {asked.returncode} and no message"])[-1]
            raise SpectuneError(f"SGLang {version} of {self.python} does not load: {printable(last, 300)}") from None
        try:
            cache.mkdir(parents=True, exist_ok=True)
            partial = file.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(answer), encoding="utf-8")
            partial.replace(file)
        except OSError as error:
            raise SpectuneError(f"cannot write {file}: {error.strerror}; make room or set SPECTUNE_HOME") from None
        return options

    def _fingerprint(self) -> str:
        """Tell interpreters with the same version apart: one may have plugins or a patched parser."""
        where = f"{self.path() or self.python}\0{self.env.get('PYTHONPATH', '')}"
        return hashlib.sha256(where.encode()).hexdigest()[:12]

    def _ask(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        try:
            process = subprocess.Popen(
                [self.python, *arguments],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SpectuneError(f"{self.python} cannot be run: {error.strerror or error} (engine.python)") from None
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise SpectuneError(
                f"{self.python} did not answer within {timeout_s:g} s when asked about its SGLang; "
                "see whether `import sglang` works there"
            ) from None
        finally:
            if process.poll() is None:  # also on Ctrl-C, which its own session keeps from it
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class Tokenizer:
    """The engine's tokenizer and chat template in a process of their own, for as long as a study needs it."""

    def __init__(self, interpreter: Interpreter, model: str, *, trust_remote_code: bool) -> None:
        self._model = model
        self._process = subprocess.Popen(
            [interpreter.python, str(_script("render.py")), model, "1" if trust_remote_code else "0"],
            env={**interpreter.environment(), "CUDA_VISIBLE_DEVICES": ""},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            start_new_session=True,
        )  # fmt: skip
        self._loaded = False

    def render(
        self,
        prompts: Sequence[Any],
        *,
        classes: Sequence[str],  # noqa: ARG002 (of no concern to a real model)
        chat_template: bool,
    ) -> list[list[int]]:
        """Return the token ids of each text or message list.

        Raises:
            SpectuneError: When the tokenizer cannot be loaded or refuses a prompt.
        """
        if not self._loaded:
            self._answer(LOADING_S)  # the line that says the tokenizer is loaded
            self._loaded = True
        with contextlib.suppress(OSError):  # its process has ended: there will be no answer, which says so
            self._pipe(self._process.stdin).write(json.dumps({"chat": chat_template, "prompts": list(prompts)}) + "\n")
            self._pipe(self._process.stdin).flush()
        ids: list[list[int]] = self._answer(RENDERING_S)["ids"]
        return ids

    def close(self) -> None:
        """End the process; it holds nothing worth waiting for."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was still to be flushed has no reader
                self._pipe(pipe).close()

    def _answer(self, within_s: float) -> dict[str, Any]:
        """Read one line; the process is ended when it does not come in time, which also ends the reading."""
        timer = threading.Timer(within_s, self._process.kill)
        timer.start()
        try:
            line = self._pipe(self._process.stdout).readline()
        finally:
            timer.cancel()
        answer: dict[str, Any]
        try:
            answer = json.loads(line)
        except ValueError:
            answer = {"error": f"its process ended, or hung for {within_s:g} s, without an answer"}
        if "error" in answer:
            raise SpectuneError(f"the tokenizer of {self._model} cannot be used: {answer['error']}")
        return answer

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None, "opened with PIPE"
        return pipe


def _answer_among(printed: str) -> dict[str, Any]:
    """Return the object among the lines a program printed; what it imports may print before and after it.

    Raises:
        ValueError: There is none.
    """
    line = next((line for line in reversed(printed.splitlines()) if line.startswith("{")), "")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _script(name: str) -> Path:
    return Path(str(resources.files(__package__) / "asked" / name))
