"""Commands, each a process of its own, forked from one that has already imported what commands import.

Seen from outside a command does what it does in an interpreter of its own, without the second and a half that loading
numpy, scipy and Optuna takes there. Tests about signals, streams, terminals or the start itself run the script.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spectune import cli

LOADED_BY_COMMANDS = (
    *(f"spectune.cli.{module.name}" for module in pkgutil.iter_modules(cli.__path__)),
    "spectune.search.guided.effects", "spectune.search.guided.guide",
    "alembic.command", "jinja2.ext", "optuna.storages", "scipy.special", "sqlalchemy.dialects.sqlite", "sqlalchemy.orm",
)  # fmt: skip
PATIENCE_S = 1200  # nothing is judged by it


def spectune(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command of spectune to its end: `python_m("spectune", …)`."""
    return python_m("spectune", *words, **more)


def python_m(
    module: str, *words: str | Path, cwd: Path | None = None, text: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module` to its end.

    Args:
        module: What is run.
        words: What stands after it.
        cwd: The folder it runs in; this process's by default.
        text: What it reads from standard input.
        env: Variables it gets beside this process's.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, out, err = (Path(folder, name) for name in ("in", "out", "err"))
        given.write_text(text, "utf-8")
        code = _parent().run(
            {
                "module": module, "words": [str(word) for word in words], "cwd": str(cwd or Path.cwd()),
                "env": {**os.environ, **env}, "streams": [str(given), str(out), str(err)],
            }
        )  # fmt: skip
        return subprocess.CompletedProcess([module, *words], code, out.read_text("utf-8"), err.read_text("utf-8"))


class _Parent:
    """The process that commands are forked from. It ends with its input."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        atexit.register(self._process.communicate)  # which ends its input

    def run(self, asked: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@functools.cache
def _parent() -> _Parent:
    return _Parent()


def serve() -> None:
    """Answer every request with the exit code of the child that runs it."""
    for line in sys.stdin:
        if not (child := os.fork()):
            become(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(asked: Mapping[str, Any]) -> None:
    """Turn this process into the one that was asked for."""
    signal.alarm(PATIENCE_S)
    for number, path in enumerate(asked["streams"]):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path.insert(0, asked["cwd"])
    sys.argv[1:] = asked["words"]
    runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in LOADED_BY_COMMANDS:
        importlib.import_module(name)
    gc.freeze()  # or every child would look through all of it, at its end at the latest
    serve()
