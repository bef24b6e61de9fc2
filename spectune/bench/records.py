"""What is kept of every request: times, counts and the engine's own speculation counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

CLIENT_ABORT = "client_abort"
"""Finish reason of a request this client closed at the end of a level: neither a result nor a failure."""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as the client saw it.

    All times are seconds of the monotonic clock since the start of the level.

    Attributes:
        prompt_id: Identifies the prompt within the study.
        prompt_class: Class of the prompt ("code", "chat", …); acceptance differs per class.
        prompt_tokens: Tokens sent.
        output_tokens: Tokens the server says it completed.
        cached_tokens: Prompt tokens answered from the prefix cache; above 0 the prefill was not all real.
        sent_s: When the request was sent; of one that found no room, when it was given up.
        first_token_s: When the first token arrived; None if none did.
        end_s: When the answer ended, well or not.
        chunks: (time, completed tokens so far) for every streamed chunk that carried new tokens.
        spec_verify_ct: Verify passes of this request; 0 without speculation.
        spec_num_correct_drafts: Drafted tokens that were accepted, bonus tokens excluded.
        spec_correct_drafts_histogram: Index i counts the verifies that accepted exactly i drafted tokens.
        finish_reason: The server's ("stop", "length", "abort") or `CLIENT_ABORT`; None if the answer never ended.
        error: What went wrong, in words; None if nothing did.
        due_s: When an open loop wanted the request sent; None in a closed loop.
    """

    prompt_id: str
    prompt_class: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    sent_s: float
    first_token_s: float | None
    end_s: float
    chunks: tuple[tuple[float, int], ...]
    spec_verify_ct: int
    spec_num_correct_drafts: int
    spec_correct_drafts_histogram: tuple[int, ...]
    finish_reason: str | None
    error: str | None
    due_s: float | None = None

    @property
    def began_s(self) -> float:
        """When its user began to wait: from here its latency counts, so that no delay in sending is left out."""
        return self.sent_s if self.due_s is None else self.due_s

    @property
    def failed(self) -> bool:
        """Whether the request counts as a failure of the configuration."""
        return self.error is not None

    @property
    def completed(self) -> bool:
        """Whether the server answered the request to its end, so that its counters cover all of it."""
        return self.error is None and self.finish_reason != CLIENT_ABORT

    def to_json(self) -> bytes:
        """One line of `level-cNNN.jsonl`, without the newline."""
        return orjson.dumps(self)


def dump_records(records: Iterable[RequestRecord]) -> bytes:
    """The content of a `level-cNNN.jsonl` file."""
    return b"".join(record.to_json() + b"\n" for record in records)
