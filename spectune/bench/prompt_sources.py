"""Where prompts come from: built-in generators by name, files, and mixes of both."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spectune.bench import mixed_language, random_text, tiny_language
from spectune.bench.prompt_entry import Turns
from spectune.bench.prompt_file import PromptFile, read_prompt_file
from spectune.bench.prompts import Prompt
from spectune.bench.shared_prefix import SharedPrefix
from spectune.errors import SpectuneError

Generator = Callable[[random.Random], str]
"""Makes one text; the same random state makes the same text."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """One class of prompts of one source.

    Attributes:
        name: Source and class, unique within the workload.
        prompt_class: The class alone.
        share: Its part of the workload; the shares of a workload add up to 1.
        supply: A generator, or all the prompts there are.
    """

    name: str
    prompt_class: str
    share: float
    supply: Generator | tuple[Prompt, ...]


@dataclass(frozen=True, slots=True)
class MixPart:
    """One part of a mix: a built-in name or a file, its share of the requests, what is asked of its conversations."""

    prompts: str
    share: float
    turns: Turns = "last"


@dataclass(frozen=True, slots=True)
class Workload:
    """All strata of a workload.

    Attributes:
        strata: In a fixed order.
        duplicates: Prompts removed from files because they repeated another one.
        empty: Conversations left out because they ask nothing.
        times_s: Recorded arrivals in ascending order, of the one file that has them; otherwise empty.
        shared_prefix: What a share of the prompts is given as their beginning.
        sha256: Of the bytes of each file, by its name in the workload.
    """

    strata: tuple[Stratum, ...]
    duplicates: int
    empty: int = 0
    times_s: tuple[float, ...] = ()
    shared_prefix: SharedPrefix | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def recorded_rate(self) -> float | None:
        """Requests per second of the recorded arrivals; None where they tell none."""
        times = self.times_s
        return (len(times) - 1) / (times[-1] - times[0]) if times and times[-1] > times[0] else None

    @property
    def class_shares(self) -> dict[str, float]:
        """Share of every prompt class."""
        shares: dict[str, float] = {}
        for stratum in self.strata:
            shares[stratum.prompt_class] = shares.get(stratum.prompt_class, 0.0) + stratum.share
        return shares


def _tiny(prompt_class: tiny_language.PromptClass) -> Generator:
    return lambda rng: tiny_language.prompt(rng, prompt_class)


BUILTIN: Mapping[str, Mapping[str, Generator]] = {
    "builtin:mixed": {
        "code": mixed_language.code,
        "chat": mixed_language.chat,
        "math": mixed_language.math,
    },
    "builtin:random": {"random": random_text.text},
    "builtin:tiny": {prompt_class: _tiny(prompt_class) for prompt_class in tiny_language.CLASSES},
}


def open_workload(
    prompts: str | Sequence[MixPart], folder: Path | None = None, shared_prefix: SharedPrefix | None = None
) -> Workload:
    """Find all prompts a workload names.

    Args:
        prompts: `builtin:NAME`, a JSON or JSONL file, or a mix of them.
        folder: Where relative file names start; the current folder by default.
        shared_prefix: Given to a share of the prompts.

    Raises:
        SpectuneError: For an unknown built-in name, an empty mix, or a share that is not positive.
        InputProblems: For a file with lines that are not prompts.
    """
    parts = [MixPart(prompts, 1.0)] if isinstance(prompts, str) else list(prompts)
    if not parts:
        raise SpectuneError("a mix of prompts needs at least one part, but got none")
    for part in parts:
        if not 0.0 < part.share < float("inf"):
            raise SpectuneError(f"the share of {part.prompts} must be positive, but got {part.share:g}")
    whole = sum(part.share for part in parts)
    strata: list[Stratum] = []
    files: dict[str, PromptFile] = {}
    for part in parts:
        if part.prompts.startswith("builtin:"):
            strata += _builtin(part.prompts, part.share / whole)
        else:
            file = files[part.prompts] = read_prompt_file((folder or Path()) / part.prompts, part.turns)
            strata += _classes(file, part.prompts, part.share / whole)
    names = [stratum.name for stratum in strata]
    if len(set(names)) < len(names):
        raise SpectuneError("a mix names the same prompts twice; give them one part with the sum of their shares")
    traces = [file.times_s for file in files.values() if file.times_s]
    return Workload(
        tuple(strata),
        duplicates=sum(file.duplicates for file in files.values()),
        empty=sum(file.empty for file in files.values()),
        times_s=traces[0] if len(traces) == 1 else (),
        shared_prefix=shared_prefix,
        sha256={name: file.sha256 for name, file in files.items()},
    )


def _builtin(name: str, share: float) -> list[Stratum]:
    if name not in BUILTIN:
        raise SpectuneError(f"there are no prompts named {name}; built in are {', '.join(sorted(BUILTIN))}")
    classes = BUILTIN[name]
    return [Stratum(f"{name}:{cls}", cls, share / len(classes), make) for cls, make in classes.items()]


def _classes(file: PromptFile, name: str, share: float) -> list[Stratum]:
    classes: dict[str, list[Prompt]] = {}
    for prompt in file.prompts:
        classes.setdefault(prompt.prompt_class, []).append(prompt)
    return [
        Stratum(f"{name}:{cls}", cls, share * len(members) / len(file.prompts), tuple(members))
        for cls, members in classes.items()
    ]
