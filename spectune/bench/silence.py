"""When silence means that the engine hangs: the one rule, for measuring and draining alike.

An engine hangs when none of the requests in flight gets a token for longer than

    the larger of   floor_s                                         5 s: shorter pauses happen to healthy engines
                    20 × the typical time between two chunks        of this level's requests so far
                    20 × the typical prefill of what is prefilling  seconds per prompt token so far × tokens waiting
    but never       hang_s                                          which alone holds while nothing typical is known

Typical is the median over the requests, so that one long pause changes nothing. Silence begins with the last token,
with the oldest request still waiting, or when this process last was kept from looking (stopped, or starved of its
CPU), whichever is latest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import median

from spectune.bench.exchange import Exchange
from spectune.bench.records import RequestRecord

TIMES = 20.0
BLIND_S = 1.0  # between two looks; what arrived meanwhile may not have been read yet


class Silence:
    """Watches over the silence of one level.

    Attributes:
        blind_s: Seconds in which this process was kept from looking; what arrived then was stamped too late.
    """

    def __init__(self, floor_s: float, hang_s: float, from_s: float = 0.0) -> None:
        """Begin to watch.

        Args:
            floor_s: No silence shorter than this is a hang.
            hang_s: Any silence longer than this is a hang.
            from_s: When; what was before does not count.
        """
        self._floor_s, self._hang_s = min(floor_s, hang_s), hang_s
        self._looked_s = self._from_s = from_s
        self.blind_s = 0.0

    def too_long(
        self, now_s: float, last_token_s: float, waiting: Collection[Exchange], ended: Iterable[RequestRecord]
    ) -> float | None:
        """The patience in seconds if it has run out; to be asked several times a second.

        Args:
            now_s: Now; all times are seconds since the level's start.
            last_token_s: When any request last got a token.
            waiting: The requests in flight.
            ended: Those before them.
        """
        if now_s - self._looked_s > BLIND_S:
            self.blind_s += now_s - self._looked_s
            self._from_s = now_s
        self._looked_s = now_s
        if not waiting:
            return None
        silent = now_s - max(last_token_s, self._from_s, min(exchange.sent_s for exchange in waiting))
        if silent <= self._floor_s:
            return None
        patience = self._patience(waiting, ended)
        return patience if silent > patience else None

    def _patience(self, waiting: Collection[Exchange], ended: Iterable[RequestRecord]) -> float:
        gaps: list[float] = []
        prefills: list[float] = []
        seen: list[tuple[float, Sequence[tuple[float, int]], int]]
        seen = [(record.sent_s, record.chunks, record.prompt_tokens) for record in ended]
        seen += [(exchange.sent_s, exchange.chunks, exchange.prompt_tokens) for exchange in waiting]
        for sent_s, chunks, prompt_tokens in seen:
            if chunks:
                prefills.append((chunks[0][0] - sent_s) / max(prompt_tokens, 1))
            if len(chunks) > 1:
                gaps.append((chunks[-1][0] - chunks[0][0]) / (len(chunks) - 1))
        if not gaps:
            return self._hang_s
        prefilling = sum(exchange.prompt_tokens for exchange in waiting if not exchange.chunks)
        return min(self._hang_s, max(self._floor_s, TIMES * median(gaps), TIMES * median(prefills) * prefilling))
