"""Commands and exit codes. Everything heavy is imported inside the command that needs it."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spectune import __version__
from spectune.cli.streams import open_standard_streams, print_error
from spectune.errors import SpectuneError

DONE, NO_ANSWER, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# What follows is another program's command line.
ANOTHERS = {"ignore_unknown_options": True, "allow_interspersed_args": False}

app = typer.Typer(
    name="spectune",
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


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]
TorchIndex = Annotated[
    str | None,
    typer.Option("--torch-index", metavar="URL", help="Package index to take torch from, such as a CPU-only one."),
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
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Launch, measure and compare candidates until there is an answer; the same command continues a study."""
    from spectune.cli.opening import Asked

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
    from spectune.cli.searching import run_search

    raise typer.Exit(run_search(asked, study=study, torch_index=torch_index, as_json=json_output))


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


@app.command(short_help="Write a study's HTML report and print its answer.")
def report(
    study: StudyArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of reports/STUDY.html.")
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
            help="One launch, instead of all Pareto-optimal ones.",
        ),
    ] = None,
    formats: Annotated[
        str,
        typer.Option("--format", metavar="LIST", help="Of sh, yaml (SGLang's --config), compose and adaptive."),
    ] = "sh,yaml",
    json_output: JsonFlag = False,
) -> None:
    """Write the launch files of a study's Pareto-optimal candidates, or of one picked launch."""
    from spectune.cli.exporting import write_launch_files

    raise typer.Exit(write_launch_files(study, pick=pick, formats=formats, as_json=json_output))


@app.command(short_help="Compare two studies: another engine, drafter or machine.")
def compare(
    before: Annotated[str, typer.Argument(metavar="STUDY", help="The earlier study, by name or folder.")],
    after: Annotated[str, typer.Argument(metavar="STUDY", help="The later one.")],
    json_output: JsonFlag = False,
) -> None:
    """Say what changed between two studies, and what became of every candidate that both measured."""
    from spectune.cli.comparing import compare_two

    raise typer.Exit(compare_two(before, after, as_json=json_output))


@app.command(short_help="Launch an exported file again: does it still hold?")
def check(
    launch: Annotated[Path, typer.Argument(metavar="FILE", help="A launch-NAME.sh that spectune exported.")],
    space: Annotated[
        str | None,
        typer.Option("--space", metavar="SPACE", help="The study's space file, where its prompts are files beside it."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Launch an exported file and the study's best baseline in turns, twice each, and compare with the records.

    Ends with 0 when it still holds, 1 when the machine or the launch changed, acceptance is below break-even, or a
    launch failed. The study is not changed.
    """
    from spectune.cli.checking import check_file

    raise typer.Exit(check_file(launch, space_file=space, as_json=json_output))


@app.command()
def studies(json_output: JsonFlag = False) -> None:
    """List the studies in ./studies."""
    from spectune.cli.answering import list_studies

    raise typer.Exit(list_studies(as_json=json_output))


@app.command(short_help="Say whether speculation pays, in a study or for figures you have.")
def breakeven(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="STUDY", help="Name of a study in ./studies, or its folder.")
    ] = None,
    baseline: Annotated[
        float | None, typer.Option("--baseline", metavar="TOK_S", help="Speed of one request without speculation.")
    ] = None,
    cycle_ms: Annotated[
        float | None, typer.Option("--cycle-ms", metavar="MS", help="Time of one draft and verify cycle.")
    ] = None,
    accept: Annotated[
        float | None, typer.Option("--accept", metavar="TOKENS", help="Mean accept length, bonus token included.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Draft steps per cycle; bounds the accept length of a chain.")
    ] = None,
    target: Annotated[
        list[float] | None, typer.Option("--target", metavar="TOK_S", help="A speed somebody needs; repeatable.")
    ] = None,
    measured: Annotated[
        float | None,
        typer.Option("--measured", metavar="TOK_S", help="Speed that was measured, to check the rest against."),
    ] = None,
    candidate: Annotated[
        str | None,
        typer.Option("--candidate", metavar="ID|TRIAL", help="With STUDY: the candidate the answer is about."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="With STUDY: launch the candidate with forced accept lengths, to test the predictions."
        ),
    ] = False,
    drafter_points: Annotated[
        list[str] | None,
        typer.Option(
            "--drafter-points",
            metavar="SAMPLES:ACCEPT…",
            help="With STUDY: accept lengths of drafters by training samples, such as 10000:1.9 37000:2.0.",
        ),
    ] = None,
    tokens_per_sample: Annotated[
        int | None, typer.Option("--tokens-per-sample", metavar="N", help="Tokens to generate for one of them.")
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Say whether speculation pays, why not more, and what would make it pay.

    With STUDY from its launches; without one from --baseline, --cycle-ms and --accept. Ends with 1 when the study has
    nothing that can be compared.
    """
    from spectune.cli.breaking_even import Asked, Given, run_break_even
    from spectune.cli.drafter_points import split_words

    study, points = split_words(words or [])
    given = Given(baseline, cycle_ms, accept, steps, measured)
    asked = Asked(candidate, measure, [*(drafter_points or []), *points], tokens_per_sample)
    raise typer.Exit(run_break_even(study, given, asked, targets=target or [], as_json=json_output))


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
        float | None, typer.Option("--baseline", metavar="TOK_S", help="Speed of one request without speculation.")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, help="Running requests the baseline was measured at; 1 unless said."),
    ] = None,
    verify_ms: Annotated[
        float | None, typer.Option("--verify-ms", metavar="MS", help="Time of one verify, to check the cycle against.")
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
    json_output: JsonFlag = False,
) -> None:
    """Say what SGLang resolves, rewrites and refuses of a launch command, without launching it.

    Ends with 0 when nothing known speaks against it, 1 when SGLang refuses it, when it dies later, or when not all of
    it could be read, 2 when it is no launch of SGLang.
    """
    from spectune.cli.explaining import run_explain

    raise typer.Exit(run_explain(command or [], gpu=gpu, as_json=json_output))


@app.command(short_help="Say what is wrong with this machine.")
def doctor(
    space: Annotated[
        str | None,
        typer.Argument(metavar="[SPACE]", help="Search space whose engine and models are looked for too."),
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Say what this machine is, what is wrong with it, and what to fix first; changes nothing.

    Ends with 0 when a search can run, 1 when it would fail, 2 for a bad search space.
    """
    from spectune.cli.doctoring import run_doctor

    raise typer.Exit(run_doctor(space, as_json=json_output))


@app.command(
    short_help="Serve or predict what a simulated machine would do.",
    context_settings=ANOTHERS,
)
def simulate(
    profile: Annotated[
        str, typer.Option("--profile", metavar="NAME|FILE", help="The machine; `spectune profiles` lists the shipped.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGV", help="The arguments of `python -m sglang.launch_server`."),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Instead of the one in ARGV.")] = None,
    time_scale: Annotated[
        float, typer.Option("--time-scale", metavar="F", help="0.1 makes everything ten times faster.")
    ] = 1.0,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="Print what the cost model says, and start nothing; needs --concurrency and --context-tokens.",
        ),
    ] = False,
    concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, help="Requests in flight.")] = None,
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", min=0, help="Tokens of each of them so far.")
    ] = None,
    prompt_class: Annotated[
        str | None, typer.Option("--prompt-class", metavar="C", help="Such as code; builtin:mixed for its mix.")
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Serve, or predict, what a launch of SGLang would do on the machine of a profile. Nothing of it is measured."""
    from spectune.cli.simulating import print_prediction, run_simulation

    if predict:
        print_prediction(
            profile, command or [], concurrency=concurrency, context_tokens=context_tokens,
            prompt_class=prompt_class, as_json=json_output,
        )  # fmt: skip
        return
    raise typer.Exit(run_simulation(profile, command or [], port=port, time_scale=time_scale))


@app.command(short_help="Fit a simulated machine to a measured study.")
def calibrate(
    study: StudyArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of STUDY-profile.yaml here.")
    ] = None,
    json_output: JsonFlag = False,
) -> None:
    """Fit a profile to a measured study, and say how well it predicts launches it was not fitted on."""
    from spectune.cli.calibrating import run_calibrate

    raise typer.Exit(run_calibrate(study, output=output, as_json=json_output))


@app.command(short_help="List the machines that can be simulated.")
def profiles(json_output: JsonFlag = False) -> None:
    """List the shipped profiles of the simulated engine and where their numbers come from."""
    from spectune.cli.simulating import list_profiles

    list_profiles(as_json=json_output)


@engine_app.command("install")
def engine_install(
    name: Annotated[
        str, typer.Argument(help="Which one; cpu-reference is the real SGLang for machines without a GPU.")
    ],
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Install an engine environment; does nothing when it is there."""
    from spectune.cli.engines import install

    install(name, torch_index=torch_index, as_json=json_output)


@engine_app.command("list")
def engine_list(json_output: JsonFlag = False) -> None:
    """List the installed engine environments."""
    from spectune.cli.engines import show

    show(as_json=json_output)


@engine_app.command("remove")
def engine_remove(name: Annotated[str, typer.Argument(help="Which one.")]) -> None:
    """Remove an engine environment."""
    from spectune.cli.engines import remove

    remove(name)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    open_standard_streams()
    os.umask(os.umask(0o022) | 0o022)  # nothing of a study is for everybody to write
    try:
        app(standalone_mode=True)
    except SpectuneError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; that is not an error of ours
        sys.exit(DONE)
    except OSError as error:  # the current folder is gone, the output device is full, …
        print_error(error)
        sys.exit(BAD_INPUT)
