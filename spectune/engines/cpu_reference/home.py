"""Where spectune keeps what it installs."""

from __future__ import annotations

import os
from pathlib import Path


def spectune_home() -> Path:
    """Return `$SPECTUNE_HOME`, by default `spectune` in the user's cache folder."""
    if home := os.environ.get("SPECTUNE_HOME"):
        return Path(home).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME")  # the XDG specification: a relative value is to be ignored
    if cache and Path(cache).is_absolute():
        return Path(cache) / "spectune"
    return Path.home() / ".cache" / "spectune"
