"""Can the verdicts be believed? `python -m benchmarks.verdicts --profile P… --space S --studies N [--json F]`.

Whole studies in virtual time on profiles whose truth is known from the cost model, every one with noise of its own.

- false: recommends speculation although it is truly below 0.99 × the best configuration without;
- missed: says no_speculation although the best speculation is truly 1.05 × or more;
- coverage: share of the 95 % intervals of the confirmed speedup that hold the true speedup of the same candidate;
- bias: mean of confirmed over true speedup, minus 1.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.truth import Truth, setups_of
from benchmarks.virtual_study import Laboratory
from spectune.engines.simulated.profile import load_profile
from spectune.search.answer.sentence import is_confirmed
from spectune.search.evidence.outcome import weigh
from spectune.search.storage.records import TrialRecord
from spectune.space import SearchSpace, load_space

NOT_WORTH_IT, WORTH_IT = 0.99, 1.05


@dataclass(frozen=True)
class Found:
    """What one study said, beside what is true.

    Attributes:
        decision: Its verdict.
        recommended: True speedup of what it recommends; None unless that speculates.
        best: True speedup of the best candidate there is.
        error: ln of the confirmed speedup over the true one; None without a confirmation.
        covered: Whether the interval holds the true speedup; None likewise.
    """

    decision: str
    recommended: float | None
    best: float
    error: float | None
    covered: bool | None

    @property
    def false(self) -> bool:
        """Whether it recommends what is not worth it."""
        return self.recommended is not None and self.recommended < NOT_WORTH_IT

    @property
    def missed(self) -> bool:
        """Whether it dissuades from what is worth it."""
        return self.decision == "no_speculation" and self.best >= WORTH_IT


def found(records: Sequence[TrialRecord], space: SearchSpace, truth: Truth) -> Found:
    """Compare what the launches of a study say with the truth."""
    evidence = weigh(records, space)
    candidate, best = evidence.recommended, evidence.verdict.overall.best
    error = covered = None
    if best is not None and is_confirmed(best.candidate_id, evidence.records):
        finalist = next(r.candidate for r in evidence.records if r.candidate.candidate_id == best.candidate_id)
        true = truth.speedup(finalist)
        error, covered = best.log_ratio - math.log(true), best.judged.lo <= true <= best.judged.hi
    speculates = candidate is not None and candidate.speculative
    return Found(
        decision=evidence.verdict.overall.decision,
        recommended=truth.speedup(candidate) if candidate is not None and speculates else None,
        best=truth.best_speedup,
        error=error,
        covered=covered,
    )


def summed(studies: Sequence[Found]) -> dict[str, Any]:
    """Return the fractions of a row."""
    errors = [study.error for study in studies if study.error is not None]
    covered = [study.covered for study in studies if study.covered is not None]
    return {
        "false_recommendation": fmean(study.false for study in studies),
        "missed_winner": fmean(study.missed for study in studies),
        "coverage": fmean(covered) if covered else None,
        "speedup_bias": fmean(math.expm1(error) for error in errors) if errors else None,
        "studies": len(studies),
    }


def line(name: str, row: dict[str, Any], studies: Sequence[Found], seconds: float) -> str:
    decisions = Counter(study.decision for study in studies)
    shares = "".join(
        f"{decisions[name] / len(studies):7.0%}" for name in ("speculation", "tie", "undecided", "no_speculation")
    )
    coverage, bias = (math.nan if row[key] is None else row[key] for key in ("coverage", "speedup_bias"))
    return (
        f"{name:<22}{row.get('true_speedup', math.nan):7.3f}{len(studies):8}{row['false_recommendation']:8.1%}"
        f"{row['missed_winner']:8.1%}{coverage:10.1%}{bias:8.2%}{shares}{seconds / len(studies):8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--profile", nargs="+", action="extend", required=True, help="profile files or names")
    parser.add_argument("--space", type=Path, required=True, help="search space file")
    parser.add_argument("--studies", type=int, required=True, help="studies per profile")
    parser.add_argument("--seed", type=int, default=0, help="of the first study")
    parser.add_argument("--json", type=Path, help="where to write the table")
    chosen = parser.parse_args()
    space = load_space(chosen.space)
    rows: list[dict[str, Any]] = []
    everything: list[Found] = []
    total = 0.0
    print(f"{'profile':<22}{'true':>7}{'studies':>8}{'false':>8}{'missed':>8}{'coverage':>10}{'bias':>8}"
          f"{'spec':>7}{'tie':>7}{'undec':>7}{'none':>7}{'s each':>8}")  # fmt: skip
    for number, source in enumerate(chosen.profile):
        laboratory = Laboratory(space, load_profile(source))
        truth = Truth(laboratory, setups_of(laboratory))
        began = time.process_time()
        seeds = range(first := chosen.seed + number * chosen.studies, first + chosen.studies)  # noise of its own
        studies = [found(laboratory.study(seed), space, truth) for seed in seeds]
        spent = time.process_time() - began
        row = {"profile": laboratory.profile.name, "true_speedup": truth.best_speedup, **summed(studies)}
        print(line(laboratory.profile.name, row, studies, spent), flush=True)
        rows.append(row)
        everything += studies
        total += spent
    print(line("all", summed(everything), everything, total))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"total": summed(everything), "rows": rows}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
