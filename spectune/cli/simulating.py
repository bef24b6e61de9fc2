"""`spectune simulate` and `spectune profiles`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.table import Table

from spectune.cli.exit_codes import ExitCode
from spectune.cli.silence import SILENCE
from spectune.cli.terminal import OUT, PROGRESS, print_json, print_line
from spectune.counts import count
from spectune.engines.simulated.command import PARSER_REFUSED, RESOLVER_REFUSED, CommandRefused
from spectune.engines.simulated.engine import DEFAULT_PROFILE
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.prediction import Prediction, ended, predict, refused, why_failing, why_waiting
from spectune.engines.simulated.profile import load_profile, shipped_profiles
from spectune.engines.simulated.program import refuse, run_engine
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.time_scale import time_scale_of
from spectune.engines.simulated.under_load import UnderLoad
from spectune.errors import SpectuneError

PAGE = "docs/profiles.md"


def print_prediction(
    profile: str | None,
    words: Sequence[str],
    *,
    concurrency: int | None,
    context_tokens: int | None,
    output_tokens: int | None,
    prompt_class: str | None,
    as_json: bool,
) -> int:
    """Print what the cost model says of a launch command; returns the exit code, 1 where the launch fails.

    Raises:
        SpectuneError: A figure is missing, or the profile or the command is refused.
    """
    loaded = load_profile(profile or DEFAULT_PROFILE)
    if concurrency is None or context_tokens is None:
        raise SpectuneError("--predict needs --concurrency and --context-tokens")
    try:
        command, launch, _ = open_launch(loaded, words, os.environ)
    except CommandRefused as wrong:
        if wrong.exit_code != RESOLVER_REFUSED:
            raise _refused(wrong) from None
        _show_refusal(ended(str(wrong), wrong.advice), as_json=as_json)
        return ExitCode.NO
    prediction = predict(launch, concurrency, context_tokens, prompt_class, output_tokens)
    code, why = (ExitCode.NO, why_failing(launch, command.doom)) if prediction.fails else (ExitCode.DONE, None)
    if as_json:
        print_json({**prediction.to_json(), "reason": why})
        return code
    for warning in prediction.warnings:
        PROGRESS.print(f"warning: {warning}", markup=False, soft_wrap=True)
    for line in _lines(launch, prediction, concurrency, context_tokens + (output_tokens or 0) // 2, why):
        print_line(line)
    return code


def run_simulation(profile: str | None, words: Sequence[str], *, port: int | None, time_scale: float) -> int:
    """Serve until the end; returns the engine's exit code.

    Raises:
        SpectuneError: The profile, the command or the time scale is refused.
    """
    scale = time_scale_of(str(time_scale))
    SILENCE.end()  # the engine writes its log itself
    try:
        return run_engine(load_profile(profile or DEFAULT_PROFILE), words, os.environ, time_scale=scale, port=port)
    except CommandRefused as wrong:
        if wrong.exit_code == PARSER_REFUSED:
            raise _refused(wrong) from None
        return refuse(wrong)


def _refused(wrong: CommandRefused) -> SpectuneError:
    return SpectuneError(f"SGLang would refuse this command: {wrong}")


def list_profiles(*, as_json: bool) -> None:
    """List the shipped profiles with where their numbers come from."""
    profiles = [load_profile(name) for name in shipped_profiles()]
    if as_json:
        print_json(
            [
                {
                    "name": one.name, "default": one.name == DEFAULT_PROFILE, "file": str(one.path),
                    "source": one.file.source.strip(),
                }
                for one in profiles
            ]
        )  # fmt: skip
        return
    table = Table("profile", "GPUs", "memory each", box=None, pad_edge=False, header_style="")
    for one in profiles:
        table.add_row(one.name, str(one.file.gpu.count), f"{one.file.gpu.memory_gb:g} GB")
    OUT.print(table)
    for one in profiles:
        default = " (the default)" if one.name == DEFAULT_PROFILE else ""
        OUT.print(f"\n{one.name}{default}: {one.file.source.strip()}", markup=False)
        print_line(str(one.path))
    OUT.print(f"\nA machine of your own: copy one of these files and change it; every key is explained in {PAGE}")


def _show_refusal(reason: str, *, as_json: bool) -> None:
    if as_json:
        print_json(refused(reason))
    else:
        print_line(f"simulated: the launch fails at startup, unsupported: {reason}")


def _lines(
    launch: SimulatedLaunch, prediction: Prediction, concurrency: int, most_tokens: int, why: str | None
) -> list[str]:
    """Return the answer for people: first of all whether the launch fails."""
    name, setup, fails, running = launch.profile.name, launch.setup, prediction.fails, prediction.running
    shape = f"{setup.algorithm} {setup.num_steps}/{setup.eagle_topk}/{setup.num_draft_tokens}"
    lines = [f"simulated on {name}: {shape if setup.speculative else 'no speculation'}"]
    if fails is not None:
        lines = [f"simulated on {name}: the launch fails at {fails.at}, {fails.kind}: {why}"]
        if not prediction.possible:
            return lines
        lines.append("without this fault it would give:")
    waiting = f" ({why_waiting(launch, running, most_tokens)})" if running < concurrency else ""
    graph = f"CUDA graph {'on' if prediction.graph_used else 'off'}"
    return [
        *lines,
        f"{running} of {count(concurrency, 'request')} running{waiting}, {graph}",
        f"accept_length      {prediction.accept_length:.3f}",
        "a cycle, no prefill in between:",
        *_figures(prediction),
        *_load_lines(prediction.under_load),
    ]


def _load_lines(load: UnderLoad | None) -> list[str]:
    """Return what a search would measure, or how to ask for it."""
    if load is None:
        return ["as a search would measure it, with the prefills of other requests: add --output-tokens"]
    lengths = f"prompts of {load.prompt_tokens:g} tokens, answers of {load.output_tokens:g}"
    return [f"as a search would measure it, with the prefills of other requests ({lengths}):", *_figures(load)]


def _figures(of: Prediction | UnderLoad) -> list[str]:
    return [
        f"cycle_ms           {of.cycle_ms:.2f}",
        f"decode_speed       {of.decode_speed:.1f} tok/s",
        f"output_throughput  {of.output_throughput:.1f} tok/s",
    ]
