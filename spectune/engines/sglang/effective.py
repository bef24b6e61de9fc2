"""What a launched SGLang really runs, against what it was launched with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from spectune.engines.protocol import Effective, Mismatch
from spectune.engines.served import Served
from spectune.engines.sglang.rules.names import GRAPH_SIZES, RUNNING, decode_graphs_off
from spectune.engines.sglang.server_log import ServerFacts, read_back, read_server_log
from spectune.engines.sglang.server_log.facts import DecodeInterval
from spectune.engines.sglang.server_log.read_back import graphs_used
from spectune.errors import SpectuneError

FEWEST_LINES = 4  # of a rank: the mean of fewer says nothing
SET_BY_LAUNCHER = frozenset(
    {
        "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_GRAPH_REGISTER", "CUDA_DEVICE_MAX_CONNECTIONS",
        "TRTLLM_ENABLE_PDL", "CUDA_MODULE_LOADING",
    }
)  # fmt: skip


def effective(log: Path, server_info: Mapping[str, Any]) -> Effective:
    """Return the state of a launch as its log and `/server_info` tell it; what neither tells is empty."""
    facts = facts_of(log)
    found = read_back(facts, server_info)
    return Effective(
        graph_batches={str(kind): batches for kind, batches in found.graph_batches.items()},
        kv_tokens=found.kv_tokens,
        max_running_requests=found.max_running_requests,
        backends=dict(found.backends),
        nccl={name: " and ".join(values) for name, values in facts.nccl.items()},
    )


def facts_of(log: Path) -> ServerFacts:
    """Return what a log says; nothing where it cannot be read or says nothing."""
    try:
        return read_server_log(log)
    except SpectuneError:
        return ServerFacts()


def differences(launch: Mapping[str, Any], found: Effective, *, speculative: bool) -> list[Mismatch]:
    """Return what runs differently from what was asked for: captured graphs, and how many requests may run.

    Args:
        launch: Every argument of the launch.
        found: What runs.
        speculative: Whether the target's graphs are those of the verify.
    """
    differing = []
    running = launch.get(RUNNING)
    ranks = int(launch.get("attn-dp-size") or launch.get("dp-size") or 1)
    if isinstance(running, int) and found.max_running_requests is not None:
        wanted = running // ranks
        if found.max_running_requests < wanted:
            differing.append(Mismatch(RUNNING, wanted, found.max_running_requests))
    if not found.graph_batches or decode_graphs_off(launch):
        return differing
    kind = "verify" if speculative else "decode"
    sizes, got = launch.get(GRAPH_SIZES), found.graph_batches.get(kind)
    if isinstance(sizes, tuple | list) and isinstance(running, int) and got is not None:
        expected = captured(sizes, found.max_running_requests or running)
        if tuple(got) != expected:
            differing.append(Mismatch(GRAPH_SIZES, expected, tuple(got)))
    return differing


def nccl_differences(env: Mapping[str, str], unset: Collection[str], said: Mapping[str, str]) -> list[Mismatch]:
    """Return the variables that NCCL found set otherwise than the launch set them, as by an `/etc/nccl.conf`.

    Args:
        env: Variables of the launch.
        unset: Those that must be absent, as far as the launcher does not set them itself.
        said: Variable → value as NCCL logged it; one it did not log is not judged.
    """
    absent = [name for name in unset if name not in SET_BY_LAUNCHER]
    wanted = {name: value for name, value in env.items() if name in said} | dict.fromkeys(absent)
    return [
        Mismatch(f"{name}, as NCCL logs it", "unset" if value is None else value, said[name])
        for name, value in sorted(wanted.items())
        if name in said and (value is None or _plain(value) != _plain(said[name]))
    ]


def _plain(value: str) -> str:
    """Return a value as NCCL understands it: whole numbers in any form, words in any case."""
    text = value.strip().lower()
    try:
        return str(int(text))
    except ValueError:
        return text


def captured(sizes: Sequence[int], running: int) -> tuple[int, ...]:
    """Return the batch sizes that are captured: none above the requests that can run (facts, section 3)."""
    kept = {size for size in sizes if size <= running}
    return tuple(sorted(kept | {running} if any(size > running for size in sizes) else kept))


def served(log: Path, begin_s: float, end_s: float, running: int | None) -> Served:
    """Return what a log says of the time between two moments; what it does not say is None.

    Means leave out the first line of each rank in that time, because it speaks of the time before, too.

    Args:
        log: Of the launch.
        begin_s: Seconds since the epoch.
        end_s: Likewise.
        running: Requests that were to run at once, if that was given.
    """
    facts = facts_of(log)
    use = None if running is None else graphs_used(facts, begin_s, end_s).get(running)
    ranks: dict[str, list[DecodeInterval]] = {}
    for interval in facts.decode:
        if interval.time_s is not None and int(begin_s) <= interval.time_s <= end_s - 1:  # stamped in whole seconds
            ranks.setdefault(interval.rank, []).append(interval)
    whole = [intervals[1:] for intervals in ranks.values() if len(intervals) > FEWEST_LINES]
    return Served(
        graph_used=None if use is None else use.always,
        running=sum(fmean(one.running for one in lines) for lines in whole) if whole else None,
        queued=sum(fmean(one.queued for one in lines) for lines in whole) if whole else None,
        retractions=facts.retractions,
        ranks=max(1, len(ranks)),
    )
