"""The program that every command belongs to, and the options that several of them share."""

from __future__ import annotations

import difflib
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spectune import __version__

# What follows is another program's command line.
ANOTHERS = {"ignore_unknown_options": True, "allow_interspersed_args": False}

ALIKE = 0.75  # how much of two options' names has to agree for one to be a slip for the other


class Commands(TyperGroup):
    """Suggests for an option that does not exist only what may well be meant, not what shares a few letters with it."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            written, near = getattr(error, "option_name", None), getattr(error, "possibilities", None)
            if isinstance(written, str) and near:
                near[:] = [one for one in near if alike(written, one)]
            raise


def alike(written: str, option: str) -> bool:
    """Whether an option may be meant by what was written."""
    one, other = (name.lstrip("-").lower() for name in (written, option))
    return difflib.SequenceMatcher(None, one, other).ratio() >= ALIKE


app = typer.Typer(
    name="spectune",
    cls=Commands,
    help="Find the fastest SGLang launch configuration, with or without speculative decoding, by launching the real "
    "engine and measuring it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
engine_app = typer.Typer(
    help="Engine environments that spectune installs.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(engine_app, name="engine")


class EngineKind(StrEnum):
    """Engines a space can be run on instead of its own."""

    SIMULATED = "simulated"


class ExecutorKind(StrEnum):
    """What starts the workers of a shared study."""

    LOCAL = "local"
    SLURM = "slurm"


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]
TorchIndex = Annotated[
    str | None,
    typer.Option("--torch-index", metavar="URL", help="Package index to take torch from, such as a CPU-only one."),
]
STORAGE_VARIABLE = "SPECTUNE_STORAGE"
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help=f"Database that several workers share the study through; better in ${STORAGE_VARIABLE} where it holds a "
        "password.",
    ),
]
OtherEngine = Annotated[
    bool, typer.Option("--allow-other-engine", help="Join a shared study with another engine than it was begun with.")
]
Place = Annotated[
    str | None,
    typer.Option(
        "--place",
        metavar="NAME",
        help="With --storage: the machine the launches are made on, where its host name does not tell (Kubernetes).",
    ),
]
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="Name of a study in ./studies, or its folder.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Options before any command."""
    if version:
        print(f"spectune {__version__}")
        raise typer.Exit
