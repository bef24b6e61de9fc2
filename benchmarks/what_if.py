"""Whether what-if predictions come true: `python -m benchmarks.what_if [studies/NAME] [--rounds N] [--json]`.

Launches a candidate of a study as it is, with forced accept lengths (SGLang's simulated acceptance), and as it is
again, and compares decode speeds with accept length / cycle. After `spectune search quickstart`, this is the real
engine of the cpu-reference runtime.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from rich.console import Console

from spectune.cli.live import Lines
from spectune.search import StudyFolder
from spectune.search.forced_runs import run_forced
from spectune.search.why import break_even_of

TARGET = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path, nargs="?", default=Path("studies/quickstart"))
    parser.add_argument("--candidate", metavar="ID", help="instead of the one the break-even is about")
    parser.add_argument("--rounds", type=int, default=2, help="of launches; one launch differs from another")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = StudyFolder(options.study).require()
    space, records = folder.space(), folder.records()
    wanted = options.candidate or break_even_of(records, space).candidate_id
    candidate = next((r.candidate for r in records if r.candidate.candidate_id == wanted), None)
    if candidate is None:
        sys.exit(f"{options.study} has no candidate {wanted!r} with speculation")
    lock = folder.lock()
    try:
        with Lines(space, Console(stderr=True)) as lines:
            found = asyncio.run(run_forced(folder, space, records, candidate, lines, rounds=options.rounds))
    finally:
        lock.release()
    off = found.worst
    if options.json:
        print(json.dumps({"candidate_id": wanted, **found.to_json()}))
        return
    print(f"{'level':>6}{'forced':>8}{'accepted':>10}{'predicted':>11}{'measured':>10}{'off':>8}   tok/s")
    for run in found.levels:
        print(
            f"{run.level:>6}{run.forced:>8g}{run.accept_length.est:>10.2f}{run.predicted_tok_s:>11.1f}"
            f"{run.measured_tok_s.est:>10.1f}{run.off:>+8.1%}"
        )
    print(f"the candidate as it is, before and after: up to {found.apart:.1%} apart")
    verdict = "met" if off <= TARGET else "missed" if found.steady else "not judged, the machine did not hold still"
    print(f"worst {off:.1%}, target at most {TARGET:.0%}: {verdict}")


if __name__ == "__main__":
    main()
