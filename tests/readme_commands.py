"""The README's own commands, so that tests run what it tells people to run."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPECTUNE = Path(sys.executable).with_name("spectune")


def blocks() -> list[str]:
    """Every shell block, in order."""
    return re.findall(
        r"^```(?:bash|sh|console|shell)\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


def spectune_commands() -> list[list[str]]:
    """The arguments of every `spectune` call in a shell block, in order."""
    calls = [part for block in blocks() for line in block.splitlines() for part in line.split("&&")]
    words = [shlex.split(call) for call in calls]
    return [call[1:] for call in words if call and call[0].endswith("bin/spectune")]


def main_command() -> list[str]:
    """The arguments of the first one: the main job."""
    return spectune_commands()[0]
