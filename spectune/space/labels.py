"""Short names of candidates for tables and plots."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from spectune.space.names import (
    ALGORITHM,
    DRAFTER,
    EAGLE_TOPK,
    ENV_PREFIX,
    NO_SPECULATION,
    NUM_DRAFT_TOKENS,
    NUM_STEPS,
    SPECULATIVE_PREFIX,
)
from spectune.space.values import UNSET, Value, text_of

_SEPARATOR = " · "
_SHAPE = (NUM_STEPS, EAGLE_TOPK, NUM_DRAFT_TOKENS)
_DRAFTING = frozenset({ALGORITHM, DRAFTER, *_SHAPE})
GRAPH_SIZES, GRAPHS_OFF = "cuda-graph-bs-decode", "disable-decode-cuda-graph"


def label_of(values: Mapping[str, Value], leave_out: Collection[str] = ()) -> str:
    """Return a label such as `EAGLE3 strong 3,1,4 · graphs 1-8` or `no speculation`.

    Args:
        values: Name → value of a candidate.
        leave_out: Names not worth showing, such as those every candidate of a space shares.
    """
    parts = [drafting_of(values, leave_out)]
    rest = {name: value for name, value in values.items() if name not in {*_DRAFTING, *leave_out}}
    if rest.get(GRAPHS_OFF) is True:
        rest.pop(GRAPH_SIZES, None)
    parts += [part for name, value in sorted(rest.items()) if (part := _part(name, value))]
    return _SEPARATOR.join(parts)


def drafter_name(path: str) -> str:
    """Return the last component of a draft model's path or reference, `strong` for `runtime:drafter-strong`."""
    last = re.split(r"[/:]", path.rstrip("/:"))[-1]
    return last.removeprefix("drafter-") or path


def drafting_of(values: Mapping[str, Value], leave_out: Collection[str] = ()) -> str:
    """Return the part of a label that says how a candidate drafts, such as `EAGLE3 strong 3,1,4`.

    Args:
        values: As for a label.
        leave_out: As for a label; of these, only the drafter is left out.
    """
    algorithm = text_of(values.get(ALGORITHM, NO_SPECULATION))
    if algorithm == NO_SPECULATION:
        return "no speculation"
    words = [algorithm]
    if DRAFTER in values and DRAFTER not in leave_out:
        words.append(drafter_name(text_of(values[DRAFTER])))
    shape = [text_of(values[name]) for name in _SHAPE if name in values]
    if shape:
        words.append(",".join(shape))
    return " ".join(words)


def _part(name: str, value: Value) -> str | None:
    if name in _SPECIAL:
        return _SPECIAL[name](value)
    if name.startswith(ENV_PREFIX):
        return None if value == UNSET else f"{name.removeprefix(ENV_PREFIX)}={text_of(value)}"
    return f"{name.removeprefix(SPECULATIVE_PREFIX)} {text_of(value)}"


def _graphs(value: Value) -> str:
    sizes = value if isinstance(value, tuple) else (value,)
    first, last = text_of(sizes[0]), text_of(sizes[-1])
    return f"graphs {first}" if len(sizes) == 1 else f"graphs {first}-{last}"


def _graphs_off(value: Value) -> str | None:
    return "graphs off" if value is True else None


_SPECIAL: dict[str, Callable[[Value], str | None]] = {
    GRAPH_SIZES: _graphs,
    GRAPHS_OFF: _graphs_off,
    "attention-backend": text_of,
    "prefill-attention-backend": lambda value: f"prefill {text_of(value)}",
    "decode-attention-backend": lambda value: f"decode {text_of(value)}",
    "speculative-attention-mode": lambda value: f"verify as {text_of(value)}",
}
