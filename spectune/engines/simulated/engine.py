"""The simulated machine behind the Engine protocol: SGLang's rules and command line, a profile's measurements."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.counts import count
from spectune.engines.protocol import EngineSoftware, LaunchCommand, Occasion
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.simulated import tokens
from spectune.engines.simulated.acceptance import unknown_drafters
from spectune.engines.simulated.launch import FIRED_VARIABLE, HOURS_VARIABLE, LAUNCH_VARIABLE, PROFILE_VARIABLE
from spectune.engines.simulated.profile import Profile, load_profile, shipped_profiles
from spectune.engines.simulated.time_scale import TIME_SCALE_VARIABLE
from spectune.errors import Problem
from spectune.space import Candidate, EngineSection

PROFILE_FILE, FIRED_FILE = "profile.yaml", "fired-faults"
DEFAULT_PROFILE = "kimi-k2.5-pcie"


@dataclass(frozen=True, kw_only=True)
class SimulatedEngine(SGLangEngine):
    """SGLang as the profile's machine would serve it.

    Attributes:
        profile: The machine.
        virtual: Whether launches are served in this process in virtual time, instead of by a server in real time.
    """

    profile: Profile
    virtual: bool = False
    simulated: bool = True

    @classmethod
    def of(cls, section: EngineSection, most_running: int, folder: Path) -> SimulatedEngine:
        """Return the engine of a space.

        Args:
            section: The space's `engine` section.
            most_running: Requests the workload keeps running at its busiest level.
            folder: Where a profile's file lies, unless its path says so.

        Raises:
            SpectuneError: There is no such profile, or it is wrong.
        """
        source = section.profile or DEFAULT_PROFILE
        profile = load_profile(source if source in shipped_profiles() else folder / source)
        return cls(
            interpreter=Interpreter("python3"),
            version=SHIPPED_VERSION,
            fixed={"model-path": f"simulated/{profile.name}", **section.args},
            env=section.env_to_set,
            gpus=section.gpus,
            most_running=most_running,
            unset=section.env_to_unset,
            profile=profile,
            virtual=bool(section.virtual),
        )

    @property
    def title(self) -> str:
        """Name and version, as shown to people."""
        form = ", in virtual time" if self.virtual else ""
        return f"simulated SGLang {self.version} on {self.profile.name}{form}"

    @property
    def program(self) -> str:
        """An interpreter of the machine that is simulated: nothing of this one."""
        return self.interpreter.python

    def missing(self) -> list[Problem]:
        """Return what the profile's machine lacks."""
        there = self.profile.file.gpu.count
        if self.gpus <= there:
            return []
        asked = f"engine.gpus asks for {count(self.gpus, 'GPU')}"
        return [Problem(f"{asked}, but the profile {self.profile.name} has {there}; lower it, or take another profile")]

    def software(self) -> EngineSoftware:
        """Return the machine: its profile stands for the software too."""
        gpu = self.profile.file.gpu
        gpus = f"{count(gpu.count, 'GPU')} of {gpu.memory_gb:g} GB{' each' * (gpu.count > 1)}"
        return EngineSoftware(simulated_machine=f"the profile {self.profile.name}, {gpus}")

    def missing_model(self, reference: Any) -> None:
        """Return nothing: a profile stands for models that nobody has to have."""

    @property
    def known_start_s(self) -> float | None:
        """What the profile says."""
        return self.profile.file.startup.load_s

    def start_allowance_s(self, candidate: Candidate) -> float:  # noqa: ARG002 (of no consequence)
        """Return nothing: on a profile's machine, drafts have no graphs of their own to capture."""
        return 0.0

    def belongings(self) -> Mapping[str, str]:
        """Return the profile: with another one, the same launch would give other figures."""
        return {PROFILE_FILE: self.profile.path.read_text(encoding="utf-8")}

    def supervised(self, command: LaunchCommand, occasion: Occasion) -> LaunchCommand:
        """Hand the command to the simulated engine, in real time, with what it has to know of the study."""
        return LaunchCommand(
            argv=(sys.executable, "-m", "spectune.engines.simulated", *command.argv),
            env={**super().supervised(command, occasion).env, **self.study_variables(occasion)},
            unset=(*command.unset, TIME_SCALE_VARIABLE),
        )

    def study_variables(self, occasion: Occasion) -> dict[str, str]:
        """Return the variables that tell a launch its place in the study.

        The profile is the study's own copy: one that is edited meanwhile is another machine.
        """
        return {
            PROFILE_VARIABLE: os.path.realpath(occasion.folder / PROFILE_FILE),
            LAUNCH_VARIABLE: str(occasion.number),
            HOURS_VARIABLE: f"{occasion.hours:.9f}",
            FIRED_VARIABLE: os.path.realpath(occasion.folder / FIRED_FILE),
        }

    def unknown_names(self, drafters: Sequence[Any]) -> Sequence[str]:
        """Return a sentence on the drafters that the profile knows nothing of, if there are any."""
        return unknown_drafters(self.profile.file.acceptance, drafters)

    def renderer(self) -> SimulatedTokenizer:
        """Return the tokenizer of a model that does not exist."""
        return SimulatedTokenizer()


class SimulatedTokenizer:
    """One id for every four characters, and in front of them one that tells the engine the class of the prompt."""

    def render(self, prompts: Sequence[Any], *, classes: Sequence[str], chat_template: bool) -> list[list[int]]:
        """Return token ids for each text or message list."""
        return [
            [tokens.class_id(name), *tokens.encode(_text(prompt, chat_template=chat_template))]
            for prompt, name in zip(prompts, classes, strict=True)
        ]

    def close(self) -> None:
        """Do nothing: there is no process behind it."""


def _text(prompt: Any, *, chat_template: bool) -> str:
    if isinstance(prompt, str):
        return f"<|user|>{prompt}<|assistant|>" if chat_template else prompt
    return "".join(f"<|{message['role']}|>{message['content']}" for message in prompt) + "<|assistant|>"
