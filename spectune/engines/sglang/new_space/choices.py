"""What to search for a model and its drafters, from their files and the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spectune.counts import count
from spectune.engines.sglang.hardware import Machine
from spectune.engines.sglang.new_space.attention import attention_of
from spectune.engines.sglang.new_space.offered import OfferedDrafter, offer, place_of, read_checkpoint
from spectune.engines.sglang.new_space.own_code import own_code
from spectune.engines.sglang.new_space.written import MEMORY_SHARE, OUTPUT_TOKENS, NewSpace
from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.preflight import Checkpoint, preflight
from spectune.engines.sglang.preflight.target import drafter_as_target
from spectune.engines.sglang.rules.names import BUNDLED_DRAFT, MODEL
from spectune.errors import SpectuneError


def new_space(
    name: str | None,
    model: str,
    drafters: Sequence[str],
    *,
    python: str | None,
    runtime: str | None,
    gpus: int,
    machine: Machine | None,
) -> NewSpace:
    """Look at the checkpoints and decide what to search.

    Args:
        name: Of the study; None for the model's.
        model: Folder or hub name of the target.
        drafters: Folders or hub names; with none, the target's own draft layers, or else n-gram lookup.
        python: Interpreter that has SGLang.
        runtime: Runtime that spectune installs, instead of an interpreter.
        gpus: GPUs that are there; 0 on a CPU.
        machine: What SGLang's defaults are known for.

    Raises:
        SpectuneError: The target is no model, or a drafter itself, or no drafter can work.
    """
    target, said = read_checkpoint(model, MODEL)
    if (swapped := drafter_as_target(target, SHIPPED_VERSION)) is not None:
        raise SpectuneError(f"--model {swapped.message}; {swapped.advice}")
    offered, context_length = _offered(drafters, target)
    if drafters and all(drafter.refused for drafter in offered):
        raise SpectuneError("no drafter can work, so there is nothing to search:\n" + "\n".join(
            f"  {one.refused.message}; {one.refused.advice}" for one in offered if one.refused
        ))  # fmt: skip
    tp_size = _tensor_parallel(target, gpus)
    algorithms = _algorithms(target, offered)
    return NewSpace(
        name=name or _study_name(model), model=place_of(model), python=python, runtime=runtime, tp_size=tp_size,
        machine=machine, drafters=offered, algorithms=algorithms,
        attention=attention_of(target.model, algorithms, machine, SHIPPED_VERSION),
        context_length=context_length, reaches=target.context_length,
        own_code=own_code(target, [one.checkpoint for one in offered if one.refused is None]),
        seen=target.folder is not None,
        notes=(
            *(f"{one.message}; {one.advice}" for one in said),
            *_on_drafters(offered),
            *_on_sizes(target, context_length, tp_size, gpus, machine),
        ),
    )  # fmt: skip


def _offered(drafters: Sequence[str], target: Checkpoint) -> tuple[tuple[OfferedDrafter, ...], int | None]:
    """Return the drafters, and the context length that all of them reach; None where none falls short of the target."""
    different = {place_of(one): one for one in drafters}.values()  # one that is named twice is searched once
    offered = tuple(offer(one, target, OUTPUT_TOKENS, SHIPPED_VERSION) for one in different)
    shortest = min((one.reach for one in offered if one.reach), default=None)
    if shortest is not None:
        offered = tuple(offer(one, target, OUTPUT_TOKENS, SHIPPED_VERSION, shortest) for one in different)
    return offered, shortest


def _on_drafters(offered: Sequence[OfferedDrafter]) -> Iterator[str]:
    yield from (f"never launched, so left out: {one.refused.message}" for one in offered if one.refused)
    yield from (f"{one.name} was not seen: {one.algorithm} is a guess from its name" for one in offered if not one.seen)
    yield from (doubt for one in offered if one.refused is None for doubt in one.doubts)


def _on_sizes(
    target: Checkpoint, context_length: int | None, tp_size: int, gpus: int, machine: Machine | None
) -> Iterator[str]:
    if context_length is not None:
        yield f"context-length is {context_length}, as far as every drafter reaches; target: {target.context_length}"
    if machine is not None and (short := _does_not_fit(target, tp_size, machine)):
        yield short
    if gpus and tp_size != gpus:
        yield f"a launch takes {count(tp_size, 'GPU')}: the target's attention heads do not divide by {gpus}"


def _algorithms(target: Checkpoint, offered: Sequence[OfferedDrafter]) -> tuple[str, ...]:
    """Return what drives the drafters; without any, the target's own layers, or n-gram lookup."""
    if offered:
        return tuple(dict.fromkeys(one.algorithm for one in offered if one.refused is None and one.algorithm))
    own = target.architecture in BUNDLED_DRAFT
    alive = own and not any(
        one.severity == "fatal" for one in preflight(target, None, algorithm="EAGLE", version=SHIPPED_VERSION)
    )
    return ("NEXTN",) if alive else ("NGRAM",)


def _tensor_parallel(target: Checkpoint, gpus: int) -> int:
    """Return the largest power of two up to the GPUs that divides the target's attention heads."""
    heads, size = target.model.integer("num_attention_heads"), 1
    while size * 2 <= gpus and (heads is None or heads % (size * 2) == 0):
        size *= 2
    return size


def _does_not_fit(target: Checkpoint, tp_size: int, machine: Machine) -> str | None:
    if target.folder is None or machine.device != "cuda":
        return None
    held = sum(tensor.end - tensor.begin for tensor in target.weights.tensors.values()) / 2**30
    room = tp_size * machine.memory_gib * MEMORY_SHARE
    if held < room:
        return None
    return f"the target's weights are {held:.0f} GiB, and {tp_size} × {machine.name} leave {room:.0f} GiB: too large"


def _study_name(model: str) -> str:
    plain = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in Path(model).name.lower())
    return plain.strip("._-") or "study"
