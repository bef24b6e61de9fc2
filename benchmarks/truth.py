"""What is true on a profile: every legal candidate's speed by the cost model, without noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from benchmarks.virtual_study import Laboratory
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.prediction import predict
from spectune.engines.simulated.setup import Setup
from spectune.engines.simulated.start import open_launch
from spectune.search.guided.enumeration import legal_candidates
from spectune.space import Candidate

PROMPTS_READ = 96


class Truth:
    """The true figures of a space on a profile, by the cost model."""

    def __init__(self, laboratory: Laboratory, setups: Mapping[Candidate, Setup]) -> None:
        """Ask about every legal candidate.

        Args:
            laboratory: The space and the profile.
            setups: The candidates, resolved.
        """
        space, self._laboratory = laboratory.space, laboratory
        for objective in space.objectives:
            assert objective.metric in {"decode_speed", "output_throughput"}, "the cost model knows speeds only"
        prompts = laboratory.feed().ahead(PROMPTS_READ)
        mean = sum(len(prompt.input_ids) for prompt in prompts) / len(prompts)
        self._prompt_tokens = round(mean)
        self._tokens = round(mean + space.workload.output_tokens / 2)
        self._classes = Counter(prompt.prompt.prompt_class for prompt in prompts)
        scores = {candidate: self._score(setup) for candidate, setup in setups.items()}
        self.baseline = max(score for candidate, score in scores.items() if not candidate.speculative)
        self.best_speedup = math.exp(max(s for c, s in scores.items() if c.speculative) - self.baseline)
        self._scores = scores

    def speedup(self, candidate: Candidate) -> float:
        """Return a candidate's speed over that of the best baseline."""
        if candidate not in self._scores:  # the sampler may repair an assignment into one the file does not list
            self._scores[candidate] = self._score(_setup(self._laboratory.engine, candidate))
        return math.exp(self._scores[candidate] - self.baseline)

    def _score(self, setup: Setup) -> float:
        """Return the mean ln of the objectives; −inf for a launch that fails."""
        launch = SimulatedLaunch(self._laboratory.profile, setup)
        if launch.plan.first_decisive is not None:
            return -math.inf
        objectives = self._laboratory.space.objectives
        speeds = [self._speed(launch, one.metric, self._concurrency(one.level)) for one in objectives]
        return math.fsum(map(math.log, speeds)) / len(speeds)

    def _speed(self, launch: SimulatedLaunch, metric: str, concurrency: int) -> float:
        """Return the speed over the mix of prompt classes: equally many answers of each, so times are what adds up.

        The prediction is of decoding alone. In a closed loop every request also stands still while the prompts of the
        others in flight are prefilled, once in every answer; and whoever counts all tokens of all requests counts its
        own prefill, and a last cycle of which not every token is asked for.
        """
        tokens, decode_s, answer_s, running = self._laboratory.space.workload.output_tokens, 0.0, 0.0, 1
        for name, count in self._classes.items():
            found, share = predict(launch, concurrency, self._tokens, name), count / self._classes.total()
            running = found.running
            decode_s += share * tokens / found.decode_speed
            answer_s += share * (tokens - 1 + self._excess(launch, name)) / found.decode_speed
        prefill_s = launch.prefill_ms(self._prompt_tokens) / 1000
        if metric == "output_throughput":
            return running * tokens / (answer_s + running * prefill_s)
        return tokens / (decode_s + (running - 1) * prefill_s)

    def _excess(self, launch: SimulatedLaunch, prompt_class: str) -> float:
        """Return the mean tokens of the last cycle that are not asked for.

        (E[X²]/E[X] − 1) / 2, X being the tokens of a cycle: the mean excess of a renewal process (Feller II, section
        XI.4).
        """
        survivals = launch.survivals(prompt_class, self._tokens)
        first = 1.0 + sum(survivals)
        second = 1.0 + sum((2 * depth + 1) * survival for depth, survival in enumerate(survivals, start=1))
        return (second / first - 1.0) / 2.0

    def _concurrency(self, name: str) -> int:
        level = next(level for level in self._laboratory.space.workload.levels if level.name == name)
        assert level.concurrency is not None, "virtual time serves closed loops"
        return level.concurrency


def setups_of(laboratory: Laboratory) -> dict[Candidate, Setup]:
    """Resolve every legal candidate of the laboratory's space; a profile's noise and acceptance do not matter to it."""
    engine = laboratory.engine
    return {candidate: _setup(engine, candidate) for candidate in legal_candidates(laboratory.space, engine)}


def _setup(engine: SimulatedEngine, candidate: Candidate) -> Setup:
    command = engine.command(candidate, host="127.0.0.1", port=30000)
    return open_launch(engine.profile, command.argv, command.environment({}))[1].setup
