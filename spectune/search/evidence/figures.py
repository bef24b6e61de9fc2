"""A candidate's figures at a level, over all launches that count: what the summary, the report and `breakeven` show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from spectune.analysis.break_even import break_even_from_speedup
from spectune.analysis.comparison import Comparison, Pays, mean_speed
from spectune.analysis.estimate import Estimate, ratio
from spectune.analysis.measurement import LevelMeasurement
from spectune.analysis.strata import Stratum
from spectune.search.evidence.noise import noise_of
from spectune.search.evidence.outcome import Evidence, comparisons
from spectune.search.evidence.speeds import by_candidate, of_level, of_throughput, speeds, system_values
from spectune.search.storage.records import TrialRecord
from spectune.space import Candidate, SearchSpace
from spectune.space.metrics import PERCENTILES


@dataclass(frozen=True)
class Figures:
    """Means over launches that fit together exactly.

    Speeds are geometric means, as the speedup is; cycle = accept length / speed and break-even = accept length /
    speedup follow, so that baseline speed × cycle is the break-even, and accept length > break-even is speedup > 1,
    for the ends of the intervals too. Intervals of speeds and cycles hold what launches of one configuration differ by.

    Attributes:
        accept_length: Mean tokens per verify.
        decode_speed: Tok/s one request sees.
        output_throughput: Tok/s of all requests.
        cycle_ms: The whole cycle.
        same_mode_ratio: Decode speed over that of a baseline with the same system settings; None without one.
        speedup: Over the best baseline, for the candidates it was picked from; None without a comparison.
        verdict: By that interval.
    """

    accept_length: Estimate
    decode_speed: Estimate
    output_throughput: Estimate
    cycle_ms: Estimate
    same_mode_ratio: float | None
    speedup: Estimate | None
    verdict: Pays | None

    @property
    def break_even(self) -> Estimate | None:
        """Accept length at which it would be as fast as the best baseline; its interval is that of the speedup."""
        return None if self.speedup is None else break_even_of(self.accept_length, self.speedup)

    @property
    def baseline_speed(self) -> float | None:
        """The best baseline's decode speed."""
        return None if self.speedup is None else self.decode_speed.est / self.speedup.est

    def to_json(self) -> dict[str, Any]:
        """The figures of a row of `summary.json`."""
        estimates = ("accept_length", "decode_speed", "output_throughput", "cycle_ms", "speedup", "break_even")
        found = {name: getattr(self, name) for name in estimates}
        return {name: None if value is None else value.to_json() for name, value in found.items()} | {
            "same_mode_ratio": self.same_mode_ratio, "baseline_speed": self.baseline_speed, "verdict": self.verdict,
        }  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """One candidate at one level.

    Attributes:
        candidate: The candidate.
        launches: Its launches that count.
        level: Name of the load point.
        levels: What the launches measured there.
        comparison: With the best baseline; None for baselines and without one.
        figures: What follows.
    """

    candidate: Candidate
    launches: Sequence[TrialRecord]
    level: str
    levels: Sequence[LevelMeasurement]
    comparison: Comparison | None
    figures: Figures

    def percentiles(self) -> dict[str, float]:
        """Return the percentiles of waiting, means over the launches, in ms."""
        return {name: fmean(getattr(level, name) for level in self.levels) for name in sorted(PERCENTILES)}

    def of_classes(self) -> Mapping[str, Estimate]:
        """Return the accept length of each prompt class; nothing for a baseline."""
        return _means(level.accept_length_by_class for level in self.levels) if self.candidate.speculative else {}

    def strata(self) -> list[Stratum]:
        """Return every kind of request: classes by name, then context lengths, shortest first; none for a baseline.

        A kind that is the only one of its sort is all requests, of which the figures tell more.
        """
        even, compared = self.figures.break_even, self.comparison
        if even is None or compared is None:
            return []
        classes, contexts = self.of_classes(), _means(level.accept_length_by_context for level in self.levels)
        of_class, of_context = Counter[str](), Counter[str]()
        for level in self.levels:
            of_class.update(level.requests_by_class)
            of_context.update(level.requests_by_context)
        found = [
            *(
                Stratum("class", name, self.level, of_class[name], length, even, compared.unproven)
                for name, length in classes.items()
            ),
            *(
                Stratum("context", name, self.level, of_context[name], contexts[name], even, compared.unproven)
                for name in sorted(contexts, key=lambda name: int(name.partition("-")[0]))
            ),
        ]
        sorts = Counter(stratum.kind for stratum in found)
        return [stratum for stratum in found if sorts[stratum.kind] > 1]


def measured(evidence: Evidence, space: SearchSpace) -> Iterator[Measured]:
    """Yield every candidate at every level it was measured at."""
    compared = {(c.candidate_id, c.level): c for c in comparisons(evidence.by_level)}
    groups = by_candidate(evidence.records)
    told = {
        name: [(speed, noise_of(evidence.line.launches, speed)) for speed in (of_level(name), of_throughput(name))]
        for name in space.workload.level_names
    }
    for candidate, launches in groups.items():
        twin = next((g for c, g in groups.items() if not c.speculative and _same_mode(c, candidate)), [])
        for name in space.workload.level_names:
            levels = [level for record in launches if (level := record.level(name)) is not None]
            if not levels:
                continue
            same_mode = [level for record in twin if (level := record.level(name)) is not None]
            speed, throughput = (
                mean_speed(speeds(launches, figure, name, space), noise) for figure, noise in told[name]
            )
            length = mean([level.accept_length for level in levels])
            comparison = compared.get((candidate.candidate_id, name))
            figures = Figures(
                accept_length=length,
                decode_speed=speed,
                output_throughput=throughput,
                cycle_ms=ratio(length, speed).scaled(1000.0),
                same_mode_ratio=speed.est / _geometric_mean(same_mode) if same_mode and candidate.speculative else None,
                speedup=None if comparison is None else comparison.judged,
                verdict=None if comparison is None else comparison.verdict,
            )
            yield Measured(candidate, launches, name, levels, comparison, figures)


def break_even_of(accept_length: Estimate, speedup: Estimate) -> Estimate:
    """Return accept length / speedup with the interval of the speedup, at the accept length that was measured.

    The speedup's interval holds all that is uncertain of the baseline and of the cycle; taking that of the accept
    length again would count it twice.
    """
    length = accept_length.est
    low = 0.0 if math.isinf(speedup.hi) else break_even_from_speedup(length, speedup.hi)
    high = break_even_from_speedup(length, speedup.lo) if speedup.lo > 0.0 else math.inf
    return Estimate.around(break_even_from_speedup(length, speedup.est), low, high)


def _means(lengths: Iterable[Mapping[str, Estimate]]) -> dict[str, Estimate]:
    """Return the mean of each kind of request over launches, by name."""
    found: dict[str, list[Estimate]] = {}
    for one in lengths:
        for name, length in one.items():
            found.setdefault(name, []).append(length)
    return {name: mean(found[name]) for name in sorted(found)}


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of a figure over launches, inside the widest of their intervals."""
    found = math.fsum(e.est for e in estimates) / len(estimates)
    return Estimate.around(found, min(e.lo for e in estimates), max(e.hi for e in estimates))


def _geometric_mean(levels: Sequence[LevelMeasurement]) -> float:
    return math.exp(math.fsum(math.log(level.decode_speed.est) for level in levels) / len(levels))


def _same_mode(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates differ in nothing but speculation."""
    return system_values(one) == system_values(other)
