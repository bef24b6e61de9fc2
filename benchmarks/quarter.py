"""Is the recommendation as good as that of launching everything? `python -m benchmarks.quarter --studies FOLDER`.

Searches a space with a quarter of the launches that all its candidates need, then launches all of them, in an order
drawn at random, on the engine the space names. Both are judged by the launches of everything: what the recommended
candidate reached there, against the best one, with a 95 % interval from the noise between launches of what was launched
twice. The best of many launches is partly luck, so the comparison is not in favour of the search. Where the noise is so
large that the interval says nothing, as on a busy machine, `within_noise` is null. Started again, it goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from spectune.analysis.launch_noise import launch_noise, within_launch_variance
from spectune.bench.prompt_stream import PromptStream
from spectune.cli.live import Lines
from spectune.engines.open import load_checked_space, open_engine
from spectune.engines.protocol import Engine, Occasion
from spectune.errors import SpectuneError
from spectune.search import Proposer, Role, Step, StudyFolder, TrialRecord, open_prompts, open_study, run_study
from spectune.search.evidence.ranking import incumbent
from spectune.search.evidence.speeds import by_candidate, together
from spectune.search.launch.canary import SAMPLED, Canaries
from spectune.search.launch.canary import SEED as CANARY_SEED
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.trial import Trial
from spectune.search.planning.budget import spent_s
from spectune.space import Budget, Candidate, SearchSpace

SPACE = Path(__file__).with_name("spaces") / "quickstart_part.yaml"
SHARE = 4
NORMAL_95 = 1.96
WIDEST = 0.1  # half-width of the interval, beyond which it says nothing


@dataclass(frozen=True)
class Laboratory:
    """Where both are launched."""

    space: SearchSpace
    engine: Engine
    watcher: Lines

    async def everything(self, folder: StudyFolder, seed: int) -> list[TrialRecord]:
        """Launch every legal candidate once, the baseline first, the others in a drawn order; finished ones stay."""
        open_study(folder, self.space, self.engine)
        proposer = Proposer(self.space, self.engine)
        others = [candidate for candidate in proposer.all() if candidate != proposer.baseline()]
        random.Random(seed).shuffle(others)
        records, section = folder.records(), self.space.workload
        workload, renderer = open_prompts(self.space), self.engine.renderer()
        asked = PromptStream(workload, seed=CANARY_SEED).take(SAMPLED)
        canaries = Canaries(asked, self.engine, renderer, chat_template=section.chat_template, temperature=0.0)
        start = max((record.prompts_end for record in records), default=0)
        feed = PromptFeed(
            workload, renderer, chat_template=section.chat_template, output_tokens=section.output_tokens, start=start
        )
        try:
            for number, candidate in itertools.islice(enumerate([proposer.baseline(), *others]), len(records), None):
                role = Role.SEARCH if number else Role.BASELINE
                step = Step(number, role, candidate, "one of all")
                self.watcher.launching(step)
                occasion = Occasion(number, spent_s(records) / 3600, folder.root)
                trial = Trial(
                    step, folder.open_trial(step), self.space, self.engine, feed, canaries, self.watcher, occasion
                )
                record = await trial.run()
                folder.write_result(record)
                records.append(record)
                self.watcher.finished(record)
        finally:
            renderer.close()
        return records

    async def quarter(self, folder: StudyFolder, launches: int) -> tuple[Sequence[TrialRecord], Candidate | None]:
        """Search with so many launches; returns them and what is recommended."""
        space = self.space.with_budget(Budget(trials=launches))
        open_study(folder, space, self.engine)
        ended = await run_study(folder, space, self.engine, self.watcher)
        return ended.records, incumbent(ended.records, space, Proposer(space, self.engine).standing)


def compared(
    everything: Sequence[TrialRecord], few: Sequence[TrialRecord], recommended: Candidate, space: SearchSpace
) -> dict[str, Any]:
    """Return how the recommended candidate does among all, by the objectives' geometric mean."""
    speed = together(space)
    known = {record.candidate: found for record in everything if (found := speed(record)) is not None}
    best = max(known, key=lambda candidate: known[candidate].est)
    repeats = by_candidate([*everything, *few]).values()
    noise = launch_noise([found for record in group if (found := speed(record)) is not None] for group in repeats)
    ratio = known[recommended].est / known[best].est
    within = [within_launch_variance(known[candidate]) for candidate in (recommended, best)]
    half = 0.0 if recommended == best else NORMAL_95 * math.sqrt(2.0 * noise.relative_sd**2 + sum(within))
    return {
        "launches_of_everything": len(everything),
        "launches_of_the_search": len(few),
        "best": best.label,
        "recommended": recommended.label,
        "rank": 1 + sum(found.est > known[recommended].est for found in known.values()),
        "ratio": round(ratio, 4),
        "interval": [round(ratio * math.exp(-half), 4), round(ratio * math.exp(half), 4)],
        "launch_noise": round(noise.relative_sd, 4),
        "within_noise": ratio * math.exp(half) >= 1.0 if half <= WIDEST else None,
    }


async def both(options: argparse.Namespace) -> dict[str, Any]:
    """Run the search, then everything, and compare."""
    space = load_checked_space(options.space)
    laboratory = Laboratory(space, open_engine(space), Lines(space, Console(stderr=True)))
    count = sum(1 for _ in Proposer(space, laboratory.engine).all())
    few, recommended = await laboratory.quarter(StudyFolder(options.studies / "quarter"), max(2, count // SHARE))
    if recommended is None:
        raise SpectuneError("no launch of the search was measured")
    everything = await laboratory.everything(StudyFolder(options.studies / "everything"), options.seed)
    return compared(everything, few, recommended, space)


def main() -> int:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=Path, required=True, metavar="FOLDER", help="where both studies are kept")
    parser.add_argument("--space", default=str(SPACE), help="search space file")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which everything is launched")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        found = asyncio.run(both(options))
    except SpectuneError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1) if options.json else "\n".join(f"{key:24}{found[key]}" for key in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
