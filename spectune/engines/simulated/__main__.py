"""A program that takes the arguments of `python -m sglang.launch_server`; the environment names the profile."""

from __future__ import annotations

import os
import sys

from spectune.engines.simulated.command import CommandRefused
from spectune.engines.simulated.launch import PROFILE_VARIABLE
from spectune.engines.simulated.profile import Profile, load_profile
from spectune.engines.simulated.program import refuse, run_engine
from spectune.engines.simulated.time_scale import TIME_SCALE_VARIABLE, time_scale_of
from spectune.errors import SpectuneError

REFUSED = 2  # what SGLang's argument parser ends with


def main() -> int:
    """Run the engine; returns its exit code."""
    try:
        scale = time_scale_of(os.environ.get(TIME_SCALE_VARIABLE, "1"))
        return run_engine(_profile(), sys.argv[1:], os.environ, time_scale=scale)
    except CommandRefused as refused:
        return refuse(refused)
    except SpectuneError as error:
        sys.stderr.write(f"simulated engine: {error}\n")
        return REFUSED


def _profile() -> Profile:
    source = os.environ.get(PROFILE_VARIABLE)
    if not source:
        raise SpectuneError(f"{PROFILE_VARIABLE} must name a profile")
    return load_profile(source)


if __name__ == "__main__":
    sys.exit(main())
