"""What to do next where all that is known is the arithmetic of one cycle."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.analysis.break_even import BreakEven, impossible

MEASURE = (
    "let `spectune search` launch and measure what your machine can do: `spectune init` writes a search space for it"
)


def next_steps(result: BreakEven) -> tuple[str, ...]:
    """Return what to do, in the order to try it in.

    Figures that contradict each other are measured again first, and the break-even is then that of the cycle which the
    measured speed means.
    """
    return tuple(_steps(result))


def _steps(result: BreakEven) -> Iterator[str]:
    found = result.contradiction
    needed = result.break_even if found is None else found.break_even
    if found is not None:
        yield "measure cycle, accept length and speed again, of the same launch at the same load"
    if impossible(needed) is not None:
        yield "measure the baseline again: one request, the same load, its own best settings"
    if result.pays:
        yield (
            f"keep speculation while it accepts more than {needed:.2f} and a cycle takes less than "
            f"{result.break_even_cycle_ms:.3g} ms; at other loads cycle and baseline are others: measure there too"
        )
    else:
        yield from _to_pay(result, needed)
    yield MEASURE


def _to_pay(result: BreakEven, needed: float) -> Iterator[str]:
    most = "" if result.bound is None else f" of {result.bound} possible"
    if result.bound is None or needed < result.bound:
        yield f"try a drafter that accepts more than {needed:.2f}{most} on this traffic"
    fewer = "" if result.num_steps == 1 else "fewer draft steps (which accept less, too), "
    yield (
        f"shorten the cycle to less than {result.break_even_cycle_ms:.3g} ms: {fewer}verifies in CUDA graphs, a "
        "drafter whose step takes less"
    )
    yield f"where neither can be had, launch without speculation: {result.baseline_tok_s:g} tok/s"
