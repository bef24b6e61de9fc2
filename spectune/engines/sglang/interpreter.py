"""The Python that has SGLang: asked through subprocesses, never imported into spectune's own process."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from spectune.engines.protocol import EngineSoftware
from spectune.engines.sglang.options import Options
from spectune.errors import SpectuneError
from spectune.files import write_json
from spectune.printable import printable

VERSION = re.compile(r"\d+(\.\w+)*([+-][\w.]+)?")
METADATA_S = 60.0  # reading metadata of packages takes a second at most
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

    def sglang_version(self, timeout_s: float = METADATA_S) -> str | None:
        """Return the version of its SGLang without importing it; None when there is none, or no such program.

        Raises:
            SpectuneError: It cannot be run, or does not answer in time.
        """
        if self.path() is None:
            return None
        asked = self._ask(["-c", VERSION_QUERY], timeout_s)
        answer = asked.stdout.strip()
        return answer if asked.returncode == 0 and VERSION.fullmatch(answer) else None

    def software(self) -> EngineSoftware:
        """Return the versions of its packages without importing them; nothing when it does not answer."""
        try:
            answer = json.loads(self._ask([str(script_path("installed.py"))], METADATA_S).stdout)
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
        asked = self._ask([str(script_path("parser.py"))], timeout_s)
        try:
            answer = _answer_among(asked.stdout)
            options = Options.parse(answer)
        except (ValueError, LookupError, TypeError, AttributeError):
            last = (asked.stderr.strip().splitlines() or [f"it ended with {asked.returncode} and no message"])[-1]
            raise SpectuneError(f"SGLang {version} of {self.python} does not load: {printable(last, 300)}") from None
        try:
            write_json(file, answer)
        except SpectuneError as error:
            raise SpectuneError(f"{error}; SPECTUNE_HOME names another place for what spectune keeps") from None
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


def _answer_among(printed: str) -> dict[str, Any]:
    """Return the object among the lines a program printed; what it imports may print before and after it.

    Raises:
        ValueError: There is none.
    """
    line = next((line for line in reversed(printed.splitlines()) if line.startswith("{")), "")
    answer: dict[str, Any] = json.loads(line)
    return answer


def script_path(name: str) -> Path:
    """Return where a script of `asked/` is."""
    return Path(str(resources.files(__package__) / "asked" / name))
