"""One request inside the engine: how far it is and what its chunks say."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from spectune.engines.simulated import tokens
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.randomness import DRAWS, acceptance_draws

Finish = dict[str, Any]


@dataclass(eq=False)
class Generation:
    """A request from its arrival to its last token.

    Attributes:
        request_id: As the client named it, or one of ours.
        input_ids: The prompt.
        prompt_class: Its class, if it carries one.
        max_new_tokens: Length of the answer.
        number: Its number among the launch's client requests; None for the engine's own.
        deliver: Takes each chunk (payload, whether it is the last) at the moment it is due.
        launch: The model of the launch.
        temperature: Above 0 the answer is sampled.
        cached_tokens: Prompt tokens found in the prefix cache.
        completed: Tokens so far.
        verifies: Cycles so far.
        histogram: Index i counts the verifies with exactly i drafts right; it ends with the most there were.
        gone: Whether the client has gone.
    """

    request_id: str
    input_ids: list[int]
    prompt_class: str | None
    max_new_tokens: int
    number: int | None
    deliver: Callable[[bytes, bool], None]
    launch: SimulatedLaunch
    temperature: float = 0.0
    cached_tokens: int = 0
    completed: int = 0
    verifies: int = 0
    histogram: list[int] = field(default_factory=list)
    gone: bool = False
    finish: Finish | None = None

    def __post_init__(self) -> None:
        self._arrived, self._latency_s = time.monotonic(), 0.0
        number = self.number
        variant = None if number is None else self.launch.variant(number, self.temperature)
        sampled = None if number is None else self.launch.sampled_tokens(number)
        self._source = tokens.reply(self.input_ids, variant, sampled)
        self._ids: list[int] = []
        self._text = ""
        self._draws: list[float] = []
        self._survivals: tuple[float, ...] = ()
        self._zero = self.number is not None and self.launch.fault("zero_acceptance", self.number) is not None
        self._aborts = self.number is not None and self.launch.aborts(self.number)

    @property
    def held_tokens(self) -> int:
        """KV tokens it holds."""
        return len(self.input_ids) + self.completed

    @property
    def correct_drafts(self) -> int:
        """Drafted tokens that were right so far."""
        return sum(index * count for index, count in enumerate(self.histogram))

    def prefill(self) -> None:
        """Take the first token, which the prefill gives."""
        self._advance(1)

    def cycle(self) -> int:
        """Take one cycle; returns how many drafts were right."""
        correct = 0
        if self.launch.setup.speculative:
            correct = self._drawn()
            self.verifies += 1
            self.histogram += [0] * (correct + 1 - len(self.histogram))
            self.histogram[correct] += 1
        self._advance(1 + correct)
        if self._aborts:
            message = "simulated partial failure"
            self.finish = {"type": "abort", "message": message, "status_code": 500, "err_type": "InternalServerError"}
        return correct

    def payload(self, at: float) -> bytes:
        """Return the JSON of the answer so far; SGLang repeats all of it in every chunk.

        Args:
            at: When it is due, on the monotonic clock.
        """
        if self.finish is not None:
            self._latency_s = at - self._arrived
        return orjson.dumps(self.answer())

    def answer(self) -> dict[str, Any]:
        """Return the answer so far; what is counted over the whole request stands in the last one alone."""
        return {
            "text": self._text,
            "output_ids": self._ids,
            "meta_info": self._meta_info(),
        }

    def _advance(self, more: int) -> None:
        new = list(islice(self._source, min(more, self.max_new_tokens - self.completed)))
        self._ids += new
        self._text += "".join(map(tokens.decode, new))
        self.completed += len(new)
        if self.completed == self.max_new_tokens:
            self.finish = {"type": "length", "length": self.completed}

    def _drawn(self) -> int:
        """Draw how many drafts are right in this verify; the engine's own requests have none."""
        if self.number is None or self._zero:
            return 0
        at = self.verifies % DRAWS
        if at == 0:
            seed, launch = self.launch.profile.file.seed, self.launch
            block = acceptance_draws(seed, launch.number, self.verifies // DRAWS, self.number, 1)
            self._draws = block[0].tolist()
            self._survivals = launch.survivals(self.prompt_class, self.held_tokens)
        return sum(self._draws[at] < survival for survival in self._survivals)

    def _meta_info(self) -> dict[str, Any]:
        cached = self.cached_tokens
        meta: dict[str, Any] = {
            "id": self.request_id,
            "finish_reason": self.finish,
            "prompt_tokens": len(self.input_ids),
            "weight_version": "default",
            "num_retractions": 0,
            "reasoning_tokens": 0,
            "completion_tokens": self.completed,
            "cached_tokens": cached,
            "cached_tokens_details": {"device": cached, "host": 0} if cached else None,
            "dp_rank": None,
        }
        return meta if self.finish is None else meta | self._totals()

    def _totals(self) -> dict[str, Any]:
        totals: dict[str, Any] = {
            "weight_versions": [{"version": "default", "start": 0, "end": self.completed}],
            "e2e_latency": self._latency_s,
        }
        proposed = self.verifies * (self.launch.setup.num_draft_tokens - 1)
        if proposed > 0:
            correct = self.correct_drafts
            totals |= {
                "spec_accept_rate": correct / proposed,
                "spec_accept_length": self.completed / self.verifies,
                "spec_num_correct_drafts": correct,
                "spec_num_proposed_drafts": proposed,
                "spec_verify_ct": self.verifies,
                "spec_correct_drafts_histogram": self.histogram,
            }
        return totals
