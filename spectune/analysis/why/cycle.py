"""What is said of one cycle: its parts, what targets ask of it, and figures that contradict each other."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.analysis.estimate import Estimate
from spectune.jsonable import Jsonable


@dataclass(frozen=True, slots=True)
class CycleParts(Jsonable):
    """Where the time of one draft+verify cycle goes; None where the study's launches do not tell a part apart.

    Attributes:
        draft_ms: All S draft steps.
        verify_ms: The target's forward over the drafted tokens; with the host's time where that is not told apart.
        host_ms: What every speculative cycle takes beyond a plain step whatever it drafts: host, sampling, the
            drafter's catching up. Told only where cycle and plain step both ran in graphs, or both outside.
        unexplained_ms: What the measured cycle takes beyond the sum of the fitted parts; may be negative.
        words: How it was told apart, or why it was not.
    """

    draft_ms: Estimate | None
    verify_ms: Estimate | None
    host_ms: Estimate | None
    unexplained_ms: float
    words: str


@dataclass(frozen=True, slots=True)
class Needed(Jsonable):
    """What a wanted speed asks of the drafter.

    Attributes:
        target: The wanted speed of one request, tok/s.
        accept_length: Accept length that gives it at the measured cycle, with the interval of the cycle.
        reachable: Whether it is within the bound.
        verdict: "reached", "short", "perfect drafter" or "out of reach"; "unclear" where the interval of the cycle
            leaves open whether it is reached, or out of reach.
        words: The same as a sentence.
    """

    target: float
    accept_length: Estimate
    reachable: bool
    verdict: str
    words: str


@dataclass(frozen=True, slots=True)
class VerifyAlone(Jsonable):
    """The limit that a free drafter and a free host would reach: the verify is all there is of a cycle.

    Attributes:
        cycle_ms: The verify.
        break_even: Accept length needed then.
        speed_tok_s: Speed at the measured accept length then.
        missing_ms: What the measured cycle takes beyond it: draft and host.
        needed: What each target would ask for then.
        words: The same as sentences.
    """

    cycle_ms: float
    break_even: float
    speed_tok_s: float
    missing_ms: float
    needed: tuple[Needed, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Discrepancy(Jsonable):
    """Two figures of one level that cannot both be true.

    Attributes:
        between: Which: "inter_chunk", "engine_step", "bound" or "break_even".
        missing_ms: Cycle by accept length / speed minus the other one; None where it is not about a time.
        words: The figures and their difference, as a sentence.
    """

    between: str
    missing_ms: float | None
    words: str
