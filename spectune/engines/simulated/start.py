"""From a profile, a command and an environment to a launch; the same for every form of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from spectune.engines.simulated.command import Command, read_command
from spectune.engines.simulated.faults import FiredInFile
from spectune.engines.simulated.launch import (
    FIRED_VARIABLE,
    HOURS_VARIABLE,
    LAUNCH_VARIABLE,
    SimulatedLaunch,
)
from spectune.engines.simulated.profile import Profile
from spectune.errors import SpectuneError


def open_launch(
    profile: Profile, words: Sequence[str], env: Mapping[str, str]
) -> tuple[Command, SimulatedLaunch, FiredInFile]:
    """Resolve a launch and read what its launcher says of the study.

    Args:
        profile: The machine.
        words: The launch command, or its arguments alone.
        env: The environment of the launch, with the study's variables.

    Raises:
        CommandRefused: SGLang would refuse the command.
        SpectuneError: A variable holds no number.
    """
    number = int(_number(env, LAUNCH_VARIABLE, whole=True))
    command = read_command(words, profile, env, number)
    counted = FiredInFile(Path(env[FIRED_VARIABLE]) if env.get(FIRED_VARIABLE) else None)
    launch = SimulatedLaunch(
        profile,
        command.setup,
        number=number,
        hours=_number(env, HOURS_VARIABLE),
        fired=counted.counts(),
        doom=command.doom.failure if command.doom else None,
    )
    return command, launch, counted


def _number(env: Mapping[str, str], name: str, *, whole: bool = False) -> float:
    text = env.get(name, "0")
    try:
        value = float(int(text)) if whole else float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise SpectuneError(f"{name} must be a {'whole ' if whole else ''}number of at least 0, but got {text!r}")
    return value
