"""How many launches a sampler needs, on machines whose best candidate is known.

python -m benchmarks.search_quality --profile llama-3.3-70b-nvlink --samplers guided tpe --seeds 5

Every sampler gets the same first launches. The score of a search after n launches is the noiseless figure of the
candidate the tool would take into its confirmation by then, as geometric mean over the objectives, relative to the best
candidate's, no speculation included: what measured best, and with the guided sampler what it believes to be best. The
hypervolume is that of the logarithms of the launched candidates' noiseless objectives above 0.9 × the default baseline,
relative to that of all candidates. Launches are drawn, not played: truth × launch noise (1.5 %, one factor for all
levels) × level noise (0.5 %), accepted drafts counted over 4,000 cycles per level. Failed launches count as launches. A
false stop is the guided stop rule holding while some candidate is better than the recommended one by more than 1 %. A
search is better than TPE's in the same world when it gives away less, averaged over its launches.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worlds.front import hypervolume
from benchmarks.worlds.profile_machine import ProfileMachine
from benchmarks.worlds.random_machine import RandomMachine
from benchmarks.worlds.world import Machine, World
from spectune.engines.open import load_checked_space, open_engine
from spectune.engines.protocol import Engine
from spectune.engines.simulated.profile import load_profile, shipped_profiles
from spectune.errors import SpectuneError
from spectune.search.proposals import Proposer
from spectune.search.ranking import incumbent
from spectune.search.records import Role, TrialRecord
from spectune.search.samplers import SAMPLERS, check_sampler
from spectune.space import Candidate, SearchSpace

SPACE = Path(__file__).with_name("spaces") / "field.yaml"
MARKS = (10, 20, 40)
CHECKED = 20  # candidates of a profile that are resolved the whole way
GOALS = {"5pct": 0.05, "2pct": 0.02, "1pct": 0.01}
FLOOR = 0.9  # of the default baseline, below which no hypervolume is counted
MARGIN = math.log1p(0.01)


@dataclass
class Search:
    """One run of one sampler in one world; every list has an entry per launch."""

    scores: list[float] = field(default_factory=list)
    volumes: list[float] = field(default_factory=list)
    failed: int = 0
    regions: int = 0
    seconds: list[float] = field(default_factory=list)
    false_stop: bool | None = None

    def regret(self) -> float:
        """Return what was given away on average over all launches, as a share of the best."""
        return statistics.fmean(1.0 - math.exp(value) for value in self.scores)

    def reached(self, share: float) -> int | None:
        """Return the launches after which the recommendation was within a share of the best for the first time."""
        return next((n for n, value in enumerate(self.scores, start=1) if value >= math.log1p(-share)), None)


def run(world: World, sampler: str, seed: int, budget: int) -> Search:
    """Search a world."""
    proposer = Proposer(world.space, world.engine, sampler=sampler, seed=seed)
    baseline = proposer.baseline()
    floor = np.array(world.logs[baseline.items]) + math.log(FLOOR)
    whole = hypervolume([np.array(logs) - floor for logs in world.logs.values() if logs is not None])
    search = Search(regions=world.machine.failure_regions)
    records: list[TrialRecord] = []
    points: list[Any] = []
    step: tuple[Role, Candidate, str] | None = (Role.BASELINE, baseline, "the baseline")
    while step is not None:
        record = world.launch(len(records), *step, seed)
        records.append(record)
        logs = world.logs[record.candidate.items]
        if logs is None:
            search.failed += 1
        else:
            points.append(np.array(logs) - floor)
        search.scores.append(recommended_score(world, records, proposer))
        search.volumes.append(hypervolume(points) / whole if whole else 1.0)
        if len(records) == budget:
            break
        began = time.process_time()
        if search.false_stop is None:
            outlook = proposer.outlook(records)
            if outlook is not None and outlook.enough:
                search.false_stop = search.scores[-1] < -MARGIN
        proposal = proposer.propose(records)
        search.seconds.append(time.process_time() - began)
        step = None if proposal is None else (Role.SEARCH, proposal.candidate, proposal.why)
    return search


def recommended_score(world: World, records: Sequence[TrialRecord], proposer: Proposer) -> float:
    """Return the noiseless score of what the tool would take into its confirmation; −∞ when nothing was measured."""
    found = incumbent(records, world.space, proposer.standing)
    return -math.inf if found is None else world.score(found)


def row(name: str, sampler: str, searches: Sequence[Search]) -> dict[str, Any]:
    """Return what the issue wants to see of some searches."""
    reached = {goal: [s.reached(share) for s in searches] for goal, share in GOALS.items()}
    stops = [search.false_stop for search in searches if search.false_stop is not None]
    return {
        "profile": name,
        "sampler": sampler,
        **{f"median_launches_to_{goal}": _median(found) for goal, found in reached.items()},
        "solved": sum(found is not None for found in reached["2pct"]),
        "searches": len(searches),
        **{f"score_at_{n}": _mean([math.exp(_at(s.scores, n)) for s in searches]) for n in MARKS},
        **{f"hypervolume_at_{n}": _mean([_at(s.volumes, n) for s in searches]) for n in MARKS},
        "failed_launches": _mean([search.failed for search in searches]),
        "failure_regions": _mean([search.regions for search in searches]),
        "seconds_per_proposal": _mean([second for search in searches for second in search.seconds]),
        "stopped": len(stops),
        "false_stop_rate": _mean([float(stop) for stop in stops]) if stops else None,
    }


def _median(found: Sequence[int | None]) -> float | None:
    """Return the median, null where half of them or more never got there."""
    middle = statistics.median(math.inf if launches is None else launches for launches in found)
    return None if math.isinf(middle) else middle


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 4) if values else math.nan


def _at(values: Sequence[float], launches: int) -> float:
    return values[min(launches, len(values)) - 1]


def machines(options: argparse.Namespace, space: SearchSpace, engine: Engine) -> Iterator[tuple[str, Machine]]:
    """Yield every machine with the name of the row it counts in."""
    for source in options.profile:
        profile = load_profile(source)
        yield profile.name, ProfileMachine(profile, space, engine)
    for number in range(options.random_worlds):
        yield "random worlds", RandomMachine(number, space)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", nargs="+", action="extend", metavar="P", help="shipped profiles or files; all")
    parser.add_argument("--space", default=str(SPACE), metavar="S", help="search space file")
    parser.add_argument(
        "--seeds", type=int, default=5, metavar="N", help="searches of each profile; random worlds: one"
    )
    parser.add_argument("--budget", type=int, default=40, metavar="B", help="launches of each search")
    parser.add_argument("--samplers", nargs="+", action="extend", choices=SAMPLERS, help="guided and tpe by default")
    parser.add_argument("--random-worlds", type=int, default=0, metavar="N", help="machines drawn at random")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args(arguments)
    options.samplers = options.samplers or ["guided", "tpe"]
    if options.profile is None:
        options.profile = [] if options.random_worlds else list(shipped_profiles())
    return options


def measured_rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run all searches; progress goes to stderr."""
    for sampler in options.samplers:
        check_sampler(sampler)
    space = load_checked_space(options.space)
    engine = open_engine(space)
    found: dict[tuple[str, str], list[Search]] = {}
    for name, machine in machines(options, space, engine):
        world = World(machine, space, engine)
        if isinstance(machine, ProfileMachine):
            machine.check(map(Candidate, random.Random(0).sample(list(world.logs), min(CHECKED, len(world.logs)))))
        seeds = options.seeds if name != "random worlds" else 1
        for sampler in options.samplers:
            for seed in range(seeds):
                search = run(world, sampler, seed, options.budget)
                found.setdefault((name, sampler), []).append(search)
                print(f"{machine.name} {sampler} seed {seed}: 2 % after {search.reached(0.02)}, "
                      f"{search.failed} failed", file=sys.stderr, flush=True)  # fmt: skip
    rows = []
    for (name, sampler), searches in found.items():
        against = found.get((name, "tpe"), []) if sampler != "tpe" else []
        better = sum(own.regret() < other.regret() for own, other in zip(searches, against, strict=False))
        rows.append({**row(name, sampler, searches), "better_than_tpe": better if against else None})
    return rows


def main() -> int:
    options = parsed()
    try:
        rows = measured_rows(options)
    except SpectuneError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    columns = [key for key in rows[0] if key not in {"profile", "sampler"}]
    print(f"{'profile':32}{'sampler':9}" + "".join(f"{_short(column):>11}" for column in columns))
    for found in rows:
        cells = "".join(f"{'–' if found[c] is None else format(found[c], '.4g'):>11}" for c in columns)
        print(f"{found['profile']:32}{found['sampler']:9}{cells}")
    return 0


def _short(column: str) -> str:
    words = {
        "median_launches_to_": "to ",
        "hypervolume_at_": "hv ",
        "score_at_": "score ",
        "failed_launches": "failed",
        "failure_regions": "regions",
        "seconds_per_proposal": "s/prop",
        "false_stop_rate": "false stop",
        "better_than_tpe": "> tpe",
    }
    for long, short in words.items():
        column = column.replace(long, short)
    return column


if __name__ == "__main__":
    sys.exit(main())
