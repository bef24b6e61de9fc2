"""What the report of a large study costs: `python -m benchmarks.report_speed studies/NAME`.

It needs the test group and Chromium. The study's launches are repeated, as other candidates, until there are enough.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from spectune.report import write_report
from spectune.search import Stop, StudyFolder, TrialRecord, summarise
from spectune.space import Candidate

LIMITS = {"generated, s": 5.0, "size, MB": 6.0, "drawn, s": 3.0}


def grown(records: Sequence[TrialRecord], launches: int) -> list[TrialRecord]:
    """Return that many launches, each copy one of another candidate."""
    found = list(records[:launches])
    while len(found) < launches:
        trial = len(found)
        record = records[trial % len(records)]
        copy = Candidate.of({**record.candidate.values, "env.COPY": str(trial // len(records))})
        found.append(dataclasses.replace(record, trial=trial, launch_index=trial, candidate=copy))
    return found


def drawn_s(path: Path) -> float:
    """Return the seconds from opening a file in Chromium until it is drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto("about:blank")
        began = time.perf_counter()
        page.goto(path.resolve().as_uri())
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seconds = time.perf_counter() - began
        browser.close()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--launches", type=int, default=200)
    options = parser.parse_args()
    folder = StudyFolder(options.study).require()
    space, records = folder.space(), grown(folder.records(), options.launches)
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        told = summarise(records, space, Stop("enough"), name=folder.name, engine="any")
        summed_s = time.perf_counter() - began
        path = write_report(told, records, folder.environment(), space, Path(scratch) / "report.html")
        figures = {
            "generated, s": time.perf_counter() - began,
            "size, MB": path.stat().st_size / 1e6,
            "drawn, s": drawn_s(path),
        }
    print(f"{len(records)} launches, summed up in {summed_s:.2f} s of the time to generate")
    for name, figure in figures.items():
        print(f"{name:14}{figure:8.2f}   at most {LIMITS[name]:g}: {'met' if figure <= LIMITS[name] else 'missed'}")


if __name__ == "__main__":
    main()
