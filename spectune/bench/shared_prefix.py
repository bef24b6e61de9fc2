"""A system prompt in front of some of the requests, as services have one: long, and the same every time."""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass

from spectune.bench.prompts import Message, Prompt

_OPENING = "You are the assistant of a public service. Keep to the house rules below in every answer you give.\n"
_TOPICS = (
    "opening hours", "refunds", "lost property", "delivery dates", "passwords", "invoices", "group bookings",
    "complaints", "accessibility", "medical questions", "legal questions", "data protection", "press enquiries",
    "membership cards", "damaged goods", "changes of address", "school classes", "job applications",
)  # fmt: skip
_WHEN = ("When somebody asks about {topic}", "If a message mentions {topic}", "For questions about {topic}")
_WHAT = (
    "answer in two or three sentences and offer the next step",
    "ask for the reference number before you say anything specific",
    "quote the current rule and say since when it holds",
    "name the responsible office and how it is reached",
    "stay friendly, do not guess, and say plainly what you do not know",
    "give an example, then the general rule, then the exceptions",
    "never promise a date; say what usually happens and what may delay it",
    "repeat the question in your own words first, so that a misunderstanding shows early",
)


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The beginning that a share of the requests have in common.

    Attributes:
        characters: Its length.
        share: Fraction of the requests of every class.
    """

    characters: int
    share: float

    @property
    def text(self) -> str:
        """House rules, always the same ones, cut at exactly this length."""
        rng = random.Random(0)  # noqa: S311 (repeatable on purpose)
        text, number = _OPENING, 0
        while len(text) < self.characters:
            number += 1
            text += f"{number}. {rng.choice(_WHEN).format(topic=rng.choice(_TOPICS))}, {rng.choice(_WHAT)}.\n"
        return text[: self.characters]


def prefixed(prompt: Prompt, prefix: str) -> Prompt:
    """The prompt with a text before its first message; roles stay, because not every template knows a system's."""
    if prompt.text is not None:
        return dataclasses.replace(prompt, text=f"{prefix}\n\n{prompt.text}")
    first, *others = prompt.messages
    return dataclasses.replace(prompt, messages=(Message(first.role, f"{prefix}\n\n{first.content}"), *others))
