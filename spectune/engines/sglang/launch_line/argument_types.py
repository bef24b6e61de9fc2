"""SGLang's own parsing functions of option values, by the names its parser reports; argparse quotes those names."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import orjson

_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")
_GRAPH_KEYS: Mapping[str, tuple[str, ...]] = {
    "decode": ("backend", "max_bs", "bs"),
    "prefill": (
        "backend", "max_bs", "bs", "max_context_size", "full_prefill_max_req", "full_prefill_prefix_chunk_tokens",
        "max_seq_len",
    ),
}  # fmt: skip


def human_readable_int(value: str) -> int:
    """Read `16k` as 16000 and `16Ki` as 16384; decimals with k, M, G and T only."""
    value = value.strip()
    match = _WITH_UNIT.fullmatch(value)
    if match is None:
        try:
            return int(value)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"Invalid integer value: '{value}'. Use a plain integer, SI suffixes (1k, 1M), or IEC suffixes "
                "(1Ki, 1Mi). Suffixes are case-sensitive."
            ) from None
    number, unit = match.groups()
    if unit in _SI:
        return int(Decimal(number) * _SI[unit])
    if "." in number:
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with IEC suffixes like '{unit}'. Use an integer IEC value such as "
            f"'{int(Decimal(number))}{unit}', or an SI value such as '{number}{unit[0]}'."
        )
    return int(number) * _IEC[unit]


def nullable_str(value: str) -> str | None:
    """Read nothing and `None` as None."""
    return None if value in ("", "None") else value


def loads(value: str) -> Any:
    """Read JSON."""
    return _json(value)


def json_list_type(value: str) -> Any:
    """Read JSON; SGLang asks for a list and checks only that it is JSON."""
    try:
        return orjson.loads(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Invalid JSON list: {value}. Please provide a valid JSON list.") from None


def parse_cuda_graph_backend_arg(value: str) -> str:
    """Refuse the retired backend in SGLang's words; the choices are checked after it."""
    if value == "tc_piecewise":
        raise argparse.ArgumentTypeError("tc_piecewise was removed; select breakable, full, or disabled")
    return value


def parse_cuda_graph_config_arg(value: str) -> dict[str, dict[str, Any]]:
    """Read `{"decode": {…}, "prefill": {…}}` with the keys each phase allows."""
    option = "--cuda-graph-config"
    try:
        phases = _json(value)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{option} must be JSON: {error}") from None
    if not isinstance(phases, dict):
        raise argparse.ArgumentTypeError(f"{option} must be a JSON object, got {type(phases).__name__}")
    for phase, settings in phases.items():
        if phase not in _GRAPH_KEYS:
            known = tuple(_GRAPH_KEYS)
            raise argparse.ArgumentTypeError(f"{option}: unknown phase '{phase}', expected one of {known}")
        if not isinstance(settings, dict):
            kind = type(settings).__name__
            raise argparse.ArgumentTypeError(f"{option}['{phase}'] must be a JSON object, got {kind}")
        parse_cuda_graph_backend_arg(settings.get("backend", ""))
        for key in settings:
            if key not in _GRAPH_KEYS[phase]:
                raise argparse.ArgumentTypeError(
                    f"{option}['{phase}']: unknown key '{key}', expected one of {_GRAPH_KEYS[phase]}"
                )
    return phases


def _json(value: str) -> Any:
    try:
        return json.loads(value)
    except RecursionError:  # the engine would die of it; as a refusal it can be told
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


TYPES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "str": str,
    "human_readable_int": human_readable_int,
    "nullable_str": nullable_str,
    "loads": loads,
    "json_list_type": json_list_type,
    "parse_cuda_graph_backend_arg": parse_cuda_graph_backend_arg,
    "parse_cuda_graph_config_arg": parse_cuda_graph_config_arg,
}
"""Kind of an option to what reads one value; a kind that is not here is taken as text."""
