"""Commands that begin a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectune.cli.program import EngineKind, ExecutorKind, JsonFlag, OtherEngine, Place, Storage, TorchIndex, app


@app.command(short_help="Launch, measure and compare until there is an answer.")
def search(
    space: Annotated[str, typer.Argument(metavar="SPACE", help="Search space file, or the name of a shipped one.")],
    study: Annotated[
        str | None, typer.Option("--study", metavar="NAME", help="Name of the study; the space's by default.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="Launches at most, instead of the space's budget.")
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(
            "--sampler", metavar="NAME", help="What proposes candidates: guided, tpe, gp, nsga2, random, grid or qmc."
        ),
    ] = "guided",
    warm_start: Annotated[
        str | None,
        typer.Option("--warm-start", metavar="STUDY", help="Begin with what an earlier study has learned, discounted."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the space and show what would be launched; needs no engine.")
    ] = False,
    with_engine: Annotated[
        bool, typer.Option("--with-engine", help="With --dry-run: have the installed SGLang's own resolver check it.")
    ] = False,
    engine: Annotated[
        EngineKind | None,
        typer.Option("--engine", help="Run it on a model of a machine, whatever engine the space names."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME|FILE", help="The simulated machine; see `spectune profiles`."),
    ] = None,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Simulate in virtual time: seconds instead of hours.")
    ] = False,
    storage: Storage = None,
    takeover: Annotated[
        str,
        typer.Option(
            "--takeover-after",
            metavar="TIME",
            help="With --storage: a worker that is silent for so long is lost, and others make its launch.",
        ),
    ] = "10m",
    other_engine: OtherEngine = False,
    place: Place = None,
    executor: Annotated[
        ExecutorKind | None,
        typer.Option("--executor", help="With --storage: start workers on this machine or through Slurm, and follow."),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=1, help="With --executor: how many workers, each with its own engine.")
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option("--slurm", metavar="KEY[=VALUE]", help="Repeatable; an option of sbatch, such as partition=gpu."),
    ] = None,
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Launch, measure and compare candidates until there is an answer; the same command continues a study."""
    from spectune.cli.opening import Asked, shared_by

    asked = Asked(
        space, trials, simulated=engine is not None, profile=profile, virtual=virtual, sampler=sampler,
        warm_start=warm_start,
    )  # fmt: skip
    if with_engine:
        from spectune.cli.refereeing import preview_with_engine

        raise typer.Exit(preview_with_engine(asked, dry_run=dry_run, as_json=json_output))
    if dry_run:
        from spectune.cli.previewing import preview

        raise typer.Exit(preview(asked, as_json=json_output))
    from spectune.cli.crewing import crew_by

    shared = shared_by(storage, takeover=takeover, other_engine=other_engine, place=place)
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
        typer.Option("--space", metavar="SPACE", help="The study's space file, where its prompts are files beside it."),
    ] = None,
    other_engine: OtherEngine = False,
    place: Place = None,
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Make launches of a study that `spectune search --storage` began, on this machine, until the study ends."""
    from spectune.cli.opening import require_shared
    from spectune.cli.sharing import run_worker

    shared = require_shared(storage, other_engine=other_engine, place=place)
    raise typer.Exit(run_worker(study, shared, space_file=space, torch_index=torch_index, as_json=json_output))


@app.command(short_help="Write a first search space for a model and its drafters.")
def init(
    model: Annotated[str, typer.Option("--model", metavar="DIR|NAME", help="The target: a folder, or a hub name.")],
    drafter: Annotated[
        list[str] | None,
        typer.Option(
            "--drafter",
            metavar="DIR|NAME",
            help="Repeatable; without it the model's own draft layers, or n-gram lookup.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of the study; the model's by default.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of NAME.yaml here.")
    ] = None,
    python: Annotated[
        str, typer.Option("--python", metavar="PROGRAM", help="The interpreter that has sglang.")
    ] = "python3",
    runtime: Annotated[
        str | None,
        typer.Option("--runtime", metavar="NAME", help="Instead: a runtime that spectune installs, cpu-reference."),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, help="Of a launch; all that are here by default.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="GPU", help="Which, as for explain; by default this machine's.")
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Write a commented search space: what the checkpoints and the GPUs say is worth searching, the preflight done."""
    from spectune.cli.initializing import run_init

    done = run_init(
        model, drafter or [], name=name, output=output, python=python, runtime=runtime, gpus=gpus, gpu=gpu,
        as_json=json_output,
    )  # fmt: skip
    raise typer.Exit(done)
