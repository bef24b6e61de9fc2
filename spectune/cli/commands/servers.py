"""Commands about a server, a launch command or a machine that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectune.cli.numbers import number, whole
from spectune.cli.program import ANOTHERS, JsonFlag, app


@app.command(
    short_help="Say what SGLang makes of a launch command.",
    context_settings=ANOTHERS,
)
def explain(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND",
            help="A launch command, its arguments alone, or one quoted text; read from standard input when left out.",
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", metavar="GPU", help="h100, h200, b200, rtx-pro-6000 or cpu; by default this machine's, if known."
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            metavar="V",
            help="SGLang to judge it by, 0.5.6 or newer; by default that of the command's image, or 0.5.23.",
        ),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Say what SGLang resolves, rewrites and refuses of a launch command, without launching it.

    Exit code 1: SGLang refuses it, it dies later, or not all of it could be read.
    """
    from spectune.cli.explaining import run_explain

    raise typer.Exit(run_explain(command or [], gpu=gpu, version=version, as_json=json_output))


@app.command(short_help="Say why a server that already runs is slow.")
def diagnose(
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="The server's log, of any size; - for a pipe."),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="A running server, such as http://localhost:30000.")
    ] = None,
    baseline: Annotated[
        float | None,
        typer.Option(
            "--baseline", metavar="TOK_S", parser=number, help="Speed of one request without speculation, in tok/s."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            metavar="N",
            parser=whole(1),
            help="Running requests to judge at, those of --baseline; by default 1 with it, else what was seen most.",
        ),
    ] = None,
    verify_ms: Annotated[
        float | None,
        typer.Option(
            "--verify-ms",
            metavar="MS",
            parser=number,
            help="Time of one verify, in milliseconds, such as a profile's; what is left of a cycle is "
            "drafting and host time.",
        ),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="With --url: send 8 short requests, one after the other, and measure them.")
    ] = False,
    api_key_env: Annotated[
        str | None,
        typer.Option("--api-key-env", metavar="NAME", help="Variable with the API key, instead of SGLANG_API_KEY."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Say why a server that already runs is slow, from its log or its own words, without launching anything."""
    from spectune.cli.diagnosing import run_diagnose

    done = run_diagnose(
        log=log, url=url, baseline=baseline, concurrency=concurrency, verify_ms=verify_ms, probing=probe,
        api_key_env=api_key_env, as_json=json_output,
    )  # fmt: skip
    raise typer.Exit(done)


@app.command(short_help="Say what is wrong with this machine.")
def doctor(
    space: Annotated[
        str | None,
        typer.Argument(metavar="[SPACE]", help="Search space whose engine and models are looked for too."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Say what this machine is, what is wrong with it, and what to fix first; changes nothing.

    Exit code 1: a search would fail.
    """
    from spectune.cli.doctoring import run_doctor

    raise typer.Exit(run_doctor(space, as_json=json_output))
