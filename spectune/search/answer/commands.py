"""Commands on a study that an answer advises, to be pasted as they stand."""

from __future__ import annotations

import shlex


def export_command(study: str, pick: object) -> str:
    """Return what writes a launch's files."""
    return shlex.join(["spectune", "export", study, "--pick", str(pick)])
