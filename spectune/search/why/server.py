"""A candidate of a study as a diagnosis sees it: a server that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from spectune.analysis.diagnosis import BACKENDS, Load, Running
from spectune.search.evidence.figures import Measured
from spectune.search.evidence.setting import GRAPHS_OFF, MOST_RUNNING
from spectune.space import SearchSpace


def as_server(
    found: Measured, concurrency: int | None, space: SearchSpace, others: Sequence[Measured], *, newest: bool | None
) -> Running:
    """Return what is known of a candidate at one level.

    Args:
        found: The candidate there.
        concurrency: Requests in flight; None in an open loop.
        space: Of the study.
        others: Everything that was measured: where no verify ever ran in graphs, turning them on helps nobody.
        newest: Whether the engine's version is the newest there is; None where that is not known.
    """
    candidate, last = found.candidate, found.launches[-1]
    values = {**space.engine.args, **candidate.values}
    gpu = space.engine.runtime is None and values.get("device") != "cpu"
    captured = last.effective.graph_batches.get("verify" if candidate.speculative else "decode")
    asked = values.get(MOST_RUNNING)
    load = Load(
        running=concurrency,
        intervals=len(found.levels),
        accept_length=found.figures.accept_length.est if candidate.speculative else None,
        decode_speed=found.figures.decode_speed.est,
        in_graph=_in_graph(found) if gpu else None,
        survival=_survival(found),
    )
    return Running(
        algorithm=candidate.algorithm if candidate.speculative else None,
        num_steps=candidate.num_steps,
        eagle_topk=candidate.eagle_topk,
        num_draft_tokens=candidate.num_draft_tokens,
        draft_path=candidate.drafter,
        backends=_backends(values, last.effective.backends),
        graphs_possible=gpu,
        graphs_off=_graphs_off(values) and not _never_in_graphs(found, others),
        padded=values.get("disable-cuda-graph-padding") is not True,
        captured=max(captured) if captured else None,
        max_running=last.effective.max_running_requests,
        asked_running=asked if isinstance(asked, int) else None,
        kv_tokens=last.effective.kv_tokens,
        most_running=concurrency or 0,
        loads=(load,),
        newest=newest,
        simulated=space.engine.is_simulated,
    )


def _backends(values: Mapping[str, Any], resolved: Mapping[str, str]) -> dict[str, str]:
    """Return the attention backend in effect, and those that the launch itself names for a phase."""
    given = {name: values.get(name.replace("_", "-")) for name in BACKENDS}
    given["attention_backend"] = values.get("attention-backend", resolved.get("attention_backend"))
    return {name: str(value) for name, value in given.items() if value is not None}


def _survival(found: Measured) -> tuple[float, ...]:
    """Return P(at least i drafted tokens accepted), mean over the launches; empty where one did not count so far."""
    counted = [level.per_position for level in found.levels]
    depth = found.candidate.num_steps
    return tuple(map(fmean, zip(*counted, strict=True))) if all(len(one) == depth for one in counted) else ()


def _in_graph(found: Measured) -> float | None:
    told = [float(level.graph_used) for level in found.levels if level.graph_used is not None]
    return fmean(told) if told else None


def _graphs_off(values: Mapping[str, Any]) -> bool:
    return any(values.get(name) is True for name in GRAPHS_OFF)


def _never_in_graphs(found: Measured, others: Sequence[Measured]) -> bool:
    """Whether other speculation at this level had graphs turned on, and ran outside them all the same."""
    tried = [
        level.graph_used
        for other in others
        if other.level == found.level and other.candidate.speculative and not _graphs_off(other.candidate.values)
        for level in other.levels
    ]
    return bool(tried) and all(used is False for used in tried)
