"""Where the time of one launch goes."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Literal

from spectune.search.storage.records import Seconds

Part = Literal["startup", "checking", "measuring", "shutdown"]


class Account:
    """Seconds of the launch's own clock, by what they were spent on."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._began = now, now()
        self._spent: defaultdict[Part, float] = defaultdict(float)

    @contextlib.contextmanager
    def spending_on(self, part: Part) -> Iterator[None]:
        """Count what happens inside, whatever becomes of it."""
        began = self._now()
        try:
            yield
        finally:
            self._spent[part] += self._now() - began

    def closed(self) -> Seconds:
        """Return what was spent from the beginning until now."""
        spent = self._spent
        return Seconds(
            startup=spent["startup"], checking=spent["checking"], measuring=spent["measuring"],
            shutdown=spent["shutdown"], total=self._now() - self._began,
        )  # fmt: skip
