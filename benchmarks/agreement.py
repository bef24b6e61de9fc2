"""Do two studies agree, or call it a tie? `python -m benchmarks.agreement --profile P… --space S --pairs N [--json F]`.

Pairs of whole studies in virtual time, alike but for their noise.

- same: both recommend the same candidate;
- tie: they do not, and one names the other's among those that it cannot tell from its own; so does the other, or it
  never launched it;
- half: one names it, and the other tells it apart;
- apart: neither names it, and one tells it apart;
- unseen: neither ever launched what the other recommends;
- loss: how much slower what a study recommends truly is than the best candidate there is, on average.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from benchmarks.truth import Truth, setups_of
from benchmarks.virtual_study import Laboratory
from spectune.engines.simulated.profile import load_profile
from spectune.search.evidence.outcome import Evidence, weigh
from spectune.space import SearchSpace, load_space

Agreement = Literal["same", "tie", "half", "apart", "unseen"]


@dataclass(frozen=True)
class Said:
    """What a study recommends.

    Attributes:
        candidate_id: Its id; None where it has no answer.
        tied: Ids of what it cannot tell from it.
        apart: Ids of what it launched and tells apart.
        loss: How much slower it truly is than the best, relative.
        decision: The verdict.
    """

    candidate_id: str | None
    tied: frozenset[str]
    apart: frozenset[str]
    loss: float
    decision: str


def said(evidence: Evidence, truth: Truth) -> Said:
    """Return what a study recommends, beside what is true."""
    candidate, tied = evidence.recommended, frozenset(one.candidate_id for one in evidence.ties)
    launched = {record.candidate.candidate_id for record in evidence.line.every}
    best = max(1.0, truth.best_speedup)
    loss = math.nan if candidate is None else 1.0 - truth.speedup(candidate) / best
    known = None if candidate is None else candidate.candidate_id
    return Said(known, tied, frozenset(launched - tied - {known}), loss, evidence.verdict.overall.decision)


def agreement(one: Said, other: Said) -> Agreement:
    """Return how far two studies agree."""
    if one.candidate_id == other.candidate_id:
        return "same"
    named = one.candidate_id in other.tied or other.candidate_id in one.tied
    if one.candidate_id in other.apart or other.candidate_id in one.apart:
        return "half" if named else "apart"
    return "tie" if named else "unseen"


def summed(pairs: list[tuple[Said, Said]]) -> dict[str, Any]:
    """Return the shares of a row."""
    found = Counter(agreement(*pair) for pair in pairs)
    every = [one for pair in pairs for one in pair]
    names: tuple[Agreement, ...] = ("same", "tie", "half", "apart", "unseen")
    return {
        **{name: found[name] / len(pairs) for name in names},
        "loss": fmean(one.loss for one in every),
        "tied": fmean(len(one.tied) for one in every),
        "speculation": fmean(one.decision == "speculation" for one in every),
        "undecided": fmean(one.decision == "undecided" for one in every),
        "pairs": len(pairs),
    }


def within(space: SearchSpace, trials: int | None) -> SearchSpace:
    """Return a space with another budget of launches."""
    return space if trials is None else space.with_budget(space.budget.model_copy(update={"trials": trials}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--profile", nargs="+", action="extend", required=True, help="profile files or names")
    parser.add_argument("--space", type=Path, required=True, help="search space file")
    parser.add_argument("--pairs", type=int, required=True, help="pairs of studies per profile")
    parser.add_argument("--trials", type=int, help="launches of a study instead of the space's")
    parser.add_argument("--seed", type=int, default=0, help="of the first study")
    parser.add_argument("--json", type=Path, help="where to write the table")
    chosen = parser.parse_args()
    space = within(load_space(chosen.space), chosen.trials)
    rows = []
    print(f"{'profile':<22}{'pairs':>6}{'same':>8}{'tie':>8}{'half':>8}{'apart':>8}{'unseen':>8}{'loss':>8}{'tied':>7}"
          f"{'spec':>7}{'undec':>7}{'s each':>8}")  # fmt: skip
    for source in chosen.profile:
        laboratory = Laboratory(space, load_profile(source))
        truth = Truth(laboratory, setups_of(laboratory))
        began = time.process_time()
        seeds = range(chosen.seed, chosen.seed + 2 * chosen.pairs)
        found = [said(weigh(laboratory.study(seed), space), truth) for seed in seeds]
        row = summed(list(zip(found[::2], found[1::2], strict=True)))
        each = (time.process_time() - began) / len(seeds)
        print(f"{laboratory.profile.name:<22}{row['pairs']:>6}{row['same']:>8.1%}{row['tie']:>8.1%}{row['half']:>8.1%}"
              f"{row['apart']:>8.1%}{row['unseen']:>8.1%}{row['loss']:>8.2%}{row['tied']:>7.1f}{row['speculation']:>7.0%}"
              f"{row['undecided']:>7.0%}{each:>8.2f}", flush=True)  # fmt: skip
        rows.append({"profile": laboratory.profile.name, "true_speedup": truth.best_speedup, **row})
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"trials": space.budget.trials, "rows": rows}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
