"""Options that were given and would change nothing: nobody is to believe that they did."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from spectune.errors import SpectuneError

GIVEN = "COMMANDLINE"  # name of click's ParameterSource, which Typer does not hand on


def given_of(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Return those of some options that stand on the command line, as they are written there.

    Args:
        context: Of the command.
        names: Of its parameters.
    """
    options = {one.name: one.opts[0] for one in context.command.params if one.name is not None}
    sources = ((name, context.get_parameter_source(name)) for name in names)
    return [options[name] for name, source in sources if source is not None and source.name == GIVEN]


def refuse_idle(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options that change nothing here.

    Args:
        context: Of the command.
        names: Of its parameters.
        why: What they are for, and the way out.

    Raises:
        SpectuneError: One of them was given.
    """
    for option in given_of(context, names):
        raise SpectuneError(f"{option} {why}")
