"""Why a launch failed, in the log's own words."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from spectune.counts import count
from spectune.errors import SpectuneError
from spectune.printable import one_line

TAIL_BYTES = 256 * 1024
EXCERPT_BEFORE, EXCERPT_AFTER = 10, 3  # lines
MAX_LINE = 400  # characters of a line that a message repeats

GUARD_KILLED = "the process that supervises the engine was killed, and the engine ended with it"

# Of a request: the engine is well and will say the same next time. 408 and 429 are about the moment.
_REFUSED = re.compile(r"HTTP 4(?!08|29)\d\d\b")
_TOO_LONG = re.compile(r"context length|exceeds the maximum allowed length")

Signature = tuple[str, str, str]
"""(regular expression for one log line, name of a `FailureClass`, sentence for people without a full stop)."""


class FailureClass(StrEnum):
    """What kind of failure it was; the search learns from it and the summary counts it."""

    MEMORY = "memory"
    UNSUPPORTED = "unsupported"
    DRAFTER = "drafter"
    CORRUPT = "corrupt"
    CRASH = "crash"
    HANG = "hang"
    NCCL = "nccl"
    STARTUP_TIMEOUT = "startup_timeout"
    PORT_IN_USE = "port_in_use"
    ENVIRONMENT = "environment"
    WORKER_LOST = "worker_lost"  # whoever made it was never heard of again

    @property
    def blames_candidate(self) -> bool:
        """False where the same candidate may well work next time, so that it deserves another try."""
        return self not in {FailureClass.PORT_IN_USE, FailureClass.STARTUP_TIMEOUT, FailureClass.ENVIRONMENT}


@dataclass(frozen=True)
class Failure:
    """A classified failure.

    Attributes:
        failure_class: Its kind.
        message: One line: what it means, then the decisive line of the log.
        excerpt: The decisive line with its neighbours, as they stand in the log.
    """

    failure_class: FailureClass
    message: str
    excerpt: str


class EngineFailed(SpectuneError):
    """The engine did not become, or did not stay, a server.

    Attributes:
        log_tail: The end of the engine's log.
    """

    default_class = FailureClass.CRASH

    def __init__(self, message: str, returncode: int | None, log_tail: str) -> None:
        super().__init__(message)
        self.returncode = returncode
        self.log_tail = log_tail

    def failure(self, signatures: Iterable[Signature]) -> Failure:
        """Classify it, see `classify`."""
        return classify(self.log_tail, self.returncode, signatures, self.default_class)


class EngineDied(EngineFailed):
    """The engine's first process ended.

    Attributes:
        returncode: Its exit code, negative for a signal; None when the supervisor was killed as well.
    """

    def __init__(self, returncode: int | None, log_tail: str) -> None:
        message = GUARD_KILLED if returncode is None else classify(log_tail, returncode, ()).message
        super().__init__(message, returncode, log_tail)

    def failure(self, signatures: Iterable[Signature]) -> Failure:
        """Classify it; the log of an engine that was ended with its supervisor does not know why."""
        if self.returncode is None:
            lines = self.log_tail.splitlines()
            return Failure(FailureClass.ENVIRONMENT, GUARD_KILLED, _excerpt(lines, len(lines) - 1))
        return super().failure(signatures)


class StartupTimeout(EngineFailed):
    """The engine was not ready in time, although its first process lives.

    Attributes:
        seconds: The time it was given.
    """

    default_class = FailureClass.STARTUP_TIMEOUT

    def __init__(self, seconds: float, log_tail: str, last_answer: str) -> None:
        message = (
            f"the engine was not ready within {seconds:g} s: {last_answer}. Allow more with engine.startup_timeout"
        )
        super().__init__(" ".join(message.split()), None, log_tail)
        self.seconds = seconds

    def failure(self, signatures: Iterable[Signature]) -> Failure:
        """Say that time was up, and add what the log says where a signature matches; that decides the class then."""
        found = _decisive(self.log_tail.splitlines(), signatures)
        if found is not None:
            return Failure(found.failure_class, f"{self}. {found.message}", found.excerpt)
        lines = self.log_tail.splitlines()
        return Failure(self.default_class, str(self), _excerpt(lines, len(lines) - 1))


def classify(
    log_text: str,
    returncode: int | None,
    signatures: Iterable[Signature],
    default: FailureClass = FailureClass.CRASH,
) -> Failure:
    """Say why an engine failed.

    The first signature that matches any line decides; its last match is the decisive line, because earlier ones may
    have been survived. Without a match the last exception of the log speaks, then its last line.

    Args:
        log_text: The end of the engine's log; any text.
        returncode: Exit code of the engine's first process, negative for a signal, None if it is not known (it may
            still be running).
        signatures: What the engine is known to say, most telling first.
        default: The class when no signature matches.
    """
    lines = log_text.splitlines()
    found = _decisive(lines, signatures)
    if found is not None:
        return found
    ending = describe_exit(returncode)
    last = _last_exception(lines)
    if last is None:
        last = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].strip()), None)
    if last is None:
        return Failure(default, f"{ending} without a word in its log", "")
    return Failure(default, f"{ending}: {one_line(lines[last], MAX_LINE)}", _excerpt(lines, last))


def classify_requests(errors: Sequence[str], where: str, sent: int, *, hangs: bool, excerpt: str = "") -> Failure:
    """Say why requests of an engine that lives failed, from what the client noted of each.

    Args:
        errors: What went wrong, an entry for each request that failed.
        where: Name of the level, for the message.
        sent: Requests that were sent.
        hangs: Whether the engine fell silent.
        excerpt: The end of the engine's log.
    """
    (words, _), *_ = Counter(errors).most_common(1) or [("no request was answered", 0)]
    message = f"at {where} {len(errors)} of {count(sent, 'request')} failed: {one_line(words, MAX_LINE)}"
    if hangs:
        return Failure(FailureClass.HANG, message, excerpt)
    if _TOO_LONG.search(words):
        advice = "use shorter prompts, fewer output_tokens or a longer context-length"
        return Failure(FailureClass.UNSUPPORTED, f"{message}; {advice}", excerpt)
    return Failure(FailureClass.UNSUPPORTED if _REFUSED.match(words) else FailureClass.CRASH, message, excerpt)


def describe_exit(returncode: int | None) -> str:
    """The end of a process in words."""
    if returncode is None:
        return "the engine gave no exit code"
    if returncode >= 0:
        return f"the engine ended with exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"the engine was ended by {name}"


def log_tail(path: Path, max_bytes: int = TAIL_BYTES) -> str:
    """The last whole lines of a log, at most `max_bytes` of it, of progress bars only the last state.

    Undecodable bytes are replaced; a log that cannot be read gives an empty text.
    """
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - max_bytes))
            tail = log.read(max_bytes)
    except OSError:
        return ""
    if size > max_bytes and b"\n" in tail:
        tail = tail.split(b"\n", 1)[1]
    lines = tail.decode(errors="replace").split("\n")
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)


def _decisive(lines: Sequence[str], signatures: Iterable[Signature]) -> Failure | None:
    """What the first signature that matches any line makes of the last such line."""
    for pattern, name, sentence in signatures:
        expression = re.compile(pattern)
        for index in range(len(lines) - 1, -1, -1):
            if expression.search(lines[index]):
                return Failure(
                    FailureClass(name), f"{sentence}: {one_line(lines[index], MAX_LINE)}", _excerpt(lines, index)
                )
    return None


def _last_exception(lines: Sequence[str]) -> int | None:
    """Index of the line that ends the last traceback: the first one after it that is not indented."""
    starts = [index for index, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if not starts:
        return None
    after = range(starts[-1] + 1, len(lines))
    return next((index for index in after if lines[index].strip() and not lines[index][0].isspace()), None)


def _excerpt(lines: Sequence[str], index: int) -> str:
    around = lines[max(0, index - EXCERPT_BEFORE) : index + EXCERPT_AFTER + 1]
    return "\n".join(line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} …" for line in around).strip("\n")
