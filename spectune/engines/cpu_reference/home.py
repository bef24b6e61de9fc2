"""Where spectune keeps what it installs."""

from __future__ import annotations

import os
from pathlib import Path

from spectune.errors import SpectuneError


def spectune_home() -> Path:
    """Return `$SPECTUNE_HOME`, by default `spectune` in the user's cache folder.

    Raises:
        SpectuneError: When that names the home of a user this machine does not know.
    """
    if home := os.environ.get("SPECTUNE_HOME"):
        try:
            return Path(home).expanduser().absolute()
        except RuntimeError:
            raise SpectuneError(
                f"SPECTUNE_HOME={home} names the home of a user who has none here; set it to a folder of yours"
            ) from None
    cache = os.environ.get("XDG_CACHE_HOME")  # the XDG specification: a relative value is to be ignored
    if cache and Path(cache).is_absolute():
        return Path(cache) / "spectune"
    try:
        return Path.home() / ".cache" / "spectune"
    except RuntimeError:
        raise SpectuneError("there is no home folder here; set SPECTUNE_HOME to a folder of yours") from None
