"""A script of `asked/` at work in the engine's interpreter: a line of JSON for every line of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from spectune.engines.sglang.interpreter import Interpreter, script_path
from spectune.errors import SpectuneError
from spectune.printable import printable

LONGEST_REASON = 300  # characters of what it says itself


class AskedScript:
    """Its process, for as long as there are questions; what its interpreter and libraries print is passed over."""

    def __init__(
        self, interpreter: Interpreter, script: str, *arguments: str, complaint: str, env: Mapping[str, str] = {}
    ) -> None:
        """Start it.

        Args:
            interpreter: Runs it.
            script: Its file name in `asked/`.
            arguments: Of its command line.
            complaint: How the sentence begins that says that it gives no answer.
            env: Variables it needs beside the interpreter's.
        """
        self._complaint = complaint
        self._errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115  # see close
        self._process = subprocess.Popen(
            [interpreter.python, str(script_path(script)), *arguments],
            env={**interpreter.environment(), **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None, "opened with PIPE"
        assert self._process.stdout is not None, "opened with PIPE"
        self._questions, self._answers = self._process.stdin, self._process.stdout

    def ask(self, question: Any, within_s: float) -> dict[str, Any]:
        """Return the answer to a question.

        Args:
            question: Anything that is JSON.
            within_s: Seconds it may take; then its process is ended.

        Raises:
            SpectuneError: There is none, or it says why not.
        """
        with contextlib.suppress(OSError):  # its process has ended: there will be no answer, which says so
            self._questions.write(json.dumps(question) + "\n")
            self._questions.flush()
        return self.answer(within_s)

    def answer(self, within_s: float) -> dict[str, Any]:
        """Return the next answer, such as the one that says that it is loaded; see `ask`."""
        late = threading.Timer(within_s, self._end)  # which also ends the reading
        late.start()
        try:
            answer = self._next_object()
            if answer is None:
                answer = {"error": self._last_words(within_s if late.finished.is_set() else None)}
        finally:
            late.cancel()
        if "error" in answer:
            raise SpectuneError(f"{self._complaint}: {printable(str(answer['error']), LONGEST_REASON)}")
        return answer

    def close(self) -> None:
        """End the process; it holds nothing worth waiting for."""
        self._end()
        self._process.wait()
        for file in (self._questions, self._answers, self._errors):
            with contextlib.suppress(OSError):  # what was still to be flushed has no reader
                file.close()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _next_object(self) -> dict[str, Any] | None:
        """Return the next line that is an object, None at the end."""
        for line in self._answers:
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if isinstance(answer, dict):
                    return answer
        return None

    def _last_words(self, waited_s: float | None) -> str:
        """Say why there are no more answers.

        Args:
            waited_s: How long it was waited for; None where it ended by itself.
        """
        if waited_s is not None:
            return f"it did not answer within {waited_s:g} s"
        with contextlib.suppress(subprocess.TimeoutExpired):
            if (code := self._process.wait(timeout=10)) < 0:  # what it wrote before says nothing of that
                return f"its process ended with signal {-code}"
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else "its process ended without an answer"
