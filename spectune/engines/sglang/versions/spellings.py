"""One spelling for everything: what a user of any supported version writes, as SGLang 0.5.23 calls it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from spectune.engines.sglang.options import Options
from spectune.engines.sglang.versions.history import FIRST_VERSION, history

ATTENTION_OPTIONS = frozenset(
    {
        "attention-backend",
        "prefill-attention-backend",
        "decode-attention-backend",
        "speculative-draft-attention-backend",
    }
)
# arg_groups/choices.py:69-99: the second is the deprecated name of the first.
OLDER_BACKENDS: Mapping[str, str] = {"dsa": "nsa", "dsv4": "compressed"}
_BACKENDS = {older: name for name, older in OLDER_BACKENDS.items()}

# An older switch that is one value of a newer option.
SWITCHES: Mapping[str, tuple[str, str]] = {
    "enable-breakable-cuda-graph": ("cuda-graph-backend-prefill", "breakable"),
    "enable-flashinfer-allreduce-fusion": ("flashinfer-allreduce-fusion-backend", "auto"),
}


@dataclass(frozen=True)
class Canonical:
    """Arguments under SGLang 0.5.23's names.

    Attributes:
        arguments: Names without dashes → values.
        notes: One sentence for everything that was written otherwise.
        problems: What was said twice, differently.
    """

    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@cache
def renamed() -> Mapping[str, str]:
    """Return older spelling → name, for the spellings that mean exactly the same."""
    rows = history().values()
    return {row.older: row.name for row in rows if row.older is not None and not row.condition}


@cache
def _aliases() -> Mapping[str, str]:
    return {spelling: option.name for spelling, option in Options.shipped().by_name.items() if spelling != option.name}


def canonical_name(name: str) -> str:
    """Return SGLang 0.5.23's name of an option; names it does not know come back as they are."""
    if name == "speculative-dflash-draft-window-size":  # DFLASH's own before other algorithms had one
        return "speculative-draft-window-size"
    name = renamed().get(name, name)
    return _aliases().get(name, name) if not name.startswith("no-") else name


def canonical_value(name: str, value: Any) -> Any:
    """Return SGLang 0.5.23's form of a value of the option `name`."""
    if name == "cuda-graph-bs-prefill" and isinstance(value, str) and value.startswith("["):  # JSON until 0.5.7
        try:
            return tuple(json.loads(value))
        except ValueError:
            return value
    return _BACKENDS.get(value, value) if name in ATTENTION_OPTIONS and isinstance(value, str) else value


def canonical_arguments(arguments: Mapping[str, Any]) -> Canonical:
    """Return arguments under SGLang 0.5.23's names; doing it twice changes nothing more."""
    renames: dict[str, Any] = {}
    notes: list[str] = []
    problems: list[str] = []
    for written, value in arguments.items():
        name = canonical_name(written)
        new = canonical_value(name, value)
        if name in renames and renames[name] != new:
            problems.append(f"{written} and {name} are the same option, with different values here; keep one of them")
            continue
        if name != written:
            notes.append(f"{written} is called {name} since SGLang {_since(name)}")
        elif new != value:
            notes.append(f"the {name} {value} is called {new} today")
        renames[name] = new
    for switch, (name, meaning) in SWITCHES.items():
        if switch in renames and renames.pop(switch) is True:
            renames.setdefault(name, meaning)
            notes.append(f"{switch} is written {name}: {meaning} since SGLang {_since(name)}")
    notes += _attention_dp(renames)
    return Canonical(renames, tuple(notes), tuple(problems))


def _attention_dp(arguments: dict[str, Any]) -> Iterator[str]:
    """Turn `dp-size` with its old switch into `attn-dp-size`, in place, as arg_groups/parallel_hook.py:39-61 does."""
    on = arguments.pop("enable-dp-attention", None)
    if on is True and int(arguments.get("attn-dp-size", 1)) == 1 and int(arguments.get("dp-size", 1)) > 1:
        arguments["attn-dp-size"] = arguments.pop("dp-size")
        yield f"dp-size with enable-dp-attention is written attn-dp-size since SGLang {_since('attn-dp-size')}"


def _since(name: str) -> str:
    known = history().get(name)
    return known.first if known else FIRST_VERSION
