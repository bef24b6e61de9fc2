"""One request while it is under way: what the server has said so far, and what became of it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from typing import Any

import orjson

from spectune.bench.prompts import TokenizedPrompt
from spectune.bench.records import CLIENT_ABORT, RequestRecord
from spectune.counts import count
from spectune.printable import one_line

# Inside a JSON string the closing quote of the key would be escaped, so this never matches generated text.
_COUNT_KEY, _COUNT = b'"completion_tokens"', re.compile(rb'"completion_tokens"\s*:\s*(\d{1,18})')
_FINISH_KEY, _UNFINISHED = b'"finish_reason"', re.compile(rb'"finish_reason"\s*:\s*null')
_CORRECT = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_SHOWN = 200
_OVERSHOOT = 64  # tokens of the last verify that engines before 0.5.6 sent beyond the end
_IDS_DIFFER = 0.05  # of the tokens counted
_MOST_COUNT = 10**12  # of anything in one answer


class Exchange:
    """Collects one answer chunk by chunk.

    Only the token count is taken out of a chunk on the way; the engine repeats the whole text and all counters in
    every chunk, so one full parse of the last chunk is enough and keeps the client cheap.
    """

    def __init__(self, prompt: TokenizedPrompt, origin_s: float, due_s: float | None = None) -> None:
        """Begin an exchange.

        Args:
            prompt: What is sent.
            origin_s: `time.monotonic()` at the start of the level; all times of the record count from there.
            due_s: When an open loop wanted it sent; None in a closed loop.
        """
        self.prompt = prompt
        self.due_s = due_s
        self.error: str | None = None
        self.last_s = 0.0
        self._origin_s = origin_s
        self._sent_s = self._end_s = time.monotonic() - origin_s
        self._was_sent = self._ended = False
        self._chunks: list[tuple[float, int]] = []
        self._asked: float = math.inf
        self._tokens = self._tokens_before = 0  # by the last chunk and by the one before it
        self._last = b""
        self._finished = False

    @property
    def sent_s(self) -> float:
        """When the request went out."""
        return self._sent_s

    @property
    def began_s(self) -> float:
        """When its user began to wait."""
        return self._sent_s if self.due_s is None else self.due_s

    @property
    def ended(self) -> bool:
        """Whether it is over, well or not."""
        return self._ended

    @property
    def chunks(self) -> Sequence[tuple[float, int]]:
        """(time, completed tokens so far) for every chunk that carried new tokens."""
        return self._chunks

    @property
    def prompt_tokens(self) -> int:
        """Tokens that were sent."""
        return len(self.prompt.input_ids)

    def sent(self, asked: int) -> None:
        """The request goes out now and asks for so many tokens at most."""
        self._asked = asked
        self._sent_s = time.monotonic() - self._origin_s
        self._was_sent = True

    def event(self, data: bytes, at_s: float) -> int:
        """Take up one streamed chunk that arrived at `time.monotonic()`; returns how many tokens it added."""
        now = at_s - self._origin_s
        # From the end: the text and the tokens so far, which every chunk repeats, come first.
        match = _COUNT.match(data, max(data.rfind(_COUNT_KEY), 0))
        if match is None:
            self.fail(_complaint(data))
            return 0
        self._last = data
        self._finished = _UNFINISHED.match(data, max(data.rfind(_FINISH_KEY), 0)) is None
        tokens = int(match[1])
        new = tokens - self._tokens
        if new < 0:
            self.fail(f"the count of completed tokens fell from {self._tokens} to {tokens}")
            return 0
        if tokens > self._asked + _OVERSHOOT:
            self.fail(f"the server counted {count(tokens, 'token')}, but was asked for at most {self._asked}")
            return 0
        self._tokens_before = self._tokens
        if new:
            self._tokens = tokens
            self.last_s = now
            self._chunks.append((now, tokens))
        return new

    def done(self) -> None:
        """The server says that the stream is complete."""
        self.end()

    def closed(self, *, in_event: bool) -> None:
        """The connection ended; an answer without a finish reason ended too early."""
        if self.error is None and (in_event or not self._finished):
            where = "in the middle of a chunk" if in_event else "without a finish reason"
            self.fail(f"the server closed the stream after {count(self._tokens, 'token')}, {where}")

    def fail(self, why: str) -> None:
        """Note what went wrong in one line; the first cause stands."""
        if self.error is None:
            self.error = one_line(why)
        self.end()

    def end(self) -> None:
        """The exchange is over; the first end stands."""
        if not self._ended:
            self._ended = True
            self._end_s = time.monotonic() - self._origin_s
            if not self._was_sent:
                self._sent_s = self._end_s

    def record(self) -> RequestRecord:
        """What is known of the request now; unfinished without a failure means that this client closed it."""
        content = self._content()
        meta, error = content.get("meta_info", {}), self.error
        reason, complaint = _finish(meta.get("finish_reason"))
        if error is None and self._finished:
            error = complaint or self._miscounted(content)
        prompt_tokens = _count(meta, "prompt_tokens") or self.prompt_tokens
        verifies, correct, histogram = speculation_counters(meta, self._tokens)
        return RequestRecord(
            prompt_id=self.prompt.prompt.prompt_id,
            prompt_class=self.prompt.prompt.prompt_class,
            prompt_tokens=prompt_tokens,
            output_tokens=self._tokens,
            cached_tokens=min(_count(meta, "cached_tokens"), prompt_tokens),  # an answer begun again may count its own
            sent_s=self._sent_s,
            first_token_s=self._chunks[0][0] if self._chunks else None,
            end_s=self._end_s,
            chunks=tuple(self._chunks),
            spec_verify_ct=verifies,
            spec_num_correct_drafts=correct,
            spec_correct_drafts_histogram=histogram,
            finish_reason=reason if self._finished or error is not None else CLIENT_ABORT,
            error=error,
            due_s=self.due_s,
        )

    def _miscounted(self, content: dict[str, Any]) -> str | None:
        """Say what the server's last chunk counts otherwise than there is; its token ids are all, or the last few."""
        counted, sent = _count(content["meta_info"], "prompt_tokens"), self.prompt_tokens
        if counted not in {0, sent}:
            return f"the server counted {counted} prompt tokens, but {sent} were sent"
        if not self._tokens:
            return "the server ended the answer without a token"
        ids = content.get("output_ids")
        if isinstance(ids, list) and not any(
            abs(len(ids) - expected) <= _IDS_DIFFER * expected
            for expected in (self._tokens, self._tokens - self._tokens_before)
        ):
            return f"the server counted {count(self._tokens, 'token')}, but sent the ids of {len(ids)}"
        return None

    def _content(self) -> dict[str, Any]:
        if not self._last:
            return {}
        try:
            content = orjson.loads(self._last)
        except ValueError:
            content = None
        if not isinstance(content, dict) or not isinstance(content.get("meta_info"), dict):
            self.fail(f"the server's last chunk is malformed: {_shown(self._last)}")
            return {}
        return content


def _finish(reason: object) -> tuple[str | None, str | None]:
    """The kind of ending, and the complaint if the engine gave the request up."""
    if reason is None or isinstance(reason, str):
        return reason, None
    kind = str(reason.get("type", "unknown")) if isinstance(reason, dict) else str(reason)
    if kind != "abort" or not isinstance(reason, dict):
        return kind, None
    return kind, f"the engine aborted the request: {reason.get('message') or 'no reason given'}"


def speculation_counters(meta: dict[str, Any], tokens: int) -> tuple[int, int, tuple[int, ...]]:
    """Verifies, correct drafts and histogram under the names of all engine versions (SGLANG_0.5.23.md, section 6)."""
    verifies, correct = _count(meta, "spec_verify_ct"), _count(meta, *_CORRECT)
    if verifies and not any(name in meta for name in _CORRECT):
        # 0.5.1 counts verifies only: the prefill gives one token, and every verify one bonus token.
        correct = max(tokens - 1 - verifies, 0)
    histogram = meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram") or ()
    if not isinstance(histogram, list) or not all(
        isinstance(count, int) and 0 <= count <= _MOST_COUNT for count in histogram
    ):
        histogram = ()
    return verifies, correct, tuple(histogram)


def _count(meta: dict[str, Any], *names: str) -> int:
    """The first of these fields that is there, as a count; 0 if none is."""
    value = next((meta[name] for name in names if name in meta), 0)
    return int(min(value, _MOST_COUNT)) if isinstance(value, int | float) and value >= 0 else 0


def _complaint(data: bytes) -> str:
    """What a chunk without a token count says: an error of the engine, or nothing that can be read."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        return f"the server sent a malformed chunk: {_shown(data)}"
    error = content.get("error") if isinstance(content, dict) else None
    if isinstance(error, dict):
        error = error.get("message") or error
    return f"the server reported: {error}" if error else f"the server sent an unexpected chunk: {_shown(data)}"


def _shown(data: bytes) -> str:
    text = data[:_SHOWN].decode("utf-8", "replace")
    return text + "…" if len(data) > _SHOWN else text
