"""Names with a meaning of their own, and what to say about a name that is not known."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

ALGORITHM = "speculative-algorithm"
NO_SPECULATION = "none"
DRAFTER = "speculative-draft-model-path"
NUM_STEPS = "speculative-num-steps"
EAGLE_TOPK = "speculative-eagle-topk"
NUM_DRAFT_TOKENS = "speculative-num-draft-tokens"

ADDRESS = ("host", "port")  # where a launch listens: no speed follows from it

ENV_PREFIX = "env."
SPECULATIVE_PREFIX = "speculative-"

_ARGUMENT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LISTED_IN_FULL = 12


def is_environment(name: str) -> bool:
    """Whether `name` is an environment variable of the workers, `env.NAME`."""
    return name.startswith(ENV_PREFIX)


def is_speculative(name: str) -> bool:
    """Whether `name` exists only in the speculation branch."""
    return name.startswith(SPECULATIVE_PREFIX)


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """Return the valid name most like `word`, ignoring case, or None when nothing is alike."""
    by_lower = {name.lower(): name for name in valid}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def hint(word: str, valid: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the nearest valid one, or all of them when they are few."""
    names = sorted(valid)
    match = nearest(word, names)
    if match is not None:
        return f"; did you mean '{match}'?"
    if 0 < len(names) <= _LISTED_IN_FULL:
        return f"; valid: {', '.join(names)}"
    return ""


def argument_name_problem(name: str) -> str | None:
    """Return what is wrong with the spelling of an engine argument, or None: `num-steps` is right."""
    if _ARGUMENT.fullmatch(name):
        return None
    bare = name.lstrip("-").replace("_", "-").lower()
    advice = f"; write '{bare}'" if _ARGUMENT.fullmatch(bare) else ""
    return f"'{name}' is not an argument name: lower case and hyphens, no dashes in front{advice}"
