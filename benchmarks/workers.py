"""What a second machine brings: `python -m benchmarks.workers [--seeds 10] [--json F]`.

Whole studies in virtual time, on a clock of events: every place makes the launch that the plan asks it for, as long as
the machine of the profile would take, while the others go on. The same study is made by one place, by two that are
alike, and by two of which the second is 10 % slower as a whole. Searches go on where the stop rule holds, so that all
of them make as many launches; a confirmation may still settle early, and so walls are compared by the launch too.

- ratio: wall time over that of one place;
- by launch: the same, of the wall time over the number of launches;
- score: true speed of what the study recommends over that of the best configuration there is;
- found: true speed of the finalist with speculation over that of the best with speculation, whatever is recommended;
- wrong: recommends speculation although it is truly below 0.99 × the best configuration without, or says
  no_speculation although the best speculation is truly 1.05 × or more;
- coverage: share of the 95 % intervals of the confirmed speedup that hold the true speedup of the same candidate.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import math
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.truth import Truth, setups_of
from benchmarks.verdicts import found
from benchmarks.virtual_study import Laboratory, Silent
from benchmarks.worlds.searching import Unstopped
from spectune.bench.prompt_stream import PromptStream
from spectune.engines.protocol import Occasion
from spectune.engines.simulated.profile import Profile, load_profile
from spectune.engines.simulated.profile_schema import Jump
from spectune.search import Step, Stop, TrialRecord, weigh
from spectune.search.launch.canary import SAMPLED, Canaries
from spectune.search.launch.canary import SEED as CANARY_SEED
from spectune.search.launch.dominated import may_end
from spectune.search.launch.trial import Trial
from spectune.search.planning.budget import spent_s
from spectune.search.planning.plan import next_step
from spectune.space import load_space

HERE = Path(__file__).parent
CREWS = {"one": (1.0,), "two": (1.0, 1.0), "two, 2nd 10 % slower": (1.0, 0.9)}
"""Speed of each place."""


class Place:
    """A machine that makes one launch after the other."""

    def __init__(self, name: str, laboratory: Laboratory, seed: int, speed: float) -> None:
        """Set it up.

        Args:
            name: As records carry it.
            laboratory: What is launched.
            seed: Of the noise.
            speed: Of the machine as a whole, over that of the profile.
        """
        file = laboratory.profile.file
        jumps = [*file.noise.jumps, *([Jump(at_hour=0, cycle=1.0 / speed)] if speed != 1.0 else [])]
        changed = file.model_copy(update={"seed": seed, "noise": file.noise.model_copy(update={"jumps": jumps})})
        self.name, self.engine = name, dataclasses.replace(
            laboratory.engine, profile=Profile(laboratory.profile.path, changed)
        )  # fmt: skip
        self._space, self._feed = laboratory.space, laboratory.feed()
        asked = PromptStream(self._feed.workload, seed=CANARY_SEED).take(SAMPLED)
        chat = self._space.workload.chat_template
        self._canaries = Canaries(asked, self.engine, self.engine.renderer(), chat_template=chat)

    def launch(self, step: Step, records: Sequence[TrialRecord], folder: Path) -> TrialRecord:
        """Make a launch on the place's own clock, knowing what is finished."""
        own = [record for record in records if record.place == self.name]
        occasion = Occasion(step.trial, spent_s(own) / 3600, folder)
        trial = Trial(
            step, None, self._space, self.engine, self._feed, self._canaries, Silent(), occasion,
            may_end(step, self._space, records),
        )  # fmt: skip
        return asyncio.run(trial.run())


def study(laboratory: Laboratory, seed: int, speeds: Sequence[float]) -> tuple[list[TrialRecord], float]:
    """Make one study in as many places as there are speeds; returns its launches and its wall time in seconds."""
    places = [Place(f"m{n}", laboratory, seed, speed) for n, speed in enumerate(speeds)]
    proposer = Unstopped(laboratory.space, places[0].engine, seed=seed)
    records: list[TrialRecord] = []
    busy: dict[str, tuple[float, Step, TrialRecord]] = {}
    now = 0.0
    with tempfile.TemporaryDirectory() as folder:
        while True:
            for place in places:
                if place.name in busy:
                    continue
                others = [step for _, step, _ in busy.values()]
                step = next_step(records, [], laboratory.space, proposer, running=others, place=place.name)
                if isinstance(step, Step):
                    record = place.launch(step, records, Path(folder))
                    busy[place.name] = now + record.seconds.total, step, record
            if not busy:
                assert isinstance(step, Stop), "all places wait for each other"
                return records, now
            name = min(busy, key=lambda place: busy[place][0])
            now, _, record = busy.pop(name)
            records = sorted([*records, record], key=lambda one: one.trial)


@dataclass(frozen=True)
class Row:
    """One study.

    Attributes:
        seed: Of its noise and of its sampler.
        crew: Who made it.
        launches: How many.
        wall_s: How long it took.
        ratio: Of that to the time of one place.
        by_launch: Of the time of a launch to that of one place.
        score: True speed of what it recommends over that of the best configuration there is.
        found: True speed of its best speculation over that of the best one there is.
        decision: Its verdict.
        wrong: Whether the verdict is false, or misses a winner.
        covered: Whether the interval of the confirmed speedup holds the true one; None without a confirmation.
    """

    seed: int
    crew: str
    launches: int
    wall_s: float
    ratio: float
    by_launch: float
    score: float
    found: float
    decision: str
    wrong: bool
    covered: bool | None


def rows(laboratory: Laboratory, truth: Truth, seed: int) -> list[Row]:
    """Make the study of a seed with every crew."""
    made: list[Row] = []
    first: tuple[float, int] | None = None
    for crew, speeds in CREWS.items():
        records, wall_s = study(laboratory, seed, speeds)
        first = first or (wall_s, len(records))
        evidence = weigh(records, laboratory.space)
        recommended, best = evidence.recommended, evidence.verdict.overall.best
        score = 0.0 if recommended is None else truth.speedup(recommended) / max(1.0, truth.best_speedup)
        finalists = [r.candidate for r in records if best is not None and r.candidate.candidate_id == best.candidate_id]
        reached = truth.speedup(finalists[0]) / truth.best_speedup if finalists else 0.0
        said = found(records, laboratory.space, truth)
        ratio = wall_s / first[0]
        made.append(
            Row(
                seed, crew, len(records), wall_s, ratio, ratio * first[1] / len(records), score, reached, said.decision,
                said.false or said.missed, said.covered,
            )
        )  # fmt: skip
    return made


def summed(crew: str, made: Sequence[Row]) -> dict[str, Any]:
    """Return the figures of one crew over all seeds, the score beside that of one place."""
    own, one = ([row for row in made if row.crew == name] for name in (crew, next(iter(CREWS))))
    lost = [theirs.score - row.score for row, theirs in zip(own, one, strict=True)]
    covered = [row.covered for row in own if row.covered is not None]
    error = statistics.stdev(lost) / math.sqrt(len(lost)) if len(lost) > 1 else 0.0
    return {
        "crew": crew,
        "launches": statistics.fmean(row.launches for row in own),
        "ratio": statistics.fmean(row.ratio for row in own),
        "by_launch": statistics.fmean(row.by_launch for row in own),
        "score": statistics.fmean(row.score for row in own),
        "found": statistics.fmean(row.found for row in own),
        "score_lost": statistics.fmean(lost),
        "score_lost_error": error,
        "wrong": sum(row.wrong for row in own),
        "coverage": statistics.fmean(covered) if covered else None,
        "decisions": Counter(row.decision for row in own),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="studies of each crew, 10 by default")
    parser.add_argument("--profile", nargs="+", default=[str(HERE / "profiles" / "quiet-105.yaml")], help="machines")
    parser.add_argument("--space", type=Path, default=HERE / "trust_space.yaml", help="search space file")
    parser.add_argument("--json", type=Path, help="where to write the table")
    chosen = parser.parse_args()
    space, told = load_space(chosen.space), []
    for source in chosen.profile:
        laboratory = Laboratory(space, load_profile(source))
        truth = Truth(laboratory, setups_of(laboratory))
        print(f"{laboratory.profile.name}: the best speculation is {truth.best_speedup:.3f} × the best without")
        print(f"{'seed':<5}{'crew':<22}{'launches':>9}{'ratio':>7}{'by launch':>10}{'score':>8}{'found':>8}  decision")
        made: list[Row] = []
        for seed in range(chosen.seeds):
            for row in rows(laboratory, truth, seed):
                print(f"{row.seed:<5}{row.crew:<22}{row.launches:>9}{row.ratio:>7.3f}{row.by_launch:>10.3f}"
                      f"{row.score:>8.4f}{row.found:>8.4f}  {row.decision}", flush=True)  # fmt: skip
                made.append(row)
        sums = [summed(crew, made) for crew in CREWS]
        for mean in sums:
            said = ", ".join(f"{name} {n}" for name, n in mean["decisions"].items())
            print(
                f"mean {mean['crew']:<22}{mean['launches']:>9.1f}{mean['ratio']:>7.3f}{mean['by_launch']:>10.3f}"
                f"{mean['score']:>8.4f}{mean['found']:>8.4f}  score lost {mean['score_lost']:.4f} ± "
                f"{mean['score_lost_error']:.4f}; wrong {mean['wrong']}; coverage {mean['coverage'] or 0:.0%}; {said}"
            )
        told.append({"profile": laboratory.profile.name, "sums": sums, "rows": list(map(dataclasses.asdict, made))})
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
