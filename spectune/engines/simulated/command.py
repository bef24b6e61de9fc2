"""From the words of a launch command to its `Setup`, through the one resolver of SGLang's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spectune.engines.sglang.launch_line.command_line import read_launch
from spectune.engines.sglang.model_folder import ModelReader
from spectune.engines.sglang.resolution import MACHINES, Finding, Machine, Model, resolve
from spectune.engines.sglang.rules.names import MODEL
from spectune.engines.simulated.faults import DIES_LOADING, POINTS, Doom, Failure
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.setup import Setup
from spectune.errors import SpectuneError
from spectune.space import DRAFTER

RESOLVER_REFUSED, PARSER_REFUSED = 1, 2
LAUNCHER = ("python", "-m", "sglang.launch_server")


class CommandRefused(SpectuneError):
    """SGLang would end the launch before any worker is started.

    Attributes:
        exit_code: 2 from its argument parser, 1 from its resolver, 0 after `--help`.
        advice: The way out, where one is known.
    """

    def __init__(self, message: str, exit_code: int, advice: str = "") -> None:
        super().__init__(message)
        self.exit_code, self.advice = exit_code, advice


@dataclass(frozen=True)
class Command:
    """A launch command the engine accepts.

    Attributes:
        arguments: SGLang's long option names → values as given.
        resolved: SGLang's field names → values in effect.
        notes: What the engine says about the arguments while it resolves them.
        doom: What it dies of by SGLang's own rules, None for most.
        env: The whole environment of the launch.
        setup: What the cost model needs.
    """

    arguments: Mapping[str, Any]
    resolved: Mapping[str, Any]
    notes: tuple[str, ...]
    doom: Doom | None
    env: Mapping[str, str]
    setup: Setup


def read_command(words: Sequence[str], profile: Profile, env: Mapping[str, str], launch: int) -> Command:
    """Resolve a launch command as SGLang would on the profile's machine.

    Args:
        words: A whole command (`python -m sglang.launch_server …`), or its arguments alone.
        profile: The machine.
        env: The environment of the launch.
        launch: Its number in the study.

    Raises:
        CommandRefused: SGLang would refuse it.
        SpectuneError: There is no launch in it.
    """
    alone = not words or words[0].startswith("-")
    line = read_launch((*LAUNCHER, *words) if alone else words)
    if line.refused:
        first = next(finding for finding in line.findings if finding.severity == "fatal")
        raise CommandRefused(first.message, 0 if first.rule == "help" else PARSER_REFUSED)
    env = {**env, **line.env}
    arguments = line.arguments
    target, draft = _models(arguments, env)
    resolution = resolve(arguments, model=target, draft=draft, machine=machine_of(profile), env=env)
    fatal = [finding for finding in resolution.findings if finding.severity == "fatal"]
    if resolution.status == "rejected":
        raise CommandRefused(fatal[-1].message, RESOLVER_REFUSED, fatal[-1].advice)
    said = (*line.findings, *resolution.findings)
    return Command(
        arguments=arguments,
        resolved=resolution.resolved,
        notes=tuple(finding.message for finding in said if finding.severity != "fatal"),
        doom=_doom(resolution.findings),
        env=env,
        setup=Setup.of(resolution.resolved, env, launch),
    )


def _doom(findings: Sequence[Finding]) -> Doom | None:
    """Return the first end that the rules foretell a launch which has resolved."""
    dooms = [doom for finding in findings if (doom := _foretold(finding)) is not None]
    return min(dooms, key=lambda doom: POINTS.index(doom.failure.at), default=None)


def _foretold(finding: Finding) -> Doom | None:
    """Return what a finding means for the launch, None when it lives on.

    Without a rank there is no scheduler the launcher could ask (0.5.23, entrypoints/engine.py:1240); the HTTP port is
    bound last of all, and the system has no such port.
    """
    name = finding.message.split()[0]
    if finding.rule == "port-range" and name == "port":
        return Doom(Failure("ready", "crash"), "OverflowError: bind(): port must be 0-65535.", finding.advice)
    if finding.rule == "counts-positive":
        if name == "tp-size":
            return Doom(Failure("startup", "unsupported"), "IndexError: list index out of range", finding.advice)
        return Doom(Failure("startup", "unsupported"), f"ValueError: {finding.message}", finding.advice)
    if finding.severity != "fatal":
        return None
    if finding.rule == "tree-bounds":  # what torch says of a tree with too many nodes
        return Doom(DIES_LOADING, "RuntimeError: selected index k out of range", finding.advice)
    return Doom(DIES_LOADING, f"NotImplementedError: {finding.message}", finding.advice)


def machine_of(profile: Profile) -> Machine:
    """Return the profile's GPU for SGLang's rules: its memory, and the generation of the known GPU nearest to it."""
    memory = profile.file.gpu.memory_gb
    gpus = [machine for machine in MACHINES.values() if machine.device == "cuda"]
    nearest = min(gpus, key=lambda machine: abs(machine.memory_gib - memory))
    return replace(nearest, name=profile.name, memory_gib=memory, tested=False)


def _models(arguments: Mapping[str, Any], env: Mapping[str, str]) -> tuple[Model, Model | None]:
    """Return what the config files of target and drafter say, as far as they are on this machine.

    A profile stands for models nobody has to have; what the reader says of missing ones is of no concern.
    """
    reader = ModelReader(Path.cwd(), env, False)
    target, _ = reader.read(arguments[MODEL], MODEL, arguments.get("revision"))
    if not arguments.get(DRAFTER):
        return target, None
    draft, _ = reader.read(arguments[DRAFTER], DRAFTER, arguments.get("speculative-draft-model-revision"))
    return target, draft
