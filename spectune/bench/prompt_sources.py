"""Where prompts come from: built-in generators by name, files, and mixes of both."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spectune.bench import mixed_language, tiny_language
from spectune.bench.prompt_file import read_prompt_file
from spectune.bench.prompts import Prompt
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
    """One part of a mix: a built-in name or a file, and its share of the requests."""

    prompts: str
    share: float


@dataclass(frozen=True, slots=True)
class Workload:
    """All strata of a workload.

    Attributes:
        strata: In a fixed order.
        duplicates: Prompts removed from files because they repeated another one.
    """

    strata: tuple[Stratum, ...]
    duplicates: int

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
    "builtin:tiny": {prompt_class: _tiny(prompt_class) for prompt_class in tiny_language.CLASSES},
}


def open_workload(prompts: str | Sequence[MixPart], folder: Path | None = None) -> Workload:
    """Find all prompts a workload names.

    Args:
        prompts: `builtin:NAME`, a JSONL file, or a mix of them.
        folder: Where relative file names start; the current folder by default.

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
    duplicates = 0
    for part in parts:
        found, removed = _open(part.prompts, part.share / whole, folder or Path())
        strata += found
        duplicates += removed
    names = [stratum.name for stratum in strata]
    if len(set(names)) < len(names):
        raise SpectuneError("a mix names the same prompts twice; give them one part with the sum of their shares")
    return Workload(tuple(strata), duplicates)


def _open(name: str, share: float, folder: Path) -> tuple[list[Stratum], int]:
    if name in BUILTIN:
        classes = BUILTIN[name]
        return [Stratum(f"{name}:{cls}", cls, share / len(classes), make) for cls, make in classes.items()], 0
    if name.startswith("builtin:"):
        raise SpectuneError(f"there are no prompts named {name}; built in are {', '.join(sorted(BUILTIN))}")
    file = read_prompt_file(folder / name)
    classes_of: dict[str, list[Prompt]] = {}
    for prompt in file.prompts:
        classes_of.setdefault(prompt.prompt_class, []).append(prompt)
    strata = [
        Stratum(f"{name}:{cls}", cls, share * len(members) / len(file.prompts), tuple(members))
        for cls, members in classes_of.items()
    ]
    return strata, file.duplicates
