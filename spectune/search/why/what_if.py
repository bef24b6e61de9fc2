"""What another drafter, another machine or another load would make of a candidate, by the study's fitted models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.analysis.break_even import break_even_accept_length, decode_speed
from spectune.analysis.diagnosis import Cause
from spectune.analysis.estimate import ratio
from spectune.analysis.why import AtAcceptLength, AtCycle, AtLoad, BreakEvenRow, WhatIf
from spectune.search.evidence.figures import Measured
from spectune.search.evidence.setting import Setting
from spectune.search.guided.cycle import terms
from spectune.search.why.instead import advised, at_every_level
from spectune.search.why.model import StudyModel
from spectune.search.why.rows import concurrency_of
from spectune.search.why.shapes import Shapes
from spectune.space import SearchSpace

Floats = npt.NDArray[np.float64]

LENGTHS = 13
CYCLES = tuple(share / 10.0 for share in range(4, 15))
"""Parts of the measured cycle, 0.4 to 1.4."""
CLOSE = 0.001
"""An accept length is sought no more exactly."""
CLEARLY = 0.02
"""Another setting is called faster from this gain on."""


@dataclass(frozen=True)
class Prospect:
    """One candidate and its ways to draft, as the study's models see them.

    Attributes:
        model: Of the study.
        shapes: The candidate's own way to draft and all others.
        launched: Number of a way → requests in flight → its row at that load, for those that were launched.
        baselines: Requests in flight → setting of the best baseline there.
        fastest: Requests in flight → speed of the fastest launch that was measured there, whatever it was.
        space: Of the study.
    """

    model: StudyModel
    shapes: Shapes
    launched: Mapping[int, Mapping[int, BreakEvenRow]]
    baselines: Mapping[int, Setting]
    fastest: Mapping[int, float]
    space: SearchSpace

    @property
    def rows(self) -> Mapping[int, BreakEvenRow]:
        """Requests in flight → the candidate's row at that load."""
        return self.launched[0]

    @classmethod
    def of(
        cls,
        candidate_id: str,
        whole: Sequence[BreakEvenRow],
        found: Sequence[Measured],
        space: SearchSpace,
        model: StudyModel,
    ) -> Prospect | None:
        """Gather what is needed; None for a candidate without a closed-loop level.

        Args:
            candidate_id: Whose prospect it is.
            whole: Rows of all requests.
            found: Everything that was measured.
            space: Of the study.
            model: Of the study.
        """
        own = {one.level: one for one in found if one.candidate.candidate_id == candidate_id}
        candidates = {one.candidate.candidate_id: one.candidate for one in found}
        by_candidate: dict[str, dict[int, BreakEvenRow]] = {}
        baselines: dict[int, Setting] = {}
        fastest: dict[int, float] = {}
        for row in whole:
            load = concurrency_of(space, row.level)
            if load is None:
                continue
            by_candidate.setdefault(row.candidate_id, {})[load] = row
            fastest[load] = max(fastest.get(load, row.baseline_tok_s), _speed(row))
            comparison = own[row.level].comparison if row.candidate_id == candidate_id else None
            if comparison is not None:
                baselines[load] = model.setting(candidates[comparison.baseline_id])
        if candidate_id not in by_candidate:
            return None
        candidate = candidates[candidate_id]
        shapes = Shapes.of(candidate, model.setting(candidate), space, model.physics.acceptance)
        ways = [one.candidate_id for one in shapes.candidates]
        launched = {way: by_candidate[one] for way, one in enumerate(ways) if one in by_candidate}
        return cls(model, shapes, launched, baselines, fastest, space)

    def what_if(self, concurrency: int) -> WhatIf:
        """Return the three tables, the first two at a load of `rows`."""
        row = self.rows[concurrency]
        by_length = tuple(self._by_accept_length(row, concurrency))
        by_load = tuple(map(self._at_load, _loads(self.rows)))
        return WhatIf(
            row.candidate_id, row.level, row.baseline_tok_s, by_length, tuple(_by_cycle(row)), by_load,
            tuple(self._words(row, concurrency, by_length)),
        )  # fmt: skip

    def better(self, concurrency: int) -> Cause | None:
        """Return another way to draft with the same drafter that is expected to be faster at a load than all launches.

        Clearly faster than the fastest of them, that is, whatever it was launched with. What is expected of it at every
        other measured load is said, too.
        """
        row = self.rows[concurrency]
        lengths, cycles = self._lengths(concurrency), self._cycles(concurrency)
        at = int(np.argmax(lengths / cycles))
        best, expected = self.shapes.settings[at], decode_speed(float(lengths[at]), float(cycles[at]))
        if at in self.launched or expected < (1.0 + max(CLEARLY, self.model.error)) * self.fastest[concurrency]:
            return None
        flags = (
            f"--speculative-num-steps {best.steps} --speculative-eagle-topk {best.topk} "
            f"--speculative-num-draft-tokens {best.tokens}"
        )
        speeds = [self._instead(load, at) for load in sorted(self.rows, key=lambda load: (load != concurrency, load))]
        evidence = (
            f"by the study's fit {_shape(best)}, never launched, would accept "
            f"{lengths[at]:.2f} in {cycles[at]:.1f} ms: {at_every_level(speeds)}; the fastest that was launched gives "
            f"{self.fastest[concurrency]:.1f} at {row.level}"
        )
        actions = (advised(f"with {flags}, which is predicted to give", speeds, self.space),)
        return Cause("not_the_best_shape", expected - _speed(row), evidence, actions, at_most=True)

    def _instead(self, concurrency: int, at: int) -> tuple[str, float, float]:
        """Return a measured load's level, the speed expected of another way to draft there, and that measured."""
        row = self.rows[concurrency]
        expected = decode_speed(float(self._lengths(concurrency)[at]), float(self._cycles(concurrency)[at]))
        return row.level, expected, _speed(row)

    def _by_accept_length(self, row: BreakEvenRow, concurrency: int) -> Iterator[AtAcceptLength]:
        cycles = self._cycles(concurrency)
        grid = {*np.linspace(1.0, self.shapes.bound, LENGTHS).tolist(), row.accept_length.est}
        for wanted in sorted(length for length in grid if length <= self.shapes.bound):
            lengths = self._lengths(concurrency, wanted)
            speeds = 1000.0 * lengths / cycles
            at = int(np.argmax(speeds))
            best = self.shapes.settings[at]
            yield AtAcceptLength(
                wanted, float(speeds[0]), best.steps, best.topk, best.tokens, float(lengths[at]), float(speeds[at])
            )

    def _at_load(self, concurrency: int) -> AtLoad:
        lengths, cycles = self._lengths(concurrency), self._cycles(concurrency)
        speeds = 1000.0 * lengths / cycles
        at = int(np.argmax(speeds))
        best, baseline = self.shapes.settings[at], self._baseline_speed(concurrency)
        pays = bool(speeds[at] > baseline)
        return AtLoad(
            concurrency, concurrency in self.rows, float(speeds[0]), baseline,
            *((best.steps, best.topk, best.tokens) if pays else (0, 0, 0)),
            best_speed=float(speeds[at]) if pays else baseline,
        )  # fmt: skip

    def _lengths(self, concurrency: int, wanted: float | None = None) -> Floats:
        """Return the accept length of every way to draft: as measured of those that were launched, others by the fit.

        What one candidate was measured at says little of the drafter beside all launches: so every candidate foresees
        the same of a way to draft.

        Args:
            concurrency: Requests in flight; what was measured at the nearest load counts.
            wanted: What a drafter accepts the candidate's own way that is better or worse than the one measured.
        """
        measured = {way: rows[_nearest(rows, concurrency)].accept_length.est for way, rows in self.launched.items()}
        odds = np.zeros(len(self.shapes.settings))
        for way, length in measured.items():
            odds[way] = self.shapes.odds_for(length, way)
        if wanted not in (None, measured[0]):
            lengths = self.shapes.lengths(odds + self.shapes.odds_for(wanted) - odds[0])
            lengths[0] = wanted
            return lengths
        lengths = self.shapes.lengths(odds)
        lengths[list(measured)] = list(measured.values())
        return lengths

    def _cycles(self, concurrency: int) -> Floats:
        """Return the cycle of every way to draft: as measured of those that were launched, others scaled as the own."""
        rows = terms(self.shapes.settings, concurrency, self.model.drafters)
        factors = np.full(len(rows), self._factor(0, concurrency))
        for way in self.launched:
            factors[way] = self._factor(way, concurrency)
        found: Floats = self.model.physics.cycle.ms(rows) * factors
        return found

    def _factor(self, way: int, concurrency: int) -> float:
        """Return measured over fitted cycle of a way that was launched."""
        rows, setting = self.launched[way], self.shapes.settings[way]
        missed = {load: row.cycle_ms.est / self.model.cycle_ms(setting, load) for load, row in rows.items()}
        return _between(missed, concurrency)

    def _baseline_speed(self, concurrency: int) -> float:
        fitted = {load: self.model.cycle_ms(self.baselines[load], load) for load in self.rows}
        factor = _between({load: self.rows[load].baseline_tok_s * ms for load, ms in fitted.items()}, concurrency)
        return factor / self.model.cycle_ms(self.baselines[_nearest(self.rows, concurrency)], concurrency)

    def _pays_from(self, row: BreakEvenRow, concurrency: int) -> tuple[float, Setting]:
        """Return the accept length at the candidate's own way from which the best way pays, and that way."""
        cycles, low, high = self._cycles(concurrency), 1.0, float(self.shapes.bound)
        while high - low > CLOSE:
            middle = (low + high) / 2.0
            best = float((1000.0 * self._lengths(concurrency, middle) / cycles).max())
            low, high = (middle, high) if best < row.baseline_tok_s else (low, middle)
        return high, self.shapes.settings[int(np.argmax(self._lengths(concurrency, high) / cycles))]

    def _launched_too(self, row: BreakEvenRow, concurrency: int) -> Iterator[str]:
        """Say of a way to draft that is the best one and was launched whether it is shown to be faster than this."""
        at = int(np.argmax(self._lengths(concurrency) / self._cycles(concurrency)))
        other = self.launched.get(at, {}).get(concurrency)
        if at == 0 or other is None or other.decode_speed is None or row.decode_speed is None:
            return
        shown = ratio(other.decode_speed, row.decode_speed).lo > 1.0
        yield (
            f"{_shape(self.shapes.settings[at])} was launched: {_speed(other):.1f} tok/s at {row.level}, which its "
            f"launches {'show to be faster than' if shown else 'do not tell from'} {_speed(row):.1f}"
        )

    def _words(self, row: BreakEvenRow, concurrency: int, by_length: tuple[AtAcceptLength, ...]) -> Iterator[str]:
        yield (
            "predictions are for launches with all other settings of this one, where those that were launched enter as "
            "measured: other cycles are scaled to its own, other accept lengths are those of the drafter by all "
            f"launches; the fit of all cycles is off by {self.model.error:.1%} (root mean square), accept lengths and "
            "what was never launched by more"
        )
        yield from self._launched_too(row, concurrency)
        if by_length[-1].best_speed <= row.baseline_tok_s:
            yield "no drafter, however good, makes speculation pay at this load with what the space offers"
            return
        length, best = self._pays_from(row, concurrency)
        yield (
            f"by these predictions speculation can pay from a drafter on that accepts {length:.2f} with these settings "
            f"({row.accept_length.est:.2f} now), launched with {_shape(best)} (steps, top-k, "
            "draft tokens)"
        )
        last = by_length[-1]
        yield (
            f"a perfect drafter would be fastest with {last.best_num_steps},{last.best_eagle_topk},"
            f"{last.best_num_draft_tokens}: {last.best_speed:.1f} tok/s"
        )


def _shape(setting: Setting) -> str:
    return f"{setting.steps},{setting.topk},{setting.tokens}"


def _speed(row: BreakEvenRow) -> float:
    return decode_speed(row.accept_length.est, row.cycle_ms.est)


def _by_cycle(row: BreakEvenRow) -> Iterator[AtCycle]:
    for share in CYCLES:
        ms = share * row.cycle_ms.est
        speed = decode_speed(row.accept_length.est, ms)
        yield AtCycle(ms, break_even_accept_length(row.baseline_tok_s, ms), speed)


def _loads(rows: Mapping[int, BreakEvenRow]) -> list[int]:
    """Return the loads measured and the powers of two between: beyond, nothing says what becomes of a cycle."""
    return sorted({*rows, *(2**power for power in range(max(rows).bit_length()) if 2**power > min(rows))})


def _nearest(rows: Mapping[int, object], concurrency: int) -> int:
    return min(rows, key=lambda load: abs(math.log(load / concurrency)))


def _between(figures: Mapping[int, float], concurrency: int) -> float:
    """Interpolate over ln load."""
    loads = sorted(figures)
    return float(np.interp(math.log(concurrency), [math.log(load) for load in loads], [figures[at] for at in loads]))
