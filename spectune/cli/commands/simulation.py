"""Commands of the simulated engine."""

from __future__ import annotations

from typing import Annotated

import typer

from spectune.cli.idle_options import refuse_idle
from spectune.cli.numbers import number, whole
from spectune.cli.program import ANOTHERS, JsonFlag, app

FIGURES = ("concurrency", "context_tokens", "output_tokens", "prompt_class", "json_output")
FOR_PREDICT = "is for --predict: add it, or leave this out"
FOR_SERVING = "is for serving: leave it out, or --predict"


@app.command(
    short_help="Serve or predict what a simulated machine would do.",
    context_settings=ANOTHERS,
)
def simulate(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGV", help="The arguments of `python -m sglang.launch_server`."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="NAME|FILE", help="The machine; `spectune profiles` lists the shipped and the default."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", parser=whole(1, 65535), help="Port to serve at; by default ARGV's."),
    ] = None,
    time_scale: Annotated[
        float,
        typer.Option(
            "--time-scale",
            metavar="F",
            parser=number,
            help="Seconds of the clock for a second of the machine: 0.1 is ten times as fast.",
        ),
    ] = 1.0,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="Print what the cost model says, and start nothing; needs --concurrency and --context-tokens.",
        ),
    ] = False,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="N", parser=whole(1), help="With --predict: requests in flight."),
    ] = None,
    context_tokens: Annotated[
        int | None,
        typer.Option(
            "--context-tokens", metavar="N", parser=whole(0), help="With --predict: tokens of each of them so far."
        ),
    ] = None,
    output_tokens: Annotated[
        int | None,
        typer.Option(
            "--output-tokens",
            metavar="N",
            parser=whole(2),
            help="With --predict: tokens of an answer, half of them in --context-tokens; adds what a search would "
            "measure under this load, the prefills of other requests included.",
        ),
    ] = None,
    prompt_class: Annotated[
        str | None,
        typer.Option(
            "--prompt-class",
            metavar="C",
            help="With --predict: kind of prompts, such as code, or builtin:mixed; by default none in particular.",
        ),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Serve, or predict, what a launch of SGLang would do on the machine of a profile. Nothing of it is measured.

    Exit code 1, with --predict: the launch would fail.
    """
    from spectune.cli.simulating import print_prediction, run_simulation

    idle, why = (("port", "time_scale"), FOR_SERVING) if predict else (FIGURES, FOR_PREDICT)
    refuse_idle(context, idle, why)
    if predict:
        code = print_prediction(
            profile, command or [], concurrency=concurrency, context_tokens=context_tokens,
            output_tokens=output_tokens, prompt_class=prompt_class, as_json=json_output,
        )  # fmt: skip
        raise typer.Exit(code)
    raise typer.Exit(run_simulation(profile, command or [], port=port, time_scale=time_scale))


@app.command(short_help="List the machines that can be simulated.")
def profiles(json_output: JsonFlag = False) -> None:
    """List the shipped profiles of the simulated engine and where their numbers come from."""
    from spectune.cli.simulating import list_profiles

    list_profiles(as_json=json_output)
