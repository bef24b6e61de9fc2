"""CPU time of `spectune --help`, beside that of an interpreter that does nothing: `python -m benchmarks.help_time`."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

RUNS = 20
LIMIT_S = 0.3


def cpu_seconds(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    rows = {"python -c pass": ("-c", "pass"), "spectune --help": ("-m", "spectune", "--help")}
    times = {name: [cpu_seconds(*arguments) for _ in range(RUNS)] for name, arguments in rows.items()}
    print(f"{'':18}{'median s':>10}{'least s':>10}   of {RUNS} runs")
    for name, seconds in times.items():
        print(f"{name:18}{statistics.median(seconds):10.3f}{min(seconds):10.3f}")
    met = statistics.median(times["spectune --help"]) <= LIMIT_S
    print(f"target: at most {LIMIT_S} s of CPU: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
