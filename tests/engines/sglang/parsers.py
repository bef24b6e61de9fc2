"""The parsers of all supported versions, from the names that stand in data/option_names.tsv."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from spectune.engines.sglang.options import Option, Options
from spectune.engines.sglang.versions.spellings import canonical_name

_FILE = Path(__file__).parent / "data" / "option_names.tsv"
# 0.5.12 is the last whose ATTENTION_BACKEND_CHOICES (server_args.py) do not know dsa.
_BACKENDS = ("triton", "flashinfer", "fa3", "nsa")


@cache
def _table() -> tuple[tuple[str, ...], dict[str, str]]:
    lines = [line for line in _FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    rows = (line.split("\t") for line in lines[1:])
    return tuple(lines[0].split("\t")[1].split()), dict(rows)


def versions() -> tuple[str, ...]:
    """All of them, the oldest first."""
    return _table()[0]


def names_of(version: str) -> frozenset[str]:
    """Every spelling its command line accepts."""
    column = versions().index(version)
    return frozenset(name for name, marks in _table()[1].items() if marks[column] == "y")


@cache
def parser_of(version: str) -> Options:
    """Its options; what kind of value a name takes is today's, but for what was checked with the real parsers."""
    patch, by_name = int(version.split(".")[2]), {name: _option(name) for name in names_of(version)}
    backends = (*_BACKENDS, "dsa") if patch >= 13 else _BACKENDS
    by_name["attention-backend"] = Option("attention-backend", "str", None, backends)
    if patch < 8:
        by_name["piecewise-cuda-graph-tokens"] = Option("piecewise-cuda-graph-tokens", "json_list_type", None, None)
    return Options(version, by_name)


def _option(name: str) -> Option:
    switch = name.startswith(("enable-", "disable-", "enforce-"))
    gone = Option(name, "flag" if switch else "str", 0 if switch else None, None)
    return Options.shipped().by_name.get(canonical_name(name), gone)
