"""Decode and prefill lines: counted all, kept as an even sample when there are very many."""

from __future__ import annotations

import re
from typing import Any

from spectune.engines.sglang.server_log.facts import DecodeInterval, Prefills
from spectune.engines.sglang.server_log.lines import NUMBER, WHOLE, Message

MOST_INTERVALS = 20_000
"""Decode intervals that are kept; of more lines every second, fourth, … one."""

MOST_RANKS = 1024
"""Processes told apart; a log that names more is damaged."""

# One search a field: together in one expression they would backtrack without end on a damaged line.
_RUNNING = re.compile(rf"#running-req: ({WHOLE}),")
_USAGE = re.compile(rf"token usage: ({NUMBER}),")
_ACCEPTED = re.compile(rf"(?<!block )accept len: ({NUMBER}),")
_GRAPH = re.compile(r"\b(\w+) graph: (True|False),")
_SPEED = re.compile(rf"gen throughput \(token/s\): ({NUMBER})\b")
_QUEUED = re.compile(rf"#queue-req: ({WHOLE})\b")
_PREFILL = re.compile(
    rf"^Prefill batch\b.*?#new-seq: ({WHOLE}), #new-token: ({WHOLE}), #cached-token: ({WHOLE}),"
    rf"(?:.*?#queue-req: ({WHOLE}),)?"
)


class Batches:
    """Collects them; `seen` says whether there was one."""

    def __init__(self) -> None:
        self.seen = False
        self._decode: list[DecodeInterval] = []
        self._stride = 1
        self._lines = self._most_running = self._most_queued = 0
        self._peak_usage: float | None = None
        self._prefills = [0, 0, 0, 0, 0]
        self._decoding: dict[str, bool] = {}  # rank → no prefill since its last decode line
        self._stamp = ""
        self._time_s: float | None = None

    def note(self, message: Message) -> None:
        """Take up a line, if it is whole enough to mean something."""
        if message.text.startswith("Decode batch"):
            self._note_decode(message)
        elif (found := _PREFILL.match(message.text)) is not None:
            self.seen = True
            rank = self._known(message.rank)
            if rank in self._decoding:
                self._decoding[rank] = False
            requests, new, cached, queued = (int(value or 0) for value in found.groups())
            for index, value in enumerate((1, requests, new, cached)):
                self._prefills[index] += value
            self._prefills[4] = max(self._prefills[4], queued)

    def facts(self) -> dict[str, Any]:
        """Return the fields of `ServerFacts` that come from these lines."""
        return {
            "decode": tuple(self._decode),
            "decode_lines": self._lines,
            "most_running": self._most_running,
            "most_queued": max(self._most_queued, self._prefills[4]),
            "peak_usage": self._peak_usage,
            "prefills": Prefills(*self._prefills),
        }

    def _note_decode(self, message: Message) -> None:
        text = message.text
        running, speed, graph = _RUNNING.search(text), _SPEED.search(text), _GRAPH.search(text)
        if running is None or speed is None:
            return
        self.seen = True
        rank = self._known(message.rank)
        interval = DecodeInterval(
            time_s=self._time_of(message),
            rank=rank,
            running=int(running.group(1)),
            accept_length=_accepted(_number(_ACCEPTED.search(text))),
            tok_s=float(speed.group(1)),
            in_graph=None if graph is None or graph.group(1) == "cpu" else graph.group(2) == "True",
            queued=int(_number(_QUEUED.search(text)) or 0),
            usage=_number(_USAGE.search(text)),
            first=rank not in self._decoding,
            pure=self._decoding.get(rank, False),
        )
        self._decoding[rank] = True
        self._lines += 1
        self._most_running = max(self._most_running, interval.running)
        self._most_queued = max(self._most_queued, interval.queued)
        if interval.usage is not None:
            self._peak_usage = max(self._peak_usage or 0.0, interval.usage)
        if interval.first or self._lines % self._stride == 0:
            self._decode.append(interval)
        if len(self._decode) >= 2 * MOST_INTERVALS:
            self._stride *= 2
            self._decode = [one for index, one in enumerate(self._decode) if one.first or index % 2]

    def _known(self, rank: str) -> str:
        return rank if rank in self._decoding or len(self._decoding) < MOST_RANKS else ""

    def _time_of(self, message: Message) -> float | None:
        if message.stamp != self._stamp:  # many lines share a second
            self._stamp, self._time_s = message.stamp, message.time_s
        return self._time_s


def _accepted(length: float | None) -> float | None:
    """Return an accept length if it can be one: a verify gives its bonus token at least."""
    return None if length is None or length < 1.0 else length


def _number(found: re.Match[str] | None) -> float | None:
    return None if found is None else float(found.group(1))
