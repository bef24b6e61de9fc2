"""What a cause is, and what it is judged from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spectune.analysis.break_even import break_even_accept_length, cycle_ms_of
from spectune.analysis.diagnosis.running import Load, Running


class Cost(StrEnum):
    """What an action costs; cheapest first."""

    MEASUREMENT = "a measurement"
    FLAG = "a flag"
    RESTART = "a restart"
    DRAFTER = "another drafter"
    TRAINING = "more training"

    @property
    def rank(self) -> int:
        """Position among all costs, 0 for the cheapest."""
        return list(Cost).index(self)


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do next.

    Attributes:
        words: As a sentence without a full stop.
        cost: What it takes.
    """

    words: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause of slowness.

    Attributes:
        name: Short stable name.
        lost_tok_s: Tokens per second one request loses by it; None where nothing seen tells.
        evidence: What was seen, with its arithmetic.
        actions: What helps, cheapest first.
        at_most: Whether `lost_tok_s` is an upper bound only.
        fatal: Whether it ended the server.
    """

    name: str
    lost_tok_s: float | None
    evidence: str
    actions: tuple[Action, ...]
    at_most: bool = False
    fatal: bool = False


STUDY = "STUDY"
"""Stands in commands for the name of a study, where none is known."""


@dataclass(frozen=True, slots=True)
class Case:
    """Everything a cause is judged from.

    Attributes:
        running: The server.
        load: The load it is judged at; None when nothing usable was seen.
        baseline_tok_s: Speed of one request without speculation at that load, if known.
        verify_ms: Time of one verify from elsewhere, such as a profile.
        shown_slower: Whether launches have shown it to be slower than the baseline there; None where there is no
            interval to say so. Where there is one, it is also said elsewhere what else was launched and is faster.
        foreseen: Whether other ways to draft were foreseen from other launches: then none is advised by rule of thumb.
        study: Name of the study that the server is a launch of, for commands.
    """

    running: Running
    load: Load | None
    baseline_tok_s: float | None = None
    verify_ms: float | None = None
    shown_slower: bool | None = None
    foreseen: bool = False
    study: str = STUDY

    @property
    def accept_length(self) -> float | None:
        """Accept length at the load; None without speculation."""
        return None if self.load is None or self.running.algorithm is None else self.load.accept_length

    @property
    def speed(self) -> float | None:
        """Decode speed at the load."""
        return None if self.load is None else self.load.decode_speed

    @property
    def break_even(self) -> float | None:
        """Break-even accept length at the load, if the baseline is known."""
        if self.baseline_tok_s is None or self.accept_length is None or not self.speed:
            return None
        return break_even_accept_length(self.baseline_tok_s, cycle_ms_of(self.accept_length, self.speed))

    @property
    def behind(self) -> float | None:
        """Tokens per second behind the baseline; None when not behind, or not known."""
        if self.baseline_tok_s is None or self.speed is None or self.speed >= self.baseline_tok_s:
            return None
        return self.baseline_tok_s - self.speed
