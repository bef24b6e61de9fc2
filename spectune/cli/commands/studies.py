"""Commands on a study that has been made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spectune.cli.numbers import number, whole
from spectune.cli.program import JsonFlag, StudyArgument, app


@app.command(short_help="List the studies in ./studies.")
def studies(json_output: JsonFlag = False) -> None:
    """List the studies in ./studies, one shared by several workers once.

    A terminal that is too narrow shows shorter names and recommendations, then leaves out the engine, then the last
    launch, then the recommendation; --json and a pipe have everything.
    """
    from spectune.cli.studies_table import list_studies

    raise typer.Exit(list_studies(as_json=json_output))


@app.command(short_help="Write a study's HTML report and print its answer.")
def report(
    study: StudyArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default reports/STUDY.html."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Write a study's HTML report and print its answer, from the records alone."""
    from spectune.cli.answering import show_report

    raise typer.Exit(show_report(study, output=output, as_json=json_output))


@app.command(short_help="Write the launch files of a study.")
def export(
    study: StudyArgument,
    pick: Annotated[
        str | None,
        typer.Option(
            "--pick",
            metavar="latency|throughput|balanced|TRIAL",
            help="One launch, by what it is best at or by number; by default all that none beats in every objective.",
        ),
    ] = None,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="LIST",
            help="Kinds of files, with commas: sh, yaml (SGLang's --config), compose and adaptive.",
        ),
    ] = "sh,yaml",
    json_output: JsonFlag = False,
) -> None:
    """Write the launch files of a study's Pareto-optimal candidates, or of one picked launch."""
    from spectune.cli.exporting import write_launch_files

    raise typer.Exit(write_launch_files(study, pick=pick, formats=formats, as_json=json_output))


@app.command(short_help="Say whether speculation pays, in a study or for figures you have.")
def breakeven(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="STUDY", help="Name of a study in ./studies, or its folder.")
    ] = None,
    baseline: Annotated[
        float | None,
        typer.Option(
            "--baseline", metavar="TOK_S", parser=number, help="Speed of one request without speculation, in tok/s."
        ),
    ] = None,
    cycle_ms: Annotated[
        float | None,
        typer.Option(
            "--cycle-ms", metavar="MS", parser=number, help="Time of one draft and verify cycle, in milliseconds."
        ),
    ] = None,
    accept: Annotated[
        float | None,
        typer.Option("--accept", metavar="TOKENS", parser=number, help="Mean accept length, bonus token included."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", metavar="N", parser=whole(), help="Draft steps per cycle; bounds the accept length of a chain."
        ),
    ] = None,
    target: Annotated[
        list[float] | None,
        typer.Option("--target", metavar="TOK_S", parser=number, help="A speed somebody needs, in tok/s; repeatable."),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(
            "--speed",
            metavar="TOK_S",
            parser=number,
            help="One request's speed as it was seen, in tok/s: to check the rest against, or to say the cycle.",
        ),
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="LABEL|TRIAL|ID", help="With STUDY: the candidate the answer is about."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="With STUDY: launch the candidate with forced accept lengths, to test the predictions."
        ),
    ] = False,
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="SPACE", help="With --measure: the study's space file, as for `check`."),
    ] = None,
    drafter_points: Annotated[
        list[str] | None,
        typer.Option(
            "--drafter-points",
            metavar="SAMPLES:ACCEPT…",
            help="With STUDY: accept lengths of drafters by training samples, such as 10000:1.9 37000:2.0.",
        ),
    ] = None,
    tokens_per_sample: Annotated[
        int | None,
        typer.Option("--tokens-per-sample", metavar="N", parser=whole(), help="Tokens to generate for one of them."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Say whether speculation pays, why not more, and what would make it pay.

    With STUDY from its launches; without one from --baseline, --accept, and --cycle-ms or --speed.

    Exit code 1: the study has nothing that can be compared.
    """
    from spectune.cli.break_even_request import Asked, Given, split_words

    study, points = split_words(words or [])
    given = Given(baseline, cycle_ms, accept, steps, speed)
    asked = Asked(candidate, measure, [*(drafter_points or []), *points], tokens_per_sample, space)
    if study is None:
        from spectune.cli.arithmetic import run_break_even

        raise typer.Exit(run_break_even(given, asked, targets=target or [], as_json=json_output))
    from spectune.cli.breaking_even import run_break_even_of

    raise typer.Exit(run_break_even_of(study, given, asked, targets=target or [], as_json=json_output))


@app.command(short_help="Compare two studies: another engine, drafter or machine.")
def compare(
    before: Annotated[str, typer.Argument(metavar="STUDY", help="The earlier study, by name or folder.")],
    after: Annotated[str, typer.Argument(metavar="STUDY", help="The later one.")],
    json_output: JsonFlag = False,
) -> None:
    """Say what changed between two studies, and what became of every candidate that both measured."""
    from spectune.cli.comparing import compare_two

    raise typer.Exit(compare_two(before, after, as_json=json_output))


@app.command(short_help="Launch an exported file again, to see whether it still holds.")
def check(
    launch: Annotated[Path, typer.Argument(metavar="FILE", help="A launch-NAME.sh that spectune exported.")],
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="SPACE", help="The study's space file, where its prompts are files beside it."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Launch an exported file and the study's best baseline in turns, twice each, and compare with the records.

    Exit code 1: the machine or the launch changed, acceptance is below break-even, or a launch failed. The study is not
    changed.
    """
    from spectune.cli.checking import check_file

    raise typer.Exit(check_file(launch, space_file=space, as_json=json_output))


@app.command(short_help="Fit a simulated machine to a measured study.")
def calibrate(
    study: StudyArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it; by default STUDY-profile.yaml here."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Fit a profile to a measured study, and say how well it predicts launches it was not fitted on."""
    from spectune.cli.calibrating import run_calibrate

    raise typer.Exit(run_calibrate(study, output=output, as_json=json_output))
