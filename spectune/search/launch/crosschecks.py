"""What the client measured against what the server counted: a level whose two sides disagree is not believed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spectune.analysis.level_notes import MOSTLY_CACHED
from spectune.analysis.measurement import LevelMeasurement
from spectune.bench.records import RequestRecord
from spectune.engines.protocol import Mismatch
from spectune.engines.served import Served
from spectune.machine import Others

TOKENS_DIFFER = 0.05
"""Share of the tokens by which the server's speculation counters and the client's own count may differ."""
RUNNING_BELOW = 0.05
"""Share of the requests that may wait for room without the level being another one than it is called."""


@dataclass(frozen=True)
class LevelSeen:
    """One level from both sides.

    Attributes:
        measured: The client's figures.
        records: Every request of it.
        concurrency: Requests that were kept in flight; None in an open loop.
        served: What the engine's log says of the measured time.
        retractions_before: Those that the log had before the level.
        most_running: Requests the engine said it runs at once, per data-parallel rank; None where it did not.
        distinct_prompts: Whether the workload's prompts have no text in common and none is sent twice.
        others: What other programs used of the machine meanwhile.
    """

    measured: LevelMeasurement
    records: Sequence[RequestRecord]
    concurrency: int | None
    served: Served
    retractions_before: int = 0
    most_running: int | None = None
    distinct_prompts: bool = False
    others: Others = field(default_factory=Others)

    def contradictions(self) -> list[Mismatch]:
        """What makes the level's figures wrong, whatever they are."""
        counted = [*self._tokens(), *self._drafts()]
        return [*counted, *self._running(), *self._retractions(), *self._cached(), *self._shared_gpus()]

    def notes(self) -> list[str]:
        """What a reader should know of how it was served."""
        return [*self._queueing(), *self._others()]

    def _queueing(self) -> Iterable[str]:
        limit = self._limit
        if self.concurrency is None or limit is None or limit >= self.concurrency:
            return
        told = f"{limit} of {self.concurrency} requests at once, as it was told to"
        yield f"at {self.measured.level} the engine runs at most {told}: the others wait, and slow nobody down"

    def _others(self) -> Iterable[str]:
        """Cores that others take make a launch's figures noisier, which repeats show: no reason to disbelieve it."""
        if self.others.noticeable:
            yield f"others used {self.others} while {self.measured.level} was measured"

    @property
    def _limit(self) -> int | None:
        return None if self.most_running is None else self.most_running * self.served.ranks

    def _tokens(self) -> Iterable[Mismatch]:
        found = tokens_counted(self.records)
        if found is None:
            return
        received, counted, spare = found
        if not (1 - TOKENS_DIFFER) * received <= counted <= (1 + TOKENS_DIFFER) * received + spare:
            yield Mismatch(f"tokens by the server's counters at {self.measured.level}", received, counted)

    def _drafts(self) -> Iterable[Mismatch]:
        """Acceptance by position, by which other chains are predicted, is only as good as its histogram."""
        whole = [record for record in self.records if record.completed and record.spec_correct_drafts_histogram]
        counted = sum(record.spec_verify_ct + record.spec_num_correct_drafts for record in whole)
        in_histogram = sum(
            times * (1 + accepted)
            for record in whole
            for accepted, times in enumerate(record.spec_correct_drafts_histogram)
        )
        if abs(in_histogram - counted) > TOKENS_DIFFER * counted:
            what = f"verifies and accepted drafts in the histograms at {self.measured.level}"
            yield Mismatch(what, counted, in_histogram)

    def _running(self) -> Iterable[Mismatch]:
        served = self.served
        if self.concurrency is None or served.running is None or served.queued is None:
            return
        wanted = self.concurrency if self._limit is None else min(self.concurrency, self._limit)
        # Without a queue the engine runs what there is: what is missing is between two requests, or in its prefill.
        queued = served.queued - (self.concurrency - wanted)
        if served.running < (1 - RUNNING_BELOW) * wanted and queued > RUNNING_BELOW * wanted:
            yield Mismatch(f"running requests at {self.measured.level}", wanted, round(served.running, 1))

    def _retractions(self) -> Iterable[Mismatch]:
        retracted = self.served.retractions - self.retractions_before
        if retracted > 0:
            yield Mismatch(f"requests begun again for want of KV cache at {self.measured.level}", 0, retracted)

    def _cached(self) -> Iterable[Mismatch]:
        if self.distinct_prompts and self.measured.cached_share > MOSTLY_CACHED:
            got = f"{self.measured.cached_share:.0%}"
            yield Mismatch(f"prompt tokens from the cache at {self.measured.level}", f"below {MOSTLY_CACHED:.0%}", got)

    def _shared_gpus(self) -> Iterable[Mismatch]:
        """A GPU works for one program at a time: a second one stretches every cycle, by how much depends on both."""
        for where, percent in self.others.on_gpus.items():
            yield Mismatch(f"another program's share of {where} at {self.measured.level}", "0 %", f"{percent} %")


def tokens_counted(records: Iterable[RequestRecord]) -> tuple[int, int, int] | None:
    """Tokens of the requests that speculated: received, counted by the server, and how many more it may count.

    A prefill gives one token, a verify one and those it accepts; the last verify of an answer may go beyond its end, by
    all of its drafts.

    Returns:
        None without speculation.
    """
    whole = [record for record in records if record.completed and record.spec_verify_ct]
    if not whole:
        return None
    depth = max(len(record.spec_correct_drafts_histogram) for record in whole)
    counted = sum(1 + record.spec_verify_ct + record.spec_num_correct_drafts for record in whole)
    return sum(record.output_tokens for record in whole), counted, depth * len(whole)
