"""A long study in virtual time: `python -m benchmarks.soak [--trials 500] [--sampler tpe] [--then guided] [--json F]`.

What must hold: memory at the end below 1.2 × that at launch 50, no more open files, and less than 5 s from the start of
the program that goes on with the study to its next launch, or to its end where the study has ended.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.faults.laboratory import ENGINE, PROFILE, SPACE
from benchmarks.virtual_study import Silent
from spectune.engines.open import open_engine
from spectune.search import Step, StudyFolder, TrialRecord, open_study, run_study
from spectune.space import load_space

EARLY = 50
MOST_GROWTH, MOST_RESUME_S = 1.2, 5.0
SEARCH = {
    "speculative-algorithm": ["none", "EAGLE3"],
    "speculative-draft-model-path": [f"org/drafter-{number}" for number in range(8)],
    "speculative-num-steps": {"from": 1, "to": 8}, "speculative-eagle-topk": [1, 2, 4],
    "speculative-num-draft-tokens": {"from": 2, "to": 32}, "disable-decode-cuda-graph": [False, True],
}  # fmt: skip


class Enough(Exception):
    """The study has been watched for long enough."""


@dataclass
class Gauge(Silent):
    """Reads this process as launches end.

    Attributes:
        until: Launches after which it is enough.
        readings: Launches → resident bytes, open files, and seconds since the process began.
        decided_s: From the start of the process to its first launch, or to the end of a study that needs none.
        decided_cpu_s: What that took of a processor, which other programs do not lengthen.
    """

    until: int
    readings: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    decided_s: float | None = None
    decided_cpu_s: float | None = None
    done: int = 0

    def launching(self, step: Step) -> None:
        """Note when the first launch began."""
        if self.decided_s is None:
            self.done = step.trial
        self.decided()
        if self.done >= self.until:
            raise Enough

    def decided(self) -> None:
        """Note what it took to know what to do first."""
        if self.decided_s is None:
            self.decided_s, self.decided_cpu_s = self._age(), sum(psutil.Process().cpu_times()[:2])

    def finished(self, record: TrialRecord) -> None:  # noqa: ARG002 (only counted)
        """Read this process every ten launches."""
        self.done += 1
        if self.done % 10 == 0:
            process = psutil.Process()
            self.readings[self.done] = (process.memory_info().rss, process.num_fds(), self._age())

    def _age(self) -> float:
        return time.time() - psutil.Process().create_time()


def main() -> int:
    """Run the study and go on with it; returns 1 if something grew or took too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--sampler", default="tpe", help="the guided search ends by itself long before 500 launches")
    parser.add_argument("--then", metavar="SAMPLER", help="the sampler that goes on with it; the same by default")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.worker, options.trials, options.sampler)
    with tempfile.TemporaryDirectory(prefix="spectune-soak-") as folder:
        samplers = options.sampler, options.then or options.sampler
        whole, resumed = (run(Path(folder), options.trials, sampler) for sampler in samplers)
    readings = {int(done): reading for done, reading in whole["readings"].items()}
    last = max(readings, default=0)
    if last <= EARLY:
        parser.error(f"the search ended by itself after {last} launches; try --sampler random --then {options.sampler}")
    growth = readings[last][0] / readings[EARLY][0]
    more_files = readings[last][1] - readings[EARLY][1]
    figures = {
        "trials": last, "samplers": samplers, "memory_growth": round(growth, 3), "more_open_files": more_files,
        "resume_s": round(resumed["decided_s"], 2), "resume_cpu_s": round(resumed["cpu_s"], 2),
        "seconds": round(readings[last][2], 1),
        "ok": growth < MOST_GROWTH and more_files <= 0 and resumed["decided_s"] < MOST_RESUME_S,
    }  # fmt: skip
    print("launches   MiB  open files  seconds")
    for done, (resident, files, seconds) in sorted(readings.items()):
        if done % EARLY == 0:
            print(f"{done:8d}{resident / (1 << 20):6.0f}{files:12d}{seconds:9.0f}")
    print(
        f"memory at launch {last}: {growth:.2f} × that at {EARLY} (below {MOST_GROWTH}); {more_files:+d} open files; "
        f"going on took {resumed['decided_s']:.1f} s (below {MOST_RESUME_S:g} s), "
        f"{resumed['cpu_s']:.1f} s of a processor"
    )
    if options.json:
        options.json.write_text(json.dumps({"schema": 1, **figures}, indent=2) + "\n")
    return int(not figures["ok"])


def run(folder: Path, trials: int, sampler: str) -> Any:
    """Run the study up to a number of launches in a process of its own; returns what that read of itself."""
    budget = {"trials": 2 * trials}  # a part of which is kept for the confirmation
    space = {**SPACE, "engine": {**ENGINE, "virtual": True}, "search": SEARCH, "budget": budget}
    (folder / "small.yaml").write_text(yaml.safe_dump({**PROFILE, "noise": {"launch_sd": 0.01}}))
    (folder / "space.yaml").write_text(yaml.safe_dump(space, sort_keys=False))
    words = [sys.executable, "-m", "benchmarks.soak", "--trials", str(trials), "--sampler", sampler]
    words += ["--worker", str(folder)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def work(folder: Path, trials: int, sampler: str) -> int:
    """Run or go on with the study in this process, and print what it read of itself."""
    space = load_space(folder / "space.yaml")
    engine = open_engine(space)
    study = StudyFolder(folder / "study")
    gauge = Gauge(trials)
    open_study(study, space, engine)
    with contextlib.suppress(Enough):
        asyncio.run(run_study(study, space, engine, gauge, sampler=sampler))
    gauge.decided()
    print(json.dumps({"readings": gauge.readings, "decided_s": gauge.decided_s, "cpu_s": gauge.decided_cpu_s}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
