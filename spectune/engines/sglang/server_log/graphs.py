"""Which CUDA graphs were captured, from the capture lines of all versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from spectune.engines.sglang.server_log.facts import Capture, GraphKind
from spectune.engines.sglang.server_log.lines import MEMORY, NUMBER, WHOLE, Message

# "Capture target verify CUDA graph end." (since 0.5.15), "Capture draft extend cuda graph end." (before)
_LINE = re.compile(r"^Capture (?:(?P<what>[\w -]+?) )?(?:cuda|CUDA|NPU|XPU|MUSA) graph (?P<edge>begin|end)\b")
_OLD_BATCHES = re.compile(r"^Capture cuda graph bs \[([\d, ]*)\]")
_BATCHES = re.compile(r"\bbs=\[([\d, ]*)\]")
_WIDTH = re.compile(rf"\bnum_tokens_per_(?:req|bs)=({WHOLE})\b")
_SECONDS = re.compile(rf"elapsed ?[=:] ?({NUMBER})")
_LARGEST_BATCH = 1 << 16
_TARGET = "target"  # of an old log: a verify if it speculates, else a decode


class Graphs:
    """Collects capture lines; of several ranks the largest figures."""

    def __init__(self) -> None:
        self._found: dict[str, Capture] = {}

    def note(self, message: Message) -> bool:
        """Take up a line; returns whether it was about a capture."""
        old = _OLD_BATCHES.match(message.text)
        if old is not None:
            self._merge(_TARGET, Capture("decode", _numbers(old.group(1))))
            return True
        line = _LINE.match(message.text)
        if line is None:
            return False
        batches, width = _BATCHES.search(message.text), _WIDTH.search(message.text)
        seconds, memory = _SECONDS.search(message.text), MEMORY.search(message.text)
        seen = Capture(
            "decode",
            _numbers(batches.group(1)) if batches else (),
            int(width.group(1)) if width else None,
            float(seconds.group(1)) if seconds else None,
            float(memory.group(1)) if memory else None,
            line.group("edge") == "end",
        )
        self._merge(_kind(line.group("what") or ""), seen)
        return True

    def captures(self, *, speculative: bool) -> Mapping[GraphKind, Capture]:
        """Return the captures by kind."""
        names: dict[str, GraphKind] = {
            _TARGET: "verify" if speculative else "decode",
            "verify": "verify",
            "decode": "decode",
            "draft": "draft",
            "draft_extend": "draft_extend",
            "prefill": "prefill",
        }
        return {names[name]: replace(capture, kind=names[name]) for name, capture in self._found.items()}

    def _merge(self, name: str, seen: Capture) -> None:
        before = self._found.get(name, Capture("decode"))
        self._found[name] = Capture(
            "decode",
            tuple(sorted({*before.batches, *seen.batches})),
            seen.tokens_per_request if before.tokens_per_request is None else before.tokens_per_request,
            _larger(before.seconds, seen.seconds),
            _larger(before.memory_gb, seen.memory_gb),
            before.finished or seen.finished,
        )


def _kind(what: str) -> str:
    if what in ("piecewise", "breakable") or what.endswith("prefill"):
        return "prefill"
    if what == "target verify":
        return "verify"
    if what == "target decode":
        return "decode"
    if what.startswith("draft extend"):
        return "draft_extend"
    return "draft" if "draft" in what else _TARGET


def _numbers(text: str) -> tuple[int, ...]:
    words = [word for word in text.replace(",", " ").split() if len(word) <= len(str(_LARGEST_BATCH))]
    return tuple(size for size in map(int, words) if size <= _LARGEST_BATCH)


def _larger(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None
