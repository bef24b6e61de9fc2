"""A diagnosis as a person reads it: what runs, how fast, whether it pays, causes, next actions."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from spectune.analysis.diagnosis import Cause, Diagnosis, Load, Running
from spectune.cli.known_server import UNNAMED
from spectune.cli.terminal import OUT, print_line
from spectune.counts import count

MOST_ROWS = 8
NOTHING_FOUND = "nothing that slows it down was found"
NOTHING_MEASURED = "no cause was found, but nothing was measured either"


def print_diagnosis(title: str, known: Running, diagnosis: Diagnosis) -> None:
    """Print everything that is to be said."""
    print_line(title)
    if known.simulated:
        print_line(
            "SIMULATED: spectune's own engine answers in place of SGLang; no figure here is of the hardware it names"
        )
    for sentence in _launched(known):
        print_line(sentence)
    if known.loads:
        OUT.print(_table(known, diagnosis.load))
    for sentence in (*diagnosis.words, *(f"note: {note}" for note in diagnosis.notes)):
        print_line(sentence)
    if not diagnosis.causes:
        print_line(NOTHING_FOUND if diagnosis.measured else NOTHING_MEASURED)
        return
    print_line("likely causes, most tokens per second lost first:")
    for number, cause in enumerate(diagnosis.causes, 1):
        print_line(f"  {number}. {cause.name} ({_lost(cause)}): {cause.evidence}")
    print_line("what to do, cheapest first:")
    for action in diagnosis.actions:
        print_line(f"  - {action.cost}: {action.words}")


def _launched(known: Running) -> Iterator[str]:
    if not known.speculation_known:
        yield "whether it speculates is not known: the log is cut before it says so"
    elif known.algorithm is None:
        yield "no speculation"
    else:
        numbers = (known.num_steps, "step"), (known.eagle_topk, "branch"), (known.num_draft_tokens, "draft token")
        shape = [count(value, noun) for value, noun in numbers if value is not None]
        drafter = " ".join(word for word in (known.draft_path, _bracketed(known.draft_architecture)) if word)
        named = "speculation of a kind that the log no longer names" if known.algorithm == UNNAMED else known.algorithm
        yield ", ".join([named, *shape, *([f"drafter {drafter}"] if drafter else [])])
    if known.backends:
        chosen = (f"{name.removesuffix('_backend')} {kind}" for name, kind in known.backends.items())
        yield f"backends: {', '.join(chosen)}"
    yield f"CUDA graphs: {_graphs(known)}"
    requests = f"requests: {_limit(known)}, up to {known.most_running} ran and {known.most_queued} waited"
    if known.kv_tokens is not None:
        requests += f"; the KV cache holds {known.kv_tokens:,} tokens"
    yield requests + ("" if known.peak_usage is None else f", up to {known.peak_usage:.0%} of it used")


def _limit(known: Running) -> str:
    if known.max_running is not None:
        return f"{known.max_running} may run at once"
    if known.asked_running is not None:
        return f"{known.asked_running} were asked to run at once"
    return "how many may run at once is not known"


def _graphs(known: Running) -> str:
    if not known.graphs_possible:
        return "none (a CPU, or a server that only prefills)"
    if known.graphs_off:
        return "off"
    if known.captured == 0:
        return f"none of the {'decode' if known.algorithm is None else 'verify'} captured"
    return "not known" if known.captured is None else f"captured up to {count(known.captured, 'request')}"


def _table(known: Running, judged: Load | None) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("running", "intervals", "accept length", "cycle ms", "tok/s per request", "in graphs", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    often = sorted(known.loads, key=lambda load: (load is judged, load.intervals), reverse=True)[:MOST_ROWS]
    for load in sorted(often, key=lambda load: load.running or 0):
        table.add_row(
            _figure(load.running, ".0f"),
            str(load.intervals),
            _figure(load.accept_length, ".2f"),
            _figure(load.cycle_ms, ".2f"),
            _figure(load.decode_speed, ".1f"),
            _figure(load.in_graph, ".0%"),
            "judged here" if load is judged and len(known.loads) > 1 else "",
        )
    return table


def _lost(cause: Cause) -> str:
    if cause.fatal:
        return "the server ended"
    if cause.lost_tok_s is None:
        return "loss not known"
    return f"{'up to ' if cause.at_most else ''}{cause.lost_tok_s:.1f} tok/s lost"


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _bracketed(text: str | None) -> str:
    return f"({text})" if text else ""
