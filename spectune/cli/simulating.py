"""`spectune simulate` and `spectune profiles`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rich.table import Table

from spectune.cli.terminal import OUT, PROGRESS, print_json
from spectune.engines.simulated.command import RESOLVER_REFUSED, CommandRefused
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.prediction import Prediction, predict, refused
from spectune.engines.simulated.profile import Profile, load_profile, shipped_profiles
from spectune.engines.simulated.program import run_engine
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.time_scale import time_scale_of
from spectune.errors import SpectuneError


def print_prediction(
    profile: str,
    words: Sequence[str],
    *,
    concurrency: int | None,
    context_tokens: int | None,
    prompt_class: str | None,
    as_json: bool,
) -> None:
    """Print what the cost model says of a launch command.

    Raises:
        SpectuneError: A figure is missing, or the profile or the command is refused.
    """
    loaded = load_profile(profile)
    if concurrency is None or context_tokens is None:
        raise SpectuneError("--predict needs --concurrency and --context-tokens")
    try:
        _, launch, _ = open_launch(loaded, words, os.environ)
    except CommandRefused as wrong:
        if wrong.exit_code != RESOLVER_REFUSED:
            raise SpectuneError(f"SGLang would refuse this command: {wrong}") from None
        _show_refusal(str(wrong), as_json=as_json)
        return
    prediction = predict(launch, concurrency, context_tokens, prompt_class)
    if as_json:
        print_json(prediction.to_json())
        return
    _show(loaded, launch, prediction, concurrency)


def run_simulation(profile: str, words: Sequence[str], *, port: int | None, time_scale: float) -> int:
    """Serve until the end; returns the engine's exit code.

    Raises:
        SpectuneError: The profile, the command or the time scale is refused.
    """
    scale = time_scale_of(str(time_scale))
    return run_engine(load_profile(profile), words, os.environ, time_scale=scale, port=port)


def list_profiles(*, as_json: bool) -> None:
    """List the shipped profiles with where their numbers come from."""
    profiles = [load_profile(name) for name in shipped_profiles()]
    if as_json:
        print_json(
            [{"name": one.name, "file": str(one.path), "source": one.file.source.strip()} for one in profiles]
        )  # fmt: skip
        return
    table = Table("profile", "GPUs", "memory each", box=None, pad_edge=False, header_style="")
    for one in profiles:
        table.add_row(one.name, str(one.file.gpu.count), f"{one.file.gpu.memory_gb:g} GB")
    OUT.print(table)
    for one in profiles:
        OUT.print(f"\n{one.name}: {one.file.source.strip()}", markup=False)


def _show_refusal(reason: str, *, as_json: bool) -> None:
    if as_json:
        print_json(refused(reason))
    else:
        sys.stdout.write(f"simulated: the launch fails at startup, unsupported: {reason}\n")


def _show(profile: Profile, launch: SimulatedLaunch, prediction: Prediction, concurrency: int) -> None:
    for warning in prediction.warnings:
        PROGRESS.print(f"warning: {warning}", markup=False, soft_wrap=True)
    setup = launch.setup
    shape = f"{setup.algorithm} {setup.num_steps}/{setup.eagle_topk}/{setup.num_draft_tokens}"
    graph = "on" if prediction.graph_used else "off"
    lines = [
        f"simulated on {profile.name}: {shape if setup.speculative else 'no speculation'}",
        f"{prediction.running} of {concurrency} requests running, CUDA graph {graph}",
        f"accept_length      {prediction.accept_length:.3f}",
        f"cycle_ms           {prediction.cycle_ms:.2f}",
        f"decode_speed       {prediction.decode_speed:.1f} tok/s",
        f"output_throughput  {prediction.output_throughput:.1f} tok/s",
    ]
    if prediction.fails is not None:
        lines.append(f"fails              {prediction.fails.kind} at {prediction.fails.at}")
    sys.stdout.write("\n".join(lines) + "\n")
