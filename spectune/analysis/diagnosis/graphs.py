"""Target steps outside CUDA graphs: seen in decode lines, or to be expected from what was captured."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost
from spectune.analysis.diagnosis.running import Load

MOSTLY = 0.5
_CAPTURED_ELSEWHERE = (
    Action("look for the attention backend or option that keeps this SGLang from capturing this step, and change it",
           Cost.FLAG),
    Action("restart with an SGLang that captures it", Cost.RESTART),
)  # fmt: skip
_REPLAYED_ELSEWHERE = (
    Action("look for the attention backend or option that keeps this SGLang from running this step in the graphs it "
           "captured, and change it", Cost.FLAG),
    Action("restart with an SGLang that runs it in them", Cost.RESTART),
)  # fmt: skip


def eager(case: Case) -> Iterator[Cause]:
    """Steps that ran outside CUDA graphs, at the judged load or at others."""
    running, judged = case.running, case.load
    if not running.graphs_possible:
        return
    loads = [load for load in running.loads if load.in_graph is not None and load.in_graph < MOSTLY]
    if not loads:
        yield from _not_captured(case)
        return
    here = judged in loads
    where = _batches(loads)
    step = "decode" if running.algorithm is None else "verify"
    evidence = f"the {step} ran outside CUDA graphs at batch size {where}"
    graphed = [load for load in running.loads if load.in_graph is not None and load.in_graph >= MOSTLY]
    if graphed:
        evidence += f" (in graphs at {_batches(graphed)})"
    lost = _cost_of_eager(case) if here else None
    if lost is not None:
        evidence += (
            f"; a verify is not faster than a plain step, so graphs give {case.baseline_tok_s:g} × "
            f"{case.accept_length or 1:.2f} tok/s at most"
        )
    largest = max(load.running or 0 for load in loads)
    if running.captured and largest > running.captured:
        evidence += f"; the largest captured batch is {running.captured}"
        action = Action(f"launch with {running.graph_flag} {largest} or more", Cost.FLAG)
        yield Cause("graphs_too_small", lost, evidence, (action,), at_most=True)
    elif running.graphs_off:
        yield Cause("graphs_off", lost, f"{evidence}; the launch turned them off", (_graphs_on(case),), at_most=True)
    elif running.captured == 0:
        yield Cause("eager", lost, f"{evidence}; none was captured", _CAPTURED_ELSEWHERE, at_most=True)
    else:
        captured = "" if running.captured is None else f", though batches up to {running.captured} were captured"
        yield Cause("eager", lost, evidence + captured, _REPLAYED_ELSEWHERE, at_most=True)


def _not_captured(case: Case) -> Iterator[Cause]:
    """Without a decode line to tell: graphs that are off, or end below the requests that may run (sglang#5274)."""
    running = case.running
    if any(load.in_graph is not None for load in running.loads):
        return
    step = "decode" if running.algorithm is None else "verify"
    if running.graphs_off:
        yield Cause("graphs_off", None, f"the launch turned off CUDA graphs for the {step}", (_graphs_on(case),))
        return
    if running.captured == 0:
        yield Cause("eager", None, f"no CUDA graph of the {step} was captured", _CAPTURED_ELSEWHERE)
        return
    if running.captured is None or running.max_running is None or running.captured >= running.max_running:
        return
    if running.asked_running is None:
        return  # SGLang's own limit without speculation is far above what graphs are captured for
    evidence = (
        f"the largest captured batch is {running.captured}, but {running.max_running} requests may run: larger "
        "batches run outside CUDA graphs"
    )
    action = Action(f"launch with {running.graph_flag} {running.max_running}", Cost.FLAG)
    yield Cause("graphs_too_small", None, evidence, (action,))


def _graphs_on(case: Case) -> Action:
    return Action(
        "launch without --disable-cuda-graph and --disable-decode-cuda-graph; if memory runs out, fewer captured "
        f"batches ({case.running.graph_flag}) come before no graphs",
        Cost.FLAG,
    )


def _cost_of_eager(case: Case) -> float | None:
    """What graphs can give at most: a verify costs no less than a plain step, so v ≤ τ·v₀."""
    if case.baseline_tok_s is None or not case.speed:
        return None
    return max(0.0, case.baseline_tok_s * (case.accept_length or 1.0) - case.speed) or None


def _batches(loads: list[Load]) -> str:
    """Name batch sizes: a few of them, or from … to …."""
    sizes = sorted(load.running or 0 for load in loads)
    return ", ".join(map(str, sizes)) if len(sizes) <= 4 else f"{sizes[0]} to {sizes[-1]}"
