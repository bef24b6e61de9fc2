"""Token ids of an engine without a tokenizer: what prompts count, what answers say, and the class a prompt carries."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence

VOCABULARY = 100_000
_CHARACTERS_PER_TOKEN = 4
_FIRST_CLASS_ID = 2_000_000_000  # beyond any vocabulary, within 32 bits
_CLASS_IDS = 100_000_000
_SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "wo", "ya", "zu")


def class_id(prompt_class: str) -> int:
    """Return the id that, in front of a prompt, tells the simulated engine its class."""
    return _FIRST_CLASS_ID + zlib.crc32(prompt_class.encode()) % _CLASS_IDS


def class_of(input_ids: Sequence[int], classes: Iterable[str]) -> str | None:
    """Return the class a prompt carries, None if none of `classes` stands in front of it."""
    if not input_ids or input_ids[0] < _FIRST_CLASS_ID:
        return None
    return next((name for name in classes if class_id(name) == input_ids[0]), None)


def count(text: str) -> int:
    """Return how many ids `encode` returns, without making them."""
    return max(1, -(-len(text.encode("utf-8", "replace")) // _CHARACTERS_PER_TOKEN))


def encode(text: str) -> list[int]:
    """Return one id for every four characters of a text, at least one."""
    data = text.encode("utf-8", "replace")
    pieces = range(0, max(1, len(data)), _CHARACTERS_PER_TOKEN)
    return [zlib.crc32(data[at : at + _CHARACTERS_PER_TOKEN]) % VOCABULARY for at in pieces]


def reply(input_ids: Sequence[int], variant: int | None, sampled: int | None = None) -> Iterator[int]:
    """Yield the ids of the answer to a prompt for ever, each made of everything before it, as a model's are.

    So a greedy answer is the same under every configuration, and the greedy answer to a prompt and the first tokens of
    an answer is how greedy decoding would have gone on with it.

    Args:
        input_ids: The prompt.
        variant: None for the greedy answer; any number for another one.
        sampled: How many first tokens follow the variant; None for all.
    """
    state = 0
    for token in input_ids:
        state = _after(state, token)
    turn = 0 if variant is None else 0x5BD1E995 * (variant + 1)
    for position in itertools.count():
        mixed = state ^ turn if sampled is None or position < sampled else state
        token = ((mixed | 1) * 6364136223846793005 + 1442695040888963407) % 2**64 // 2**33 % VOCABULARY
        yield token
        state = _after(state, token)


def _after(state: int, token: int) -> int:
    """Return a number that stands for all tokens so far and one more."""
    return zlib.crc32(token.to_bytes(8, "little", signed=True), state)


def decode(token: int) -> str:
    """Return the piece of text of an id: a blank and a word of two syllables."""
    return f" {_SYLLABLES[token % 16]}{_SYLLABLES[token // 16 % 16]}"
