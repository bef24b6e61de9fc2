"""A systemd unit as the shell script it amounts to."""

from __future__ import annotations

import re

_SERVICE = re.compile(r"^[ \t]*\[Service\][ \t]*$", re.MULTILINE)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_SETTING = re.compile(r"[ \t]*(Environment|ExecStart)[ \t]*=[ \t]*(.*)")
_FILE = re.compile(r"^[ \t]*EnvironmentFile[ \t]*=[ \t]*-?(\S+)", re.MULTILINE)
_PREFIX = "-@:+!|"  # of systemd, before the program


def environment_files(text: str) -> list[str]:
    """Return the files a unit's service takes further variables from."""
    return _FILE.findall(text) if _SERVICE.search(text) else []


def as_script(text: str) -> str:
    """Return the environment and the command of a unit's service; any other text as it is."""
    if not _SERVICE.search(text):
        return text
    lines = []
    for line in _CONTINUED.sub(" ", text).splitlines():
        setting = _SETTING.match(line)
        if setting is None:
            continue
        name, value = setting.groups()
        if name == "ExecStart":
            lines.append(value.lstrip(_PREFIX))
        else:
            lines.append(f"export {value}")
    return "\n".join(lines)
