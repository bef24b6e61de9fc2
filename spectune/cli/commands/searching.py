"""Commands that begin a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectune.cli.idle_options import given_of, refuse_idle
from spectune.cli.numbers import whole
from spectune.cli.program import EngineKind, ExecutorKind, JsonFlag, OtherEngine, Place, Storage, TorchIndex, app
from spectune.sampler_names import GUIDED, check_sampler

NOT_FOR_A_DRY_RUN = (
    "study", "storage", "takeover", "other_engine", "place", "executor", "nodes", "slurm", "torch_index",
)  # fmt: skip
FOR_SHARED = "is for a study that several workers share: add --storage URL, or leave it out"
FOR_AN_INTERPRETER = "is for an SGLang on GPUs: leave it out, or --runtime"


@app.command(short_help="Launch, measure and compare until there is an answer.")
def search(
    context: typer.Context,
    space: Annotated[
        str,
        typer.Argument(metavar="SPACE", help="Search space file, or the name of a shipped one, such as quickstart."),
    ],
    study: Annotated[
        str | None, typer.Option("--study", metavar="NAME", help="Name of the study; by default the space's.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", parser=whole(1), help="Launches at most; by default the space's budget."),
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(
            "--sampler",
            metavar="NAME",
            help="What chooses the next candidate: guided, which models what was measured, or Optuna's tpe, gp, nsga2, "
            "random, grid or qmc.",
        ),
    ] = GUIDED,
    warm_start: Annotated[
        str | None,
        typer.Option(
            "--warm-start",
            metavar="STUDY",
            help="Begin with what an earlier study of the same model has learned; nothing of it is counted.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check the space and show what would be launched; needs neither GPU nor engine."
        ),
    ] = False,
    with_engine: Annotated[
        bool, typer.Option("--with-engine", help="With --dry-run: have the installed SGLang's own resolver check it.")
    ] = False,
    engine: Annotated[
        EngineKind | None,
        typer.Option("--engine", help="Let a model of a machine answer, whatever engine the space names."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME|FILE",
            help="The simulated machine, of `spectune profiles` or a file; by default the space's, else theirs.",
        ),
    ] = None,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Simulate without waiting: seconds instead of hours.")
    ] = False,
    storage: Storage = None,
    takeover: Annotated[
        str,
        typer.Option(
            "--takeover-after",
            metavar="TIME",
            help="With --storage: a worker silent for so long (90s, 10m, 1h) is lost, and others make its launch.",
        ),
    ] = "10m",
    other_engine: OtherEngine = False,
    place: Place = None,
    executor: Annotated[
        ExecutorKind | None,
        typer.Option("--executor", help="With --storage: start workers on this machine or through Slurm, and follow."),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes", metavar="N", parser=whole(1), help="With --executor: how many workers, each with an engine."
        ),
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            "--slurm",
            metavar="KEY[=VALUE]",
            help="With --executor slurm, repeatable: an option of sbatch, such as partition=gpu.",
        ),
    ] = None,
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Launch, measure and compare candidates until there is an answer; the same command continues a study.

    Exit code 1: the study ended without an answer, which may be that no launch keeps the space's constraints.
    """
    check_sampler(sampler, learns=warm_start is not None)
    from spectune.cli.opening import Asked, shared_by

    asked = Asked(
        space, trials, simulated=engine is not None, profile=profile, virtual=virtual, sampler=sampler,
        warm_start=warm_start,
    )  # fmt: skip
    if dry_run and (idle := given_of(context, NOT_FOR_A_DRY_RUN)):
        from spectune.cli.terminal import PROGRESS

        PROGRESS.print(f"note: a dry run makes no use of {' and '.join(idle)}", markup=False)
    if with_engine:
        from spectune.cli.refereeing import preview_with_engine

        raise typer.Exit(preview_with_engine(asked, dry_run=dry_run, as_json=json_output))
    if dry_run:
        from spectune.cli.previewing import preview

        raise typer.Exit(preview(asked, as_json=json_output))
    from spectune.cli.crewing import crew_by

    shared = shared_by(storage, takeover=takeover, other_engine=other_engine, place=place)
    if shared is None:
        refuse_idle(context, ("takeover", "other_engine", "place"), FOR_SHARED)
    crew = crew_by(executor, nodes=nodes, slurm=slurm or [], shared=shared)
    if shared is not None:
        from spectune.cli.sharing import search_shared

        done = search_shared(asked, shared, crew, study=study, torch_index=torch_index, as_json=json_output)
        raise typer.Exit(done)
    from spectune.cli.searching import run_search

    raise typer.Exit(run_search(asked, study=study, torch_index=torch_index, as_json=json_output))


@app.command(short_help="Join a study that several machines share.")
def worker(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Name of the study in the database.")],
    storage: Storage = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space", metavar="SPACE", help="The study's space file; needed where its prompts are files beside it."
        ),
    ] = None,
    other_engine: OtherEngine = False,
    place: Place = None,
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Make launches of a study that `spectune search --storage` began, on this machine, until the study ends.

    Exit code 0 as well where the study ends without an answer.
    """
    from spectune.cli.opening import require_shared
    from spectune.cli.sharing import run_worker

    shared = require_shared(storage, other_engine=other_engine, place=place)
    raise typer.Exit(run_worker(study, shared, space_file=space, torch_index=torch_index, as_json=json_output))


@app.command(short_help="Write a first search space for a model and its drafters.")
def init(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="DIR|NAME", help="The model to serve: its folder, or its name on the Hugging Face hub."
        ),
    ],
    drafter: Annotated[
        list[str] | None,
        typer.Option(
            "--drafter",
            metavar="DIR|NAME",
            help="Drafter to search, repeatable; by default the model's own draft layers, or n-gram lookup, which "
            "copies from the text so far.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the study; by default the model's.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default NAME.yaml here."),
    ] = None,
    python: Annotated[str, typer.Option("--python", metavar="PROGRAM", help="The Python that has SGLang.")] = "python3",
    runtime: Annotated[
        str | None,
        typer.Option(
            "--runtime",
            metavar="NAME",
            help="Instead of --python: an engine that spectune installs; cpu-reference needs no GPU.",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", metavar="N", parser=whole(1), help="GPUs of a launch; by default all that are here."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", metavar="GPU", help="Their model: h100, h200, b200 or rtx-pro-6000; by default this machine's."
        ),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Write a commented search space: what is worth searching, by the models' files and the GPUs.

    Drafters that cannot work are left out, with the reason.
    """
    if runtime is not None:
        refuse_idle(context, ("python", "gpus", "gpu"), FOR_AN_INTERPRETER)
    from spectune.cli.initializing import run_init

    done = run_init(
        model, drafter or [], name=name, output=output, python=python, runtime=runtime, gpus=gpus, gpu=gpu,
        as_json=json_output,
    )  # fmt: skip
    raise typer.Exit(done)
