"""What SGLang checks of the parameters of one request before it takes it up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import orjson

_WHOLE, _REAL = "i64", "f64"
_KINDS: Mapping[str, str] = {
    "max_new_tokens": _WHOLE,
    "min_new_tokens": _WHOLE,
    "n": _WHOLE,
    "top_k": _WHOLE,
    "temperature": _REAL,
    "top_p": _REAL,
    "min_p": _REAL,
    "frequency_penalty": _REAL,
    "presence_penalty": _REAL,
    "repetition_penalty": _REAL,
    "ignore_eos": "a boolean",
}
# Of no consequence here, whatever they hold.
_OTHERS = (
    "stop", "stop_token_ids", "stop_regex", "json_schema", "regex", "ebnf", "structural_tag", "skip_special_tokens",
    "spaces_between_special_tokens", "no_stop_trim", "logit_bias", "stream_interval", "sampling_seed", "custom_params",
    "beam_width", "watermark", "choice",
)  # fmt: skip
_RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("temperature", lambda value: value >= 0, "a non-negative finite number"),
    ("top_p", lambda value: 0 < value <= 1, "in (0, 1]"),
    ("min_p", lambda value: 0 <= value <= 1, "in [0, 1]"),
    ("top_k", lambda value: value >= 1 or value == -1, "-1 (disable) or at least 1"),
    ("frequency_penalty", lambda value: -2 <= value <= 2, "in [-2, 2]"),
    ("presence_penalty", lambda value: -2 <= value <= 2, "in [-2, 2]"),
    ("repetition_penalty", lambda value: 0 < value <= 2, "in (0, 2] (1.0 = no penalty)"),
    ("min_new_tokens", lambda value: value >= 0, "in [0, max_new_tokens]"),
    ("max_new_tokens", lambda value: value >= 0, "at least 0"),
)


def wrong_type(parameters: Mapping[str, Any]) -> str | None:
    """Return what is wrong with names and types, in SGLang's words; null means the default."""
    for name, value in parameters.items():
        if name not in _KINDS and name not in _OTHERS:
            known = ", ".join(f"`{one}`" for one in (*_KINDS, *_OTHERS))
            return f"unknown field `{name}`, expected one of {known}"
        kind = _KINDS.get(name)
        if kind is not None and value is not None and not _fits(value, kind):
            return f"invalid type: {_described(value)}, expected {kind}"
    return None


def out_of_range(parameters: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the values, in SGLang's words."""
    for name, holds, rule in _RANGES:
        value = parameters.get(name)
        if value is not None and not holds(value):
            return f"{name} must be {rule}, got {value}."
    return None


def _fits(value: Any, kind: str) -> bool:
    if kind == _WHOLE:
        return type(value) is int
    if kind == _REAL:
        return type(value) in {int, float} and math.isfinite(value)
    return type(value) is bool


def _described(value: Any) -> str:
    """Name a JSON value as SGLang's decoder does."""
    if isinstance(value, str):
        return f"string {orjson.dumps(value).decode()}"
    kinds = {bool: "boolean", int: "integer", float: "floating point"}
    kind = kinds.get(type(value))
    if kind is None:
        return "map" if isinstance(value, dict) else "sequence"
    return f"{kind} `{orjson.dumps(value).decode()}`"
