"""What another drafter, another machine or another load would make of a candidate, by the study's fitted models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spectune.analysis.break_even import break_even_accept_length, decode_speed
from spectune.analysis.diagnosis import Action, Cause, Cost
from spectune.analysis.why import AtAcceptLength, AtCycle, AtLoad, BreakEvenRow, WhatIf
from spectune.search.evidence.figures import Measured
from spectune.search.guided.cycle import terms
from spectune.search.guided.setting import Setting
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
        rows: Requests in flight → the candidate's row at that load.
        baselines: Requests in flight → setting of the best baseline there.
    """

    model: StudyModel
    shapes: Shapes
    rows: Mapping[int, BreakEvenRow]
    baselines: Mapping[int, Setting]

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
        rows, baselines = {}, {}
        for row in whole:
            load = concurrency_of(space, row.level)
            comparison = own[row.level].comparison if row.candidate_id == candidate_id else None
            if load is not None and comparison is not None:
                rows[load] = row
                baselines[load] = model.setting(candidates[comparison.baseline_id])
        if not rows:
            return None
        candidate = candidates[candidate_id]
        shapes = Shapes.of(candidate, model.setting(candidate), space, model.physics.acceptance)
        return cls(model, shapes, rows, baselines)

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
        """Return another way to draft with the same drafter that is expected to be clearly faster at a load.

        What is expected of it at every other measured load is said, too.
        """
        row = self.rows[concurrency]
        own = self.shapes.settings[0]
        lengths, cycles = self._lengths(row), self._cycles(concurrency)
        at = int(np.argmax(lengths / cycles))
        speed, best = decode_speed(row.accept_length.est, row.cycle_ms.est), self.shapes.settings[at]
        gain = decode_speed(float(lengths[at]), float(cycles[at])) - speed
        if best == own or gain < max(CLEARLY, self.model.error) * speed:
            return None
        flags = (
            f"--speculative-num-steps {best.steps} --speculative-eagle-topk {best.topk} "
            f"--speculative-num-draft-tokens {best.tokens}"
        )
        speeds = [self._instead(load, at) for load in sorted(self.rows, key=lambda load: (load != concurrency, load))]
        told = ", ".join(f"{new:.1f} tok/s at {level} instead of {now:.1f}" for level, now, new in speeds)
        evidence = (
            f"by the study's fit {best.steps},{best.topk},{best.tokens} would accept {lengths[at]:.2f} in "
            f"{cycles[at]:.1f} ms: {told}"
        )
        slower = [level for level, now, new in speeds if new < now]
        only = f" for {row.level}: at {' and '.join(slower)} it is predicted to be slower" if slower else ""
        actions = (Action(f"launch with {flags}{only}", Cost.FLAG),)
        return Cause("not_the_best_shape", gain, evidence, actions, at_most=True)

    def _instead(self, concurrency: int, at: int) -> tuple[str, float, float]:
        """Return a measured load's level, the speed measured there, and that expected of another way to draft."""
        row = self.rows[concurrency]
        expected = decode_speed(float(self._lengths(row)[at]), float(self._cycles(concurrency)[at]))
        return row.level, decode_speed(row.accept_length.est, row.cycle_ms.est), expected

    def _by_accept_length(self, row: BreakEvenRow, concurrency: int) -> Iterator[AtAcceptLength]:
        cycles = self._cycles(concurrency)
        grid = {*np.linspace(1.0, self.shapes.bound, LENGTHS).tolist(), row.accept_length.est}
        for wanted in sorted(length for length in grid if length <= self.shapes.bound):
            lengths = self._lengths(row, wanted)
            speeds = 1000.0 * lengths / cycles
            at = int(np.argmax(speeds))
            best = self.shapes.settings[at]
            yield AtAcceptLength(
                wanted, float(speeds[0]), best.steps, best.topk, best.tokens, float(lengths[at]), float(speeds[at])
            )

    def _at_load(self, concurrency: int) -> AtLoad:
        row = self.rows[_nearest(self.rows, concurrency)]
        lengths, cycles = self._lengths(row), self._cycles(concurrency)
        speeds = 1000.0 * lengths / cycles
        at = int(np.argmax(speeds))
        best, baseline = self.shapes.settings[at], self._baseline_speed(concurrency)
        pays = bool(speeds[at] > baseline)
        return AtLoad(
            concurrency, concurrency in self.rows, float(speeds[0]), baseline,
            *((best.steps, best.topk, best.tokens) if pays else (0, 0, 0)),
            best_speed=float(speeds[at]) if pays else baseline,
        )  # fmt: skip

    def _lengths(self, row: BreakEvenRow, wanted: float | None = None) -> Floats:
        """Return the accept length of every way to draft: the candidate's own as measured, others by all launches.

        What one candidate was measured at says little of the drafter beside all launches: so every candidate foresees
        the same of a way to draft.

        Args:
            row: The candidate.
            wanted: What a drafter accepts the candidate's own way that is better or worse than the one measured.
        """
        now = row.accept_length.est
        change = 0.0 if wanted in (None, now) else self.shapes.odds_for(wanted) - self.shapes.odds_for(now)
        lengths = self.shapes.lengths(change)
        lengths[0] = now if wanted is None else wanted
        return lengths

    def _cycles(self, concurrency: int) -> Floats:
        """Return the cycle of every way to draft, so that the candidate's own is what was measured."""
        fitted = {load: self.model.cycle_ms(self.shapes.settings[0], load) for load in self.rows}
        factor = _between({load: self.rows[load].cycle_ms.est / ms for load, ms in fitted.items()}, concurrency)
        rows = terms(self.shapes.settings, concurrency, self.model.drafters)
        found: Floats = self.model.physics.cycle.ms(rows) * factor
        return found

    def _baseline_speed(self, concurrency: int) -> float:
        fitted = {load: self.model.cycle_ms(self.baselines[load], load) for load in self.rows}
        factor = _between({load: self.rows[load].baseline_tok_s * ms for load, ms in fitted.items()}, concurrency)
        return factor / self.model.cycle_ms(self.baselines[_nearest(self.rows, concurrency)], concurrency)

    def _pays_from(self, row: BreakEvenRow, concurrency: int) -> tuple[float, Setting]:
        """Return the accept length at the candidate's own way from which the best way pays, and that way."""
        cycles, low, high = self._cycles(concurrency), 1.0, float(self.shapes.bound)
        while high - low > CLOSE:
            middle = (low + high) / 2.0
            best = float((1000.0 * self._lengths(row, middle) / cycles).max())
            low, high = (middle, high) if best < row.baseline_tok_s else (low, middle)
        return high, self.shapes.settings[int(np.argmax(self._lengths(row, high) / cycles))]

    def _words(self, row: BreakEvenRow, concurrency: int, by_length: tuple[AtAcceptLength, ...]) -> Iterator[str]:
        yield (
            "predictions are for launches with all other settings of this one: cycles are scaled to its own, accept "
            f"lengths are those of the drafter by all launches; the fit of all cycles is off by {self.model.error:.1%} "
            "(root mean square), accept lengths and what was never launched by more"
        )
        if by_length[-1].best_speed <= row.baseline_tok_s:
            yield "no drafter, however good, makes speculation pay at this load with what the space offers"
            return
        length, best = self._pays_from(row, concurrency)
        yield (
            f"speculation can pay from a drafter on that accepts {length:.2f} with these settings "
            f"({row.accept_length.est:.2f} now), launched with {best.steps},{best.topk},{best.tokens} (steps, top-k, "
            "draft tokens)"
        )
        last = by_length[-1]
        yield (
            f"a perfect drafter would be fastest with {last.best_num_steps},{last.best_eagle_topk},"
            f"{last.best_num_draft_tokens}: {last.best_speed:.1f} tok/s"
        )


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
