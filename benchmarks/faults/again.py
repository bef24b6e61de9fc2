"""The same command once more: what must be true of a study after a run that something broke."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.faults.laboratory import Bench
from benchmarks.faults.row import Row

CLEAN = {0, 1, 2}
Outcome = tuple[int, str]
"""Exit code of a search, and all it said."""


def judged(
    name: str, bench: Bench, kept: Mapping[str, bytes], broken: Outcome, again: Outcome, *, launches: int
) -> Row:
    """Return the row of a fault that broke one run.

    Args:
        name: The fault's.
        bench: Where it happened.
        kept: The records when the first run had ended.
        broken: How that ended.
        again: How the same command ended afterwards.
        launches: How many the study must have by then.
    """
    wrong = []
    for which, (code, said) in (("first", broken), ("second", again)):
        if code not in CLEAN or "Traceback" in said:
            wrong.append(f"the {which} run ended with {code}: …{said[-400:]}")
    continued = again[0] == 0
    if not continued:
        wrong.append(f"the second run ended with {again[0]}: …{again[1][-300:]}")
    intact = bench.intact(launches) and kept.items() <= bench.results().items()
    left, ports = bench.processes_left(), bench.ports_left()
    last = next((line for line in reversed(broken[1].splitlines()) if line.strip()), "")
    ok = not wrong and continued and intact and not left and not ports
    return Row(name, None, None, continued, intact, left, ports, ok, "; ".join(wrong) or f"said: {last.strip()[:160]}")
