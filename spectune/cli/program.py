"""The program that every command belongs to, and the options that several of them share."""

from __future__ import annotations

import difflib
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spectune import __version__
from spectune.cli.exhausted import exhausted
from spectune.errors import SpectuneError

# What follows is another program's command line.
ANOTHERS = {"ignore_unknown_options": True, "allow_interspersed_args": False}

ORDER = (
    "search", "init", "studies", "report", "export", "breakeven", "compare", "check", "explain", "diagnose", "doctor",
    "engine", "worker", "profiles", "simulate", "calibrate",
)  # fmt: skip
"""Of the commands in `--help`: what most people need first."""
ABOUT = """\
Find the fastest SGLang launch configuration, with or without speculative decoding, by launching the real engine and
measuring it. Without a GPU, `spectune search quickstart` shows all of it in some minutes.

A search space is a YAML file: what may be launched, at which load it is measured, what is wanted of it. A study, a
folder in ./studies, is what came of searching one. A candidate is one set of SGLang's arguments and variables; a launch
starts it once and measures it. In speculative decoding a drafter proposes tokens and the target, the model that is
served, verifies them; the accept length is the mean number of tokens that one verify gives.

Exit codes of all commands: 0 done; 1 done, and the answer is no or there is none, as the command's --help says; 2 bad
input or environment; 130 interrupted.
"""
ALIKE = 0.75  # how much of two options' names has to agree for one to be a slip for the other


class Commands(TyperGroup):
    """Lists commands by need; suggests for a slip what may well be meant, not what shares a few letters with it."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of `--help`."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            written, near = getattr(error, "option_name", None), getattr(error, "possibilities", None)
            if isinstance(written, str) and near:
                near[:] = [one for one in near if alike(written, one)]
            raise
        except KeyboardInterrupt as interrupt:
            if (said := exhausted(interrupt)) is None:
                raise
            raise SpectuneError(said) from interrupt


def alike(written: str, option: str) -> bool:
    """Whether an option may be meant by what was written."""
    one, other = (name.lstrip("-").lower() for name in (written, option))
    return difflib.SequenceMatcher(None, one, other).ratio() >= ALIKE


app = typer.Typer(
    name="spectune",
    cls=Commands,
    help=ABOUT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
engine_app = typer.Typer(
    help="Install, list or remove the engine that needs no GPU.", no_args_is_help=True, rich_markup_mode=None
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
TORCH_INDEX_VARIABLE = "SPECTUNE_TORCH_INDEX"
TorchIndex = Annotated[
    str | None,
    typer.Option(
        "--torch-index",
        metavar="URL",
        help="Package index from which a runtime that has to be installed takes torch, such as one of CPU-only builds; "
        f"by default ${TORCH_INDEX_VARIABLE}, which is the place for one with a password, else pip's.",
    ),
]
STORAGE_VARIABLE = "SPECTUNE_STORAGE"
Storage = Annotated[
    str | None,
    typer.Option(
        "--storage",
        metavar="URL",
        help="Database through which several workers share the study: sqlite:///FILE or postgresql://…; by default "
        f"${STORAGE_VARIABLE}, which is the place for one with a password, else none.",
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
        help="With --storage: the machine that launches are made on; by default its host name, which does not tell in "
        "Kubernetes.",
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
