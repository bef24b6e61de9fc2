"""The launch options of an SGLang version, as its own parser describes them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from spectune.engines.address import host_complaint

SHIPPED_VERSION = "0.5.23"

# What argparse takes for an option of its own, not for the value of the one before: numbers and texts with blanks pass.
_LIKE_AN_OPTION = re.compile(r"-(?!\d+$|\d*\.\d+$)[^ ]+")

# What spectune decides for every launch, or cannot measure behind.
RESERVED = {
    "nccl-port": "spectune gives every launch ports of its own; leave it out",
    "api-key": "a launch that listens beyond loopback gets a key of its own; add yours to the exported launch",
    "config": "spectune has to know every argument; write them into engine.args",
    "nnodes": "launches over several nodes are not supported",
}


@dataclass(frozen=True)
class Option:
    """One launch option.

    Attributes:
        name: Long name without dashes.
        kind: `flag`, `int`, `float`, `str` or the name of SGLang's own parsing function.
        nargs: None for one value, 0 for none, "+" or "*" for several.
        choices: The values it accepts, None for any.
    """

    name: str
    kind: str
    nargs: int | str | None
    choices: tuple[str, ...] | None

    def complaint(self, value: Any) -> str | None:
        """Say what is wrong with `value` for this option; None when it fits."""
        if self.name in RESERVED:
            return f"{self.name} cannot be set here: {RESERVED[self.name]}"
        if self.name == "host":
            return host_complaint(value)
        if self.kind == "flag":
            return None if isinstance(value, bool) else f"{self.name} is a switch: true or false, but got {value!r}"
        if self.nargs in ("+", "*"):
            several = value if isinstance(value, list | tuple) else [value]
            return next((wrong for item in several if (wrong := self._one(item))), None)
        if isinstance(value, list | tuple):
            return f"{self.name} takes one value, but got the list {list(value)!r}"
        return self._one(value)

    def _one(self, value: Any) -> str | None:
        integer = isinstance(value, int) and not isinstance(value, bool)
        if self.kind == "int" and not integer:
            return f"{self.name} must be an integer, but got {value!r}"
        if self.kind == "float" and not (integer or isinstance(value, float)):
            return f"{self.name} must be a number, but got {value!r}"
        if self.choices is not None and str(value) not in self.choices:
            meant = _meant(str(value), self.choices)
            return f"{self.name} must be one of {', '.join(self.choices)}, but got {value!r}{meant}"
        if _LIKE_AN_OPTION.fullmatch(str(value)):
            return f"{self.name}: SGLang takes a value that begins with a dash for another option, but got {value!r}"
        return None


@dataclass(frozen=True)
class Options:
    """All launch options of one SGLang version.

    Attributes:
        version: SGLang's version.
        by_name: Every long spelling, aliases included, to its option.
    """

    version: str
    by_name: Mapping[str, Option]

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Options:
        """Read what `asked/parser.py` printed."""
        by_name = {}
        for name, entry in answer["options"].items():
            choices = None if entry["choices"] is None else tuple(entry["choices"])
            option = Option(name, entry["kind"], entry["nargs"], choices)
            by_name.update({spelling.lstrip("-"): option for spelling in entry["names"]})
        return cls(answer["version"], by_name)

    @classmethod
    @cache
    def shipped(cls) -> Options:
        """Return the options of the version spectune was written against; needs no engine."""
        file = resources.files(__package__) / f"options_{SHIPPED_VERSION}.json"
        return cls.parse(json.loads(file.read_text(encoding="utf-8")))

    def complaint(self, name: str, value: Any) -> str | None:
        """Say what is wrong with passing `value` to the option `name`; None when it fits."""
        option = self.by_name.get(name)
        if option is not None:
            return option.complaint(value)
        return f"SGLang {self.version} has no option {name}{_meant(name, self.by_name)}"


def _meant(written: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that asks for the nearest of the words that are known; empty where none is near."""
    near = difflib.get_close_matches(written, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
