"""Which token each id stands for, from tokenizer.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

TOKENIZER = "tokenizer.json"
LARGEST = 256 * 2**20  # bytes


@dataclass(frozen=True)
class TokenIds:
    """A tokenizer's file; two with the same bytes are the same tokenizer."""

    text: bytes

    @cached_property
    def by_token(self) -> dict[str, int] | None:
        """Token → id, added tokens included; None for a file of another form."""
        try:
            content = json.loads(self.text)
            found = _vocabulary(content["model"]["vocab"]) | _added(content.get("added_tokens") or [])
            return {token: index for token, index in found.items() if type(index) is int}
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            return None


def read_token_ids(folder: Path) -> TokenIds | None:
    """Return the tokenizer in a folder; None when there is none to read."""
    file = folder / TOKENIZER
    try:
        return TokenIds(file.read_bytes()) if file.is_file() and file.stat().st_size <= LARGEST else None
    except OSError:
        return None


def compared(one: TokenIds, other: TokenIds) -> tuple[int, list[tuple[int, str, str]]]:
    """Return how many ids both know, and which mean different tokens; ids of one alone are padding or additions."""
    if one.text == other.text:
        return 0, []
    ours, theirs = ({index: token for token, index in (side.by_token or {}).items()} for side in (one, other))
    shared = sorted(ours.keys() & theirs.keys())
    different = [(index, ours[index], theirs[index]) for index in shared if ours[index] != theirs[index]]
    return len(shared), different


def _vocabulary(vocabulary: Any) -> dict[str, int]:
    if isinstance(vocabulary, list):  # Unigram: pairs of token and score, the id being the place
        return {entry[0]: index for index, entry in enumerate(vocabulary)}
    return dict(vocabulary)


def _added(entries: list[Any]) -> dict[str, int]:
    return {entry["content"]: entry["id"] for entry in entries}
