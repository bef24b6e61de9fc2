"""The launch as a bash script, and as a command to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.engines.protocol import LaunchCommand
from spectune.export.header import Origin, header
from spectune.export.launch import Launch
from spectune.search.storage.records import TrialRecord

_CONTINUED = " \\\n  "


def shell_script(record: TrialRecord, launch: Launch, origin: Origin) -> str:
    """Return a script that becomes the engine; further arguments are passed on, `HOST` and `PORT` say where."""
    lines = ["#!/usr/bin/env bash", *header(record, launch, origin)]
    lines.append(
        f"# HOST and PORT choose the address, {LOOPBACK}:{DEFAULT_PORT} otherwise; more arguments are passed on"
    )
    if any(mark in word for word in _values(launch) for mark in "$`"):
        lines.append("# shellcheck disable=SC2016 # values are passed on as they are, nothing in them is expanded")
    lines += ["set -euo pipefail", ""]
    # Before the exports, which may set a PORT of their own.
    lines.append(f'set -- --host "${{HOST:-{LOOPBACK}}}" --port "${{PORT:-{DEFAULT_PORT}}}" "$@"')
    lines += [f"unset {name}" for name in launch.unset]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in launch.env]
    words = [_quoted(launch.program), *(_quoted(option.words) for option in launch.options), '"$@"']
    lines += ["", f"exec {_CONTINUED.join(words)}", ""]
    return "\n".join(lines)


def command_text(command: LaunchCommand) -> str:
    """Return a launch as one command to paste into a shell, without the trial's ports and without secrets."""
    launch = Launch.of(command)
    changes = [word for name in launch.unset for word in ("-u", name)]
    changes += [f"{name}={value}" for name, value in launch.env]
    words = [_quoted(("env", *changes))] if changes else []
    words.append(_quoted(launch.program))
    words += [_quoted(option.words) for option in launch.options]
    words.append(f"--host {LOOPBACK} --port {DEFAULT_PORT}")
    return _CONTINUED.join(words)


def _values(launch: Launch) -> Iterator[str]:
    yield from launch.program
    yield from (word for option in launch.options for word in option.words)
    yield from (value for _, value in launch.env)


def _quoted(words: Iterable[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
