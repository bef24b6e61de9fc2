"""What a launch holds for itself until it gives it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Held(ABC):
    """Given back by `release`, or at the end of a `with`."""

    @abstractmethod
    def release(self) -> None:
        """Give it back; doing it twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
