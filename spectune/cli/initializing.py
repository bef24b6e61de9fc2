"""`spectune init`: a first search space from the checkpoints and the GPUs that are there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import busy, print_json, print_line
from spectune.engines import cpu_reference
from spectune.engines.open import load_checked_space, open_engine
from spectune.engines.preflight import preflight_of
from spectune.engines.sglang.gpu_model import gpu_names, known_as
from spectune.engines.sglang.hardware import MACHINES, Machine, machine_named
from spectune.engines.sglang.new_space import NewSpace, new_space
from spectune.errors import SpectuneError
from spectune.files import write_whole
from spectune.search.guided.enumeration import census
from spectune.search.storage.studies import check_name

USUAL_GPUS = 8


def run_init(
    model: str,
    drafters: Sequence[str],
    *,
    name: str | None,
    output: Path | None,
    python: str,
    runtime: str | None,
    gpus: int | None,
    gpu: str | None,
    as_json: bool,
) -> int:
    """Write the file, check it, and say what to do next; returns the exit code.

    Raises:
        SpectuneError: No model, no drafter that can work, or a file that is there already.
    """
    if name is not None:
        check_name(name)
    here = gpu_names()
    machine = _machine(gpu, here, runtime)
    count = 0 if runtime else gpus or len(here) or USUAL_GPUS
    with busy("looking at the checkpoints"):
        draft = new_space(
            name, model, drafters, python=None if runtime else python, runtime=runtime, gpus=count, machine=machine
        )
    path = output or Path(f"{draft.name}.yaml")
    if path.exists():
        raise SpectuneError(f"{path} exists already; name another file with -o, or remove it")
    write_whole(path, draft.to_yaml())
    try:
        space = load_checked_space(str(path))
    except SpectuneError:  # such as a name that no study can have: nothing is left that cannot be searched
        path.unlink()
        raise
    engine = open_engine(space)
    found = preflight_of(space, engine)
    notes = list(dict.fromkeys([*draft.notes, *_assumed(draft, gpus, here), *found.notes]))
    legal = census(space, engine).candidates
    if as_json:
        print_json({
            "path": str(path), "algorithms": draft.algorithms, "candidates": legal, "notes": notes,
            "drafters": [{"name": one.name, "algorithm": one.algorithm, "searched": one.refused is None}
                         for one in draft.drafters],
        })  # fmt: skip
        return ExitCode.DONE
    print_line(f"{path}: {legal:,} legal candidates, {' and '.join(draft.algorithms)}")
    for note in notes:
        print_line(f"note: {note}")
    print_line(f"next: spectune search {shlex.quote(str(path))} --dry-run")
    return ExitCode.DONE


def _machine(gpu: str | None, here: Sequence[str], runtime: str | None) -> Machine | None:
    """Return what SGLang's defaults are known for; None where nothing is known of this machine."""
    if runtime:
        cpu_reference.planned(runtime)  # a name that no runtime has ends here
        return MACHINES["cpu"]
    if gpu is not None:
        return machine_named(gpu)
    local = known_as(here[0]) if here else None
    return None if local is None else MACHINES[local]


def _assumed(draft: NewSpace, gpus: int | None, here: Sequence[str]) -> list[str]:
    notes = []
    if not draft.runtime and gpus is None and not here:
        notes.append(f"no GPU was found here, so {USUAL_GPUS} are assumed; --gpus says how many there are")
    if not draft.runtime and draft.machine is None:
        notes.append(f"attention runs on triton; --gpu {'|'.join(MACHINES)} adds what else is worth comparing")
    return notes
