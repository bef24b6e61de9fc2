"""The one family of errors spectune tells its users about; every message says value, rule and way out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


class SpectuneError(Exception):
    """Something the user can mend: bad input, or an environment that lacks something."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input, and where.

    Attributes:
        message: Value, rule and way out, in one sentence.
        file: The file it stands in, if it came from one.
        line: 1-based line number in `file`, if known.
    """

    message: str
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        """`file:line: message`, the form editors and terminals can jump to."""
        if self.file is None:
            return self.message
        where = f"{self.file}:{self.line}" if self.line is not None else str(self.file)
        return f"{where}: {self.message}"


class InputProblems(SpectuneError):
    """All problems of one input at once, so that a user mends them in one pass."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        assert self.problems, "an error without a problem tells the user nothing"
        super().__init__("\n".join(str(problem) for problem in self.problems))
