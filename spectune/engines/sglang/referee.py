"""SGLang's own resolver as referee: what it makes of launches, about 20 ms each after a few seconds of loading."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang.interpreter import Interpreter
from spectune.errors import SpectuneError
from spectune.printable import printable

LOADING_S, JUDGING_S = 600.0, 120.0  # a resolver that takes longer hangs
LAUNCHER = ("-m", "sglang.launch_server")


@dataclass(frozen=True)
class Verdict:
    """What the resolver said of one launch.

    Attributes:
        accepted: Whether it would go on to start the engine.
        message: Its words when it would not.
        resolved: Field → value when it would.
    """

    accepted: bool
    message: str | None = None
    resolved: Mapping[str, Any] = field(default_factory=dict)


class Referee:
    """A process that has loaded the installed SGLang, for as long as there are questions; a context manager."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # closed in __exit__
        self._process = subprocess.Popen(
            [interpreter.python, str(Path(str(resources.files(__package__) / "asked" / "referee.py")))],
            env=interpreter.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True, encoding="utf-8", start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        """Wait until SGLang is loaded.

        Raises:
            SpectuneError: It cannot be.
        """
        try:
            self._read(LOADING_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def judge(self, command: LaunchCommand) -> Verdict:
        """Ask about one launch.

        Raises:
            SpectuneError: The process is gone.
        """
        argv = command.argv[1 + len(LAUNCHER) :]
        assert command.argv[1 : 1 + len(LAUNCHER)] == LAUNCHER
        question = {"argv": argv, "env": dict(command.env), "unset": command.unset}
        try:
            self._pipe(self._process.stdin).write(json.dumps(question) + "\n")
            self._pipe(self._process.stdin).flush()
        except BrokenPipeError:
            pass  # the missing answer says it
        answer = self._read(JUDGING_S)
        return Verdict(answer["status"] == "ok", answer["message"], answer["resolved"])

    def close(self) -> None:
        """End the process; it holds nothing worth waiting for."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _read(self, within_s: float) -> dict[str, Any]:
        """Read one answer; the process is ended when it does not come in time, which also ends the reading."""
        timer = threading.Timer(within_s, self._process.kill)
        timer.start()
        try:
            answer = self._object()
            late = timer.finished.is_set()
        finally:
            timer.cancel()
        if answer is None:
            answer = {"error": f"it did not answer within {within_s:g} s" if late else self._last_words()}
        if "error" in answer:
            raise SpectuneError(
                f"the SGLang of {self._interpreter.python} cannot be asked: {printable(str(answer['error']), 300)}"
            )
        return answer

    def _object(self) -> dict[str, Any] | None:
        """Return the next line that is an object, None at the end; what starts the interpreter may print as well."""
        for line in self._pipe(self._process.stdout):
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict):
                    return answer
        return None

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else "its process ended without an answer"

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None, "opened with PIPE"
        return pipe
