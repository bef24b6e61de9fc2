"""Which beginnings of prompts the engine has seen; it does not prefill them again."""

from __future__ import annotations

from collections.abc import Sequence

PAGE = 16  # tokens; finer pages would only cost time here


class PrefixCache:
    """Remembers prompts page by page until it is flushed; what the KV cache would have to evict is not modelled."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._pages: set[int] = set()

    def take(self, input_ids: Sequence[int]) -> int:
        """Remember a prompt; returns how many of its tokens were known, at least one being always computed."""
        if not self._enabled:
            return 0
        known, state, matching = 0, 0, True
        for end in range(PAGE, len(input_ids) + 1, PAGE):
            state = hash((state, *input_ids[end - PAGE : end]))
            matching = matching and state in self._pages
            known = end if matching else known
            self._pages.add(state)
        return min(known, len(input_ids) - 1)

    def flush(self) -> None:
        """Forget all of it."""
        self._pages.clear()
