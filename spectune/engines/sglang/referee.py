"""SGLang's own resolver as referee: what it makes of launches, about 20 ms each after a few seconds of loading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang.arguments import LAUNCHER
from spectune.engines.sglang.asked_script import AskedScript
from spectune.engines.sglang.interpreter import Interpreter

LOADING_S, JUDGING_S = 600.0, 120.0  # a resolver that takes longer hangs


@dataclass(frozen=True)
class Verdict:
    """What the resolver said of one launch.

    Attributes:
        accepted: Whether it would go on to start the engine.
        message: Its words when it would not.
        resolved: Field → value when it would.
    """

    accepted: bool
    message: str | None = None
    resolved: Mapping[str, Any] = field(default_factory=dict)


class Referee:
    """A process that has loaded the installed SGLang, for as long as there are questions; a context manager."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._script = AskedScript(
            interpreter, "referee.py", complaint=f"the SGLang of {interpreter.python} cannot be asked"
        )

    def __enter__(self) -> Self:
        """Wait until SGLang is loaded.

        Raises:
            SpectuneError: It cannot be.
        """
        try:
            self._script.answer(LOADING_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def judge(self, command: LaunchCommand) -> Verdict:
        """Ask about one launch.

        Raises:
            SpectuneError: The process is gone.
        """
        launcher, argv = command.argv[1 : 1 + len(LAUNCHER)], command.argv[1 + len(LAUNCHER) :]
        assert launcher == LAUNCHER, "a launch of SGLang"
        question = {"argv": argv, "env": dict(command.env), "unset": command.unset}
        answer = self._script.ask(question, JUDGING_S)
        return Verdict(answer["status"] == "ok", answer["message"], answer["resolved"])

    def close(self) -> None:
        """End the process."""
        self._script.close()
