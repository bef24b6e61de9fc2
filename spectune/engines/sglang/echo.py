"""What SGLang's `/server_info` says of the arguments it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.engines.protocol import Mismatch

# Reported in another form than they were passed in, or only meaningful to the launcher.
NOT_ECHOED = frozenset(
    {"host", "port", "nccl-port", "cuda-graph-bs-decode", "cuda-graph-bs-prefill", "cuda-graph-config"}
)


def echoed_otherwise(wanted: Mapping[str, Any], server_info: Mapping[str, Any]) -> list[Mismatch]:
    """Return the arguments that a running engine reports with other values; what it does not report passes.

    Args:
        wanted: Arguments, as SGLang rewrites them.
        server_info: Its report.
    """
    found = []
    for name, value in wanted.items():
        key = name.replace("-", "_")
        if name not in NOT_ECHOED and key in server_info and not _same(value, server_info[key]):
            found.append(Mismatch(name, value, server_info[key]))
    return found


def _same(asked: Any, reported: Any) -> bool:
    if isinstance(asked, list | tuple) and isinstance(reported, list | tuple):
        return list(asked) == list(reported)
    if isinstance(asked, float) and isinstance(reported, int | float):
        return abs(asked - reported) < 1e-6
    return bool(asked == reported) or str(asked) == str(reported)
