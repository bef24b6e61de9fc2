"""Target steps outside CUDA graphs: seen in decode lines, or to be expected from what was captured."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.diagnosis.case import Action, Case, Cause, Cost
from spectune.analysis.diagnosis.running import Load, Running

NAMES = frozenset({"eager", "graphs_off", "graphs_too_small"})
"""Of the causes found here."""
MOSTLY = 0.5
BACKENDS = ("prefill_attention_backend", "decode_attention_backend")
"""Server arguments that go before `attention_backend`, one for each phase."""
_IN_GRAPHS = "triton"
"""The attention backend whose verify runs in graphs wherever SGLang has graphs."""


def eager(case: Case) -> Iterator[Cause]:
    """Steps that ran outside CUDA graphs, at the judged load or at others; or that will, by what was captured."""
    running = case.running
    if not running.graphs_possible:
        return
    told = [load for load in running.loads if load.in_graph is not None]
    outside = [load for load in told if (load.in_graph or 0.0) < MOSTLY]
    if outside:
        yield _seen(case, outside, [load for load in told if load not in outside])
    elif not told and (running.graphs_off or running.captured == 0):
        yield _none_there(case, f"the {_step(case)} runs outside CUDA graphs", here=True)
    elif not told:
        yield from _captured_less_than_may_run(case)


def _seen(case: Case, outside: list[Load], inside: list[Load]) -> Cause:
    """What decode lines show."""
    running, here = case.running, case.load in outside
    evidence = f"the {_step(case)} ran outside CUDA graphs at batch size {_batches(outside)}"
    if inside:
        evidence += f" (in graphs at {_batches(inside)})"
    largest = max(load.running or 0 for load in outside)
    if running.captured and largest > running.captured:
        evidence += f"; the largest captured batch is {running.captured}"
        action = Action(f"launch with {running.graph_flag} {largest} or more", Cost.FLAG)
        return _priced(case, "graphs_too_small", evidence, (action,), here=here)
    if running.graphs_off or running.captured == 0:
        return _none_there(case, evidence, here=here)
    captured = "" if running.captured is None else f", though batches up to {running.captured} were captured"
    return _eager(case, evidence + captured, "decode lines say whether they ran in a graph", here=here)


def _none_there(case: Case, evidence: str, *, here: bool) -> Cause:
    """No graph at all, by the launch's own wish or not."""
    if not case.running.graphs_off:
        return _eager(case, f"{evidence}; none was captured", "its log says which batches were captured", here=here)
    action = Action(
        "launch without --disable-cuda-graph and --disable-decode-cuda-graph; if memory runs out, fewer captured "
        f"batches ({case.running.graph_flag}) come before no graphs",
        Cost.FLAG,
    )
    return _priced(case, "graphs_off", f"{evidence}; the launch turned them off", (action,), here=here)


def _eager(case: Case, evidence: str, shown: str, *, here: bool) -> Cause:
    """A step that has no graph although the launch wants one, and what of its arguments may be to blame.

    A simulated machine runs a verify in graphs or does not, whatever the launch is given: nothing is advised there.

    Args:
        case: The server.
        evidence: What was seen.
        shown: Where it is seen whether the advice helped.
        here: Whether it is so at the judged load.
    """
    running = case.running
    if running.simulated:
        return _priced(case, "eager", f"{evidence}; the profile has it so, whatever is launched", (), here=here)
    flags = [f"without --{name.replace('_', '-')}" for name in BACKENDS if _other(running, name)]
    if _other(running, "attention_backend") or not running.backends:
        flags.insert(0, f"with --attention-backend {_IN_GRAPHS}")
    if not running.padded:
        flags.append("without --disable-cuda-graph-padding")
    change = [Action(f"launch {', '.join(flags)}: {shown}", Cost.FLAG)] if flags else []
    return _priced(case, "eager", evidence, (*change, *_newer(running)), here=here)


def _newer(running: Running) -> Iterator[Action]:
    """Advise another version, unless the newest runs."""
    if not running.newest:
        other = "a newer SGLang" if running.newest is False else "SGLang 0.5.23, if this one is older"
        words = f"restart with {other}: 0.5.23 runs the verify of every algorithm of its own in graphs"
        yield Action(words, Cost.RESTART)


def _other(running: Running, name: str) -> bool:
    """Whether an argument names another backend than the one whose verify runs in graphs."""
    return running.backends.get(name, _IN_GRAPHS) != _IN_GRAPHS


def _priced(case: Case, name: str, evidence: str, actions: tuple[Action, ...], *, here: bool) -> Cause:
    """Add what graphs can give at most: a verify costs no less than a plain step, so v ≤ τ·v₀."""
    baseline, length = case.baseline_tok_s, case.accept_length or 1.0
    if not here or baseline is None or not case.speed or baseline * length <= case.speed:
        return Cause(name, None, evidence, actions)
    bound = f"; a verify is not faster than a plain step, so graphs give {baseline:g} × {length:.2f} tok/s at most"
    return Cause(name, baseline * length - case.speed, evidence + bound, actions, at_most=True)


def _captured_less_than_may_run(case: Case) -> Iterator[Cause]:
    """Graphs that do not reach as many requests as may run (sglang#5274)."""
    running = case.running
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


def _step(case: Case) -> str:
    return "decode" if case.running.algorithm is None else "verify"


def _batches(loads: list[Load]) -> str:
    """Name batch sizes: a few of them, or from … to …."""
    sizes = sorted(load.running or 0 for load in loads)
    return ", ".join(map(str, sizes)) if len(sizes) <= 4 else f"{sizes[0]} to {sizes[-1]}"
