"""A launch before it is made: what, why and where, and which files of a launch are understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spectune.errors import SpectuneError
from spectune.space import Candidate
from spectune.typed_json import count_of, words_of

SCHEMA = 1
MOST_LOOKS = 1000


class DamagedRecord(SpectuneError):
    """What is written of a launch cannot be read; the way out depends on where it is kept."""


class Role(StrEnum):
    """Why a launch was made."""

    BASELINE = "baseline"
    SEARCH = "search"
    DRIFT = "drift"
    CONFIRM = "confirm"


@dataclass(frozen=True)
class Step:
    """A launch that is about to be made.

    Attributes:
        trial: Its number in the study, from 0.
        role: Why it is made.
        candidate: What is launched.
        why: Why it is made, in words.
        place: Where: the name of a machine, or of a group of its GPUs; empty where a study has only one.
        look: As in its record.
    """

    trial: int
    role: Role
    candidate: Candidate
    why: str
    place: str = ""
    look: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the content of `candidate.json`."""
        return {
            "schema": SCHEMA, "trial": self.trial, "role": self.role.value, "why": self.why, "place": self.place,
            "look": self.look, **self.candidate.to_json(),
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: Any, source: str) -> Step:
        """Read what `to_json` wrote.

        Raises:
            SpectuneError: It was written by a newer spectune.
            DamagedRecord: It lacks something.
        """
        check_schema(content, source)
        try:
            number, role, candidate = count_of(content["trial"]), Role(content["role"]), Candidate.from_json(content)
            place, look = words_of(content.get("place", "")), look_of(content.get("look", 1))
            return cls(number, role, candidate, words_of(content["why"]), place, look)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedRecord(f"{source} is damaged ({type(error).__name__}: {error})") from None


def look_of(value: Any) -> int:
    """Return the number of a look if it can be one.

    Raises:
        TypeError, ValueError: It cannot.
    """
    if not 1 <= count_of(value) <= MOST_LOOKS:
        raise ValueError(f"a look is from 1 to {MOST_LOOKS}, but got {value}")
    return int(value)


def check_schema(content: Any, source: str) -> None:
    """Refuse a file that is not a record, or one of a newer spectune.

    Raises:
        SpectuneError: It is a newer one.
        DamagedRecord: It is none.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("schema"), int):
        raise DamagedRecord(f"{source} is not a spectune record (no schema number)")
    if content["schema"] > SCHEMA:
        raise SpectuneError(
            f"{source} has schema {content['schema']}, this spectune reads up to {SCHEMA}; upgrade spectune to read it"
        )
