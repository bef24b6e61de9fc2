"""What is kept of a launch: the files under `trials/` are the truth, everything else is derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from spectune.analysis.measurement import LevelMeasurement
from spectune.blotting import blotted
from spectune.engines.protocol import Effective, LaunchCommand, Mismatch
from spectune.errors import SpectuneError
from spectune.machine import Difference, Others
from spectune.search.storage.steps import SCHEMA, DamagedRecord, Role, Step, check_schema, look_of
from spectune.search.storage.worker_variables import Reached
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate
from spectune.typed_json import count_of, require_types, words_of

LONGEST_S = 1e9
REQUIRED_SECONDS = ("startup", "measuring", "shutdown", "total")


class Status(StrEnum):
    """How a launch ended."""

    OK = "ok"
    FAILED = "failed"
    SUSPECT = "suspect"  # it ran, but not as asked: shown, never recommended or exported


@dataclass(frozen=True)
class Seconds:
    """Where the wall time of one launch went; `own` is spectune's, what remains of the total."""

    startup: float
    measuring: float
    shutdown: float
    total: float
    checking: float = 0.0

    @property
    def own(self) -> float:
        """Seconds in which the engine neither started, was checked, was measured nor ended."""
        return self.total - self.startup - self.checking - self.measuring - self.shutdown


@dataclass(frozen=True)
class TrialRecord:
    """One launch of one candidate, measured at every level (`result.json`).

    Attributes:
        trial: Its number in the study, from 0.
        launch_index: How many launches the study had begun before it, those that do not count any more among them.
        why: Why it was made, in words.
        started_at: ISO 8601 time in UTC.
        prompts_end: Prompts the study had used when it ended; the next launch goes on from there.
        failure: What went wrong; None unless `status` is failed.
        suspect: What the engine reported differently from what was asked, and what the client and the engine counted
            differently.
        environment_reached: The launch's variables, read back from its workers.
        effective: What the engine really ran.
        notes: What a reader should know of it, in sentences.
        environment_changes: How the machine was not what it was when the study began.
        others: Level → what other programs used of the machine while it was measured.
        place: Where it was made: the name of a machine, or of a group of its GPUs; empty where a study has only one.
        look: For which look at the question it was made: the second, where the first left it open.
    """

    trial: int
    role: Role
    candidate: Candidate
    launch_index: int
    why: str
    started_at: str
    status: Status
    seconds: Seconds
    command: LaunchCommand
    prompts_end: int = 0
    failure: Failure | None = None
    suspect: tuple[Mismatch, ...] = ()
    levels: tuple[LevelMeasurement, ...] = field(default=())
    environment_reached: tuple[Reached, ...] = ()
    effective: Effective = field(default_factory=Effective)
    notes: tuple[str, ...] = ()
    environment_changes: tuple[Difference, ...] = ()
    others: Mapping[str, Others] = field(default_factory=dict)
    place: str = ""
    look: int = 1

    @property
    def step(self) -> Step:
        """The launch as it was before it was made."""
        return Step(self.trial, self.role, self.candidate, self.why, self.place, self.look)

    def level(self, name: str) -> LevelMeasurement | None:
        """Return the measurement at the named level, None where there is none."""
        return next((level for level in self.levels if level.level == name), None)

    def without(self, secrets: Iterable[str]) -> TrialRecord:
        """Return the record as it may be kept and shown: secrets are blotted out of all but what it is known by."""
        return replace(blotted(self, secrets), candidate=self.candidate, place=self.place)

    def to_json(self) -> dict[str, Any]:
        """Return the content of `result.json`; the same for a record that was read from one."""
        seconds = Seconds(**{name: round(value, 3) for name, value in asdict(self.seconds).items()})
        return {
            "schema": SCHEMA,
            "trial": self.trial,
            "role": self.role.value,
            **self.candidate.to_json(),
            "launch_index": self.launch_index,
            "why": self.why,
            "look": self.look,
            "started_at": self.started_at,
            "status": self.status.value,
            "prompts_end": self.prompts_end,
            "failure_class": self.failure.failure_class.value if self.failure else None,
            "failure_message": self.failure.message if self.failure else None,
            "failure_excerpt": self.failure.excerpt if self.failure else None,
            "suspect": [{"field": m.field, "wanted": m.wanted, "got": m.got} for m in self.suspect],
            "environment_reached": [entry.to_json() for entry in self.environment_reached],
            "effective": asdict(self.effective),
            "notes": list(self.notes),
            "startup_s": round(self.seconds.startup, 3),
            "seconds": {**asdict(seconds), "own": round(seconds.own, 3)},
            "command": {
                "argv": list(self.command.argv),
                "env": dict(self.command.env),
                "unset": list(self.command.unset),
            },
            "levels": [level.to_json() for level in self.levels],
            "environment_changes": [change.to_json() for change in self.environment_changes],
            "others": {level: used.to_json() for level, used in self.others.items()},
            "place": self.place,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], source: str) -> TrialRecord:
        """Read the content of `result.json`.

        Raises:
            SpectuneError: It was written by a newer spectune.
            DamagedRecord: It lacks something.
        """
        check_schema(content, source)
        try:
            seconds = {name: _seconds_of(content["seconds"][name]) for name in REQUIRED_SECONDS}
            seconds["checking"] = _seconds_of(content["seconds"].get("checking", 0.0))
            failure = None
            if content["failure_class"] is not None:
                words = content["failure_message"], content["failure_excerpt"]
                failure = require_types(Failure(FailureClass(content["failure_class"]), *words))
            command = content["command"]
            return cls(
                trial=count_of(content["trial"]),
                role=Role(content["role"]),
                candidate=Candidate.from_json(content),
                launch_index=count_of(content["launch_index"]),
                why=words_of(content["why"]),
                look=look_of(content.get("look", 1)),
                started_at=words_of(content["started_at"]),
                status=Status(content["status"]),
                seconds=Seconds(**seconds),
                command=LaunchCommand(
                    tuple(map(words_of, command["argv"])),
                    {words_of(name): words_of(value) for name, value in command["env"].items()},
                    tuple(map(words_of, command["unset"])),
                ),
                prompts_end=count_of(content["prompts_end"]),
                failure=failure,
                suspect=tuple(require_types(Mismatch(**entry)) for entry in content["suspect"]),
                levels=tuple(LevelMeasurement.from_json(level) for level in content["levels"]),
                environment_reached=tuple(
                    require_types(Reached(**entry)) for entry in content.get("environment_reached", ())
                ),
                effective=_effective(content.get("effective", {})),
                notes=tuple(map(words_of, content.get("notes", ()))),
                environment_changes=tuple(
                    require_types(Difference(**entry)) for entry in content.get("environment_changes", ())
                ),
                others={words_of(level): Others.from_json(entry) for level, entry in content.get("others", {}).items()},
                place=words_of(content.get("place", "")),
            )
        except SpectuneError as error:
            raise DamagedRecord(f"{source} is damaged: {error}") from None
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
            raise DamagedRecord(f"{source} is damaged ({type(error).__name__}: {error})") from None


Launch = Step | TrialRecord
"""One that is being made, or a finished one."""


def _effective(content: Mapping[str, Any]) -> Effective:
    if not content:  # written before it was kept
        return Effective()
    graphs = {words_of(kind): tuple(map(count_of, sizes)) for kind, sizes in content["graph_batches"].items()}
    told = Effective(
        graphs, content["kv_tokens"], content["max_running_requests"], dict(content["backends"]),
        dict(content.get("nccl", {})),
    )  # fmt: skip
    return require_types(told)


def _seconds_of(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a time must be a number, but got {value!r}")
    if not 0 <= value <= LONGEST_S:
        raise ValueError(f"a time cannot be {value:g} seconds")
    return float(value)
