"""Where the wall time of a study's launches went: `python -m benchmarks.own_time [studies/NAME] [--json]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from spectune.search import StudyFolder

PARTS = ("startup", "checking", "measuring", "shutdown", "own", "total")
LIMIT_S = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path, nargs="?", default=Path("studies/quickstart"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    records = StudyFolder(options.study).require().records()
    rows = [{"trial": r.trial, **{part: getattr(r.seconds, part) for part in PARTS}} for r in records]
    worst = max(row["own"] for row in rows)
    if options.json:
        print(json.dumps({"trials": rows, "worst_own_s": worst, "limit_s": LIMIT_S}))
        return
    print("trial" + "".join(f"{part:>12}" for part in PARTS) + "   seconds")
    for row in rows:
        print(f"{row['trial']:5d}" + "".join(f"{row[part]:12.2f}" for part in PARTS))
    print("  sum" + "".join(f"{sum(row[part] for row in rows):12.2f}" for part in PARTS))
    verdict = "met" if worst <= LIMIT_S else "missed"
    print(f"own time of the worst trial: {worst:.2f} s, target at most {LIMIT_S} s: {verdict}")


if __name__ == "__main__":
    main()
