"""How many launches a sampler needs, on machines whose best candidate is known.

python -m benchmarks.search_quality --profile llama-3.3-70b-nvlink --samplers guided tpe --seeds 5

Every sampler gets the same first launches, and every launch counts: baselines, failures and repeats. The score of a
search after n launches is the noiseless figure of the candidate the tool would take into its confirmation by then, as
geometric mean over the objectives, relative to the best candidate's, no speculation included: what measured best, and
with the guided sampler what it believes to be best. The hypervolume is that of the logarithms of the launched
candidates' noiseless objectives above 0.9 × the default baseline, relative to that of all candidates. Launches are
drawn, not played: truth × launch noise (1.5 %, one factor for all levels) × level noise (0.5 %), accepted drafts
counted over 4,000 cycles per level.

Samplers are compared on what they propose after the baseline; --whole-plan makes all launches of a study, which tunes
the baseline and repeats it to see drift. Searches go on where the stop rule holds. A stop is false where an untried
candidate is better, by more than the rule said none is, than what the study's answer recommends: the verdict after the
confirmation, in a study whose budget is twice the launches made by then. It is unconfirmed false where one is that much
better than what was believed best when the rule held, and outdone where one is than every launched candidate: there the
rule itself was wrong, whatever the confirmation chooses.

In the table, beside what --json has: searches, regions of the space that fail, and in how many searches a sampler gave
away less than TPE in the same world, averaged over the launches.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.worlds.profile_machine import ProfileMachine
from benchmarks.worlds.random_machine import RandomMachine
from benchmarks.worlds.searching import Search, search
from benchmarks.worlds.world import World
from spectune.engines.open import load_checked_space, open_engine
from spectune.engines.simulated.profile import Profile, load_profile, shipped_profiles
from spectune.errors import SpectuneError
from spectune.sampler_names import SAMPLERS, check_sampler
from spectune.search.guided.enumeration import legal_candidates

SPACE = Path(__file__).with_name("spaces") / "field.yaml"
MARKS = (10, 20, 40)
CHECKED = 20  # candidates of a profile that are resolved the whole way
GOALS = {"5pct": 0.05, "2pct": 0.02, "1pct": 0.01}
RANDOM = "random worlds"  # one row for all of them
Found = Mapping[tuple[str, str], Sequence[Search]]


def row(name: str, sampler: str, searches: Sequence[Search]) -> dict[str, Any]:
    """Return what is told of the searches of one sampler on one profile."""
    reached = {goal: [s.reached(share) for s in searches] for goal, share in GOALS.items()}
    return {
        "profile": name,
        "sampler": sampler,
        **{f"median_launches_to_{goal}": _median(found) for goal, found in reached.items()},
        "solved": sum(found is not None for found in reached["2pct"]),
        **{f"score_at_{n}": _mean([math.exp(_at(s.scores, n)) for s in searches]) for n in MARKS},
        **{f"hypervolume_at_{n}": _mean([_at(s.volumes, n) for s in searches]) for n in MARKS},
        "failed_launches": _mean([search.failed for search in searches]),
        "seconds_per_proposal": _mean([second for search in searches for second in search.seconds]),
        "stops": sum(s.stopped_after is not None for s in searches),
        "median_stop": _median([s.stopped_after for s in searches]),
        "false_stop_rate": _mean([float(s.false_stop) for s in searches if s.false_stop is not None]),
        "unconfirmed_false_stop_rate": _mean([float(s.unconfirmed) for s in searches if s.unconfirmed is not None]),
        "outdone_stop_rate": _mean([float(s.outdone) for s in searches if s.outdone is not None]),
    }


def beside(found: Found, name: str, sampler: str) -> dict[str, Any]:
    """Return what the table says beside the row."""
    own, tpe = found[name, sampler], found.get((name, "tpe"), ())
    less = sum(one.regret() < other.regret() for one, other in zip(own, tpe, strict=False))
    return {
        "searches": len(own),
        "regions": _mean([one.regions for one in own]),
        "> tpe": less if tpe and sampler != "tpe" else None,
    }


def _median(found: Sequence[int | None]) -> float | None:
    """Return the median, None where half of them or more never got there."""
    middle = statistics.median(math.inf if launches is None else launches for launches in found)
    return None if math.isinf(middle) else middle


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None


def _at(values: Sequence[float], launches: int) -> float:
    return values[min(launches, len(values)) - 1]


def worlds(options: argparse.Namespace) -> Iterator[tuple[str, World, Sequence[int]]]:
    """Yield every world with the name of the row it counts in, and the seeds of its searches."""
    space = load_checked_space(options.space)
    engine = open_engine(space)
    candidates = list(legal_candidates(space, engine))
    for source in options.profile:
        profile = sure(load_profile(source)) if options.sure else load_profile(source)
        machine = ProfileMachine(profile, space, engine)
        machine.check(random.Random(0).sample(candidates, min(CHECKED, len(candidates))))
        seeds = range(options.seed, options.seed + options.seeds)
        yield profile.name, World(machine, space, engine, candidates), seeds
    for number in range(options.first_world, options.first_world + options.random_worlds):
        yield RANDOM, World(RandomMachine(number, space), space, engine, candidates), [number]


def sure(profile: Profile) -> Profile:
    """Return a profile whose drafters all know which of their branches is the best."""
    table = profile.file.acceptance
    trees = {name: own.model_copy(update={"confidence": 1.0}) for name, own in table.trees.items()}
    table = table.model_copy(update={"confidence": 1.0, "trees": trees})
    return replace(profile, file=profile.file.model_copy(update={"acceptance": table}))


def searched(options: argparse.Namespace) -> Found:
    """Run all searches; progress goes to stderr."""
    for sampler in options.samplers:
        check_sampler(sampler)
    found: dict[tuple[str, str], list[Search]] = {}
    for name, world, seeds in worlds(options):
        for sampler in options.samplers:
            for seed in seeds:
                one = search(world, sampler, seed, options.budget, whole_plan=options.whole_plan)
                found.setdefault((name, sampler), []).append(one)
                told = f"{one.world} {sampler} seed {seed}: 2 % after {one.reached(0.02)}, {one.failed} failed"
                print(told, file=sys.stderr, flush=True)
                if options.searches is not None:
                    with options.searches.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(asdict(one)) + "\n")
    return found


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", nargs="+", action="extend", metavar="P", help="shipped profiles or files; all")
    parser.add_argument(
        "--sure", action="store_true", help="drafters rank their branches as they are, in every profile"
    )
    parser.add_argument("--space", default=str(SPACE), metavar="S", help="search space file")
    parser.add_argument("--seeds", type=_count, default=5, metavar="N", help="searches of each profile, 5 by default")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first of them, 0 by default")
    parser.add_argument("--budget", type=_count, default=40, metavar="B", help="launches of each search, 40 by default")
    parser.add_argument("--samplers", nargs="+", action="extend", choices=SAMPLERS, help="guided and tpe by default")
    parser.add_argument("--random-worlds", type=_count, default=0, metavar="N", help="machines drawn at random")
    parser.add_argument("--first-world", type=int, default=0, metavar="N", help="number of the first of them, 0")
    parser.add_argument("--whole-plan", action="store_true", help="make all launches of a study")
    parser.add_argument("--searches", type=Path, metavar="FILE", help="append a line of JSON per search to it")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    options = parser.parse_args(arguments)
    options.samplers = list(dict.fromkeys(options.samplers or ["guided", "tpe"]))
    if options.profile is None:
        options.profile = [] if options.random_worlds else list(shipped_profiles())
    return options


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return number


def main() -> int:
    """Print the table, or the rows as JSON."""
    options = parsed()
    try:
        found = searched(options)
    except SpectuneError as error:
        print(error, file=sys.stderr)
        return 2
    rows = [row(*key, searches) for key, searches in found.items()]
    if options.json:
        print(json.dumps(rows, indent=1, allow_nan=False))
        return 0
    table = [{**line, **beside(found, *key)} for key, line in zip(found, rows, strict=True)]
    columns = list(table[0])[2:]
    print(f"{'profile':32}{'sampler':9}" + "".join(f"{_short(column):>12}" for column in columns))
    for line in table:
        cells = "".join(f"{'–' if line[c] is None else format(line[c], '.4g'):>12}" for c in columns)
        print(f"{line['profile']:32}{line['sampler']:9}{cells}")
    return 0


def _short(column: str) -> str:
    words = {
        "median_launches_to_": "to ",
        "hypervolume_at_": "hv ",
        "score_at_": "score ",
        "failed_launches": "failed",
        "seconds_per_proposal": "s/prop",
        "median_stop": "stop at",
        "unconfirmed_false_stop_rate": "unconfirmed",
        "false_stop_rate": "false stop",
        "outdone_stop_rate": "outdone",
    }
    for long, short in words.items():
        column = column.replace(long, short)
    return column


if __name__ == "__main__":
    sys.exit(main())
