"""Which environment variables of the workers a space may set, and which it must leave alone."""

from __future__ import annotations

import re
import unicodedata

LONGEST_BYTES = 131_072  # MAX_ARG_STRLEN of Linux, for NAME=value
SHOWN = 80  # characters of a value that a message repeats

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CREDENTIAL = re.compile(r"TOKEN$|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIAL|PRIVATE_KEY", re.IGNORECASE)
_LOADER = "it decides which programs and libraries are loaded, so candidates would no longer be the same engine"
_SPECTUNE = "spectune sets it itself for every launch"

_REFUSED = {
    **dict.fromkeys(
        (
            "PATH",
            "HOME",
            "IFS",
            "ENV",
            "BASH_ENV",
            "LD_PRELOAD",
            "LD_AUDIT",
            "LD_LIBRARY_PATH",
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONSTARTUP",
            "PYTHONINSPECT",
            "PYTHONUSERBASE",
            "PYTHONEXECUTABLE",
            "VIRTUAL_ENV",
        ),
        _LOADER,
    ),
    "CUDA_VISIBLE_DEVICES": _SPECTUNE + "; say how many with engine.gpus",
    "CUDA_DEVICE_ORDER": _SPECTUNE + ", to PCI_BUS_ID where a launch takes some of the GPUs",
}


def environment_name_problem(name: str) -> str | None:
    """Return why the variable `name` cannot be part of a space, or None."""
    if not _NAME.fullmatch(name):
        return f"'{name}' is not the name of an environment variable: letters, digits and _, no digit first"
    if name in _REFUSED:
        return f"{name} cannot be set here: {_REFUSED[name]}; set it in the shell that starts spectune if you need it"
    if name.startswith("SPECTUNE_"):
        return f"{name} cannot be set here: {_SPECTUNE}"
    if _CREDENTIAL.search(name):
        return (
            f"{name} looks like a credential, and a space is copied into study folders and launch files; "
            "set it in the shell that starts spectune instead, workers inherit it"
        )
    return None


def environment_value_problem(name: str, value: str) -> str | None:
    """Return why `value` cannot be the value of the variable `name`, or None."""
    if any(unicodedata.category(character) == "Cc" for character in value):
        return f"the value of {name} must be one line without control characters, but got {_shown(value)}"
    if len(f"{name}={value}".encode("utf-8", "replace")) >= LONGEST_BYTES:
        return f"the value of {name} is too long: Linux starts no program with more than {LONGEST_BYTES} bytes of it"
    return None


def _shown(value: str) -> str:
    return repr(value) if len(value) <= SHOWN else f"{value[:SHOWN]!r} …"
