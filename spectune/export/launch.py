"""A launch without what belonged to its trial only: ports, and secrets that no file may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spectune.engines.protocol import LaunchCommand
from spectune.errors import SpectuneError
from spectune.withheld import hides_secret

TRIAL_ONLY = frozenset({"host", "port", "nccl-port"})

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Option:
    """One argument with its values; a switch has none.

    Attributes:
        name: Without dashes.
        values: The words that follow it.
    """

    name: str
    values: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The option as words of a command line."""
        return (f"--{self.name}", *self.values)


@dataclass(frozen=True)
class Launch:
    """What an exported file starts, host and port aside.

    Attributes:
        program: The words before the first option.
        options: In the order of the trial.
        env: Variables to set, by name.
        unset: Variables that must be absent.
        withheld_options: Names of options that were left out because they hold a secret.
        withheld_env: Names of variables left out for the same reason.
    """

    program: tuple[str, ...]
    options: tuple[Option, ...]
    env: tuple[tuple[str, str], ...]
    unset: tuple[str, ...]
    withheld_options: tuple[str, ...] = ()
    withheld_env: tuple[str, ...] = ()

    @classmethod
    def of(cls, command: LaunchCommand) -> Launch:
        """Return what remains of a trial's command once its ports and secrets are gone.

        Raises:
            SpectuneError: If a variable has a name no shell can export.
        """
        for name in (*command.env, *command.unset):
            if not _VARIABLE.fullmatch(name):
                raise SpectuneError(
                    f"a variable's name is made of letters, digits and underscores, but got {name!r}; "
                    "such a launch cannot be written as a shell script"
                )
        program, options = _split(command.argv)
        kept = [option for option in options if option.name not in TRIAL_ONLY]
        secret = [option.name for option in kept if hides_secret(option.name, option.values)]
        secret_env = sorted(name for name, value in command.env.items() if hides_secret(name, (value,)))
        return cls(
            program=program,
            options=tuple(option for option in kept if option.name not in secret),
            env=tuple((name, value) for name, value in sorted(command.env.items()) if name not in secret_env),
            unset=tuple(sorted(command.unset)),
            withheld_options=tuple(secret),
            withheld_env=tuple(secret_env),
        )

    def value(self, name: str) -> str | None:
        """Return the single value of an option, None where it is absent or has not exactly one."""
        found = next((option.values for option in self.options if option.name == name), ())
        return found[0] if len(found) == 1 else None


def _split(argv: Sequence[str]) -> tuple[tuple[str, ...], list[Option]]:
    first = next((index for index, word in enumerate(argv) if index and _is_option(word)), len(argv))
    return tuple(argv[:first]), list(_options(argv[first:]))


def _options(words: Sequence[str]) -> Iterator[Option]:
    starts = [index for index, word in enumerate(words) if _is_option(word)]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=False):
        name, joined, value = words[start][2:].partition("=")
        yield Option(name, ((value,) if joined else ()) + tuple(words[start + 1 : end]))


def _is_option(word: str) -> bool:
    return word.startswith("--") and len(word) > 2
