"""What the search needs of an engine. One contract test passes against every implementation."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from spectune.engines.parts import Assignment, Illegal, Part
from spectune.engines.served import Served
from spectune.errors import Problem
from spectune.serving import EngineFailed, Failure
from spectune.space import Candidate


@dataclass(frozen=True)
class LaunchCommand:
    """A program to start: complete arguments and what differs from the caller's environment.

    Attributes:
        argv: Program and arguments, host and port included.
        env: Variables to set.
        unset: Variables that must be absent.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment of the launch, `base` with the differences applied."""
        kept = {name: value for name, value in base.items() if name not in self.unset}
        return kept | dict(self.env)

    def with_variables(self, variables: Mapping[str, str]) -> LaunchCommand:
        """Return the same launch with more variables set."""
        return replace(self, env={**self.env, **variables})

    def shell(self) -> str:
        """Return the command as one quoted line for a shell."""
        changes = [word for name in self.unset for word in ("-u", name)]
        changes += [f"{name}={value}" for name, value in sorted(self.env.items())]
        prefix = ["env", *changes] if changes else []
        return shlex.join([*prefix, *self.argv])


@dataclass(frozen=True)
class Occasion:
    """Where in a study a launch stands.

    Attributes:
        number: How many launches the study had made before it.
        hours: How long they took.
        folder: The study's own folder.
    """

    number: int
    hours: float
    folder: Path


@dataclass(frozen=True)
class Mismatch:
    """An argument that the running engine reports differently, or a count that it contradicts: the trial is suspect."""

    field: str
    wanted: Any
    got: Any


@dataclass(frozen=True)
class Effective:
    """What a launched engine really runs.

    Attributes:
        graph_batches: Kind (decode, verify, draft …) → batch sizes with a captured graph.
        kv_tokens: Tokens the KV cache holds.
        max_running_requests: Requests that may run at once, per data-parallel rank.
        backends: Attention backends by the engine's field names.
        nccl: Variable → value as NCCL itself logs it; empty where it was not told to.
    """

    graph_batches: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    kv_tokens: int | None = None
    max_running_requests: int | None = None
    backends: Mapping[str, str] = field(default_factory=dict)
    nccl: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineSoftware:
    """What an engine runs on, as far as its interpreter tells without loading it.

    Attributes:
        packages: Versions by package.
        sitecustomize: A `sitecustomize.py` that its interpreter runs at every start.
        simulated_machine: The machine that it stands for, in words; None where it runs on this one.
    """

    packages: Mapping[str, str] = field(default_factory=dict)
    sitecustomize: str | None = None
    simulated_machine: str | None = None


class Renderer(Protocol):
    """Turns prompts into token ids with the engine's own tokenizer and chat template."""

    def render(self, prompts: Sequence[Any], *, classes: Sequence[str], chat_template: bool) -> list[list[int]]:
        """Return token ids for each text or message list.

        Args:
            prompts: What to render.
            classes: Class of each prompt: what a simulated drafter's acceptance depends on. Models read texts.
            chat_template: Whether texts and messages go through it.
        """
        ...

    def close(self) -> None:
        """End the process behind it."""
        ...


class Engine(Protocol):
    """An inference engine: what candidates mean to it, how it is started, what it says back."""

    @property
    def title(self) -> str:
        """Name and version, as shown to people."""
        ...

    @property
    def simulated(self) -> bool:
        """Whether its measurements come from a model of a machine."""
        ...

    @property
    def gpus_held(self) -> int:
        """GPUs of this machine whose memory a launch fills; 0 where it touches none."""
        ...

    def belongings(self) -> Mapping[str, str]:
        """Return the files that a study of this engine keeps, name → text: what its measurements depend on."""
        ...

    def software(self) -> EngineSoftware:
        """Return the versions it runs on; nothing where there is no engine to ask."""
        ...

    def missing(self) -> list[Problem]:
        """Return what this machine lacks for launching it; empty when it can start."""
        ...

    def canonical(self, assignment: Assignment) -> Candidate | Illegal:
        """Return the one candidate that stands for every assignment the engine would treat alike."""
        ...

    def draft_names(self, names: Collection[str]) -> frozenset[str]:
        """Return which of a space's parameters make up the draft part of an assignment; the others are its rest.

        `canonical` is the two parts together: `draft_part` of the one and `rest_part` of the other beside its key.
        """
        ...

    def draft_part(self, values: Assignment) -> Part:
        """Judge the draft part of an assignment."""
        ...

    def rest_part(self, key: Any, values: Assignment) -> Part:
        """Judge the rest of an assignment beside any draft part with this key."""
        ...

    def repaired(self, assignment: Assignment) -> Assignment:
        """Return the legal assignment nearest to one that breaks a bound between parameters."""
        ...

    def command(
        self, candidate: Candidate, *, host: str, port: int, nccl_port: int | None = None, api_key: str | None = None
    ) -> LaunchCommand:
        """Return the launch with every argument explicit on which a default could silently differ."""
        ...

    def supervised(self, command: LaunchCommand, occasion: Occasion) -> LaunchCommand:
        """Return the process that spectune starts for a command; the command itself is recorded and exported."""
        ...

    @property
    def worker_title(self) -> str:
        """What the names of the processes begin with that do the work on the GPUs."""
        ...

    @property
    def set_by_launcher(self) -> frozenset[str]:
        """Variables the engine's launcher sets for its workers whatever it was given itself."""
        ...

    def falsified(self, workers: Sequence[Mapping[str, str]]) -> list[Mismatch]:
        """Return the variables in the workers' environments under which nothing that is measured is the model's."""
        ...

    @property
    def known_start_s(self) -> float | None:
        """Seconds that a launch needs to start, captured graphs left out; None where only a launch tells."""
        ...

    def start_allowance_s(self, candidate: Candidate) -> float:
        """Return how many seconds longer than a plain launch a candidate's may take to start."""
        ...

    def unaccepted(self, candidate: Candidate) -> Sequence[str]:
        """Return why nothing that a candidate drafts may be accepted, most likely first, in words."""
        ...

    def unwise(self, candidate: Candidate) -> list[str]:
        """Return what is likely to go wrong with a launch although the rules allow it, with the way out."""
        ...

    def mismatches(self, candidate: Candidate, server_info: Mapping[str, Any]) -> list[Mismatch]:
        """Compare what was asked for with what the running engine reports."""
        ...

    def effective(self, log: Path, server_info: Mapping[str, Any]) -> Effective:
        """Return what a launch really runs, from its log and from what it says of itself."""
        ...

    def differences(self, candidate: Candidate, found: Effective) -> list[Mismatch]:
        """Compare what was asked for with what really runs."""
        ...

    def served(self, log: Path, begin_s: float, end_s: float, running: int | None) -> Served:
        """Return what the log says of the time between two moments of the epoch.

        Args:
            log: Of the launch.
            begin_s: Seconds since the epoch.
            end_s: Likewise.
            running: Requests that were to run at once; None where that was nobody's to say.
        """
        ...

    def classify(self, failed: EngineFailed) -> Failure:
        """Say from the end of its log why a launch failed."""
        ...

    def renderer(self) -> Renderer:
        """Start the engine's tokenizer."""
        ...
