"""`spectune doctor`: what this machine is, what is wrong with it, and what to fix first. It changes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spectune.cli.doctor_table import print_checkup
from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import print_json, told_when_slow
from spectune.engines.notes import queueing, unwise_variables
from spectune.engines.open import load_checked_space, missing_models, open_engine, to_install
from spectune.engines.preflight import preflight_of
from spectune.engines.protocol import EngineSoftware
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.errors import Problem
from spectune.machine import (
    LOOK_S,
    CoreMeter,
    Disk,
    Finding,
    Fingerprint,
    gpu_findings,
    host_findings,
    in_order,
    read_disks,
    take_fingerprint,
)
from spectune.search import running_studies
from spectune.serving import (
    Leftovers,
    find_leftovers,
    held_locks,
    leftover_findings,
    reservation_findings,
    reserved_gpus,
)
from spectune.space import SearchSpace

SCHEMA = 1


@dataclass(frozen=True)
class Checkup:
    """All that was seen, and what it means, the worst first."""

    fingerprint: Fingerprint
    disks: Sequence[Disk]
    leftovers: Leftovers
    findings: Sequence[Finding]

    @property
    def exit_code(self) -> ExitCode:
        """NO when a search would fail."""
        return ExitCode.NO if any(finding.severity == "fatal" for finding in self.findings) else ExitCode.DONE

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints."""
        return {
            "schema": SCHEMA,
            "would_fail": bool(self.exit_code),
            "findings": [finding.to_json() for finding in self.findings],
            "fingerprint": self.fingerprint.to_json(),
            "disks": [asdict(disk) for disk in self.disks],
            "leftovers": asdict(self.leftovers),
        }


def run_doctor(source: str | None, *, as_json: bool) -> int:
    """Look, and print; returns the exit code.

    Args:
        source: A search space whose engine and models are looked for too.
        as_json: Print for scripts.

    Raises:
        InputProblems: Everything that is wrong with the search space.
    """
    with told_when_slow("still looking at this machine and its engine"):
        checkup = check_machine() if source is None else check_machine_for(load_checked_space(source))
    if as_json:
        print_json(checkup.to_json())
    else:
        print_checkup(checkup.fingerprint, checkup.findings)
    return checkup.exit_code


def check_machine() -> Checkup:
    """Look at this machine, whatever is going to be launched."""
    return _checkup(None, EngineSoftware(), [])


def check_machine_for(space: SearchSpace) -> Checkup:
    """Look at this machine with the engine and the models of a search space."""
    engine = open_engine(space)
    wanted = space.engine.args.get("port")
    checkup = _checkup(
        engine.title, engine.software(), _space_findings(space, engine), wanted if isinstance(wanted, int) else None
    )
    if engine.cuda and not engine.simulated:
        return checkup
    findings = [_not_needed(one) if one.name.startswith(("gpu", "driver")) else one for one in checkup.findings]
    return replace(checkup, findings=in_order(findings))


def _checkup(
    title: str | None, software: EngineSoftware, engine_findings: Sequence[Finding], wanted_port: int | None = None
) -> Checkup:
    meter = CoreMeter()
    fingerprint = take_fingerprint(title, packages=software.packages, engine_sitecustomize=software.sitecustomize)
    folder, gone = _folder()
    disks, held = read_disks(folder, os.environ), held_locks()
    left = find_leftovers()
    on_gpus = {process.pid for gpu in fingerprint.gpus.devices for process in gpu.processes or ()}
    findings = [
        *gone,
        *engine_findings,
        *leftover_findings(left, on_gpus=on_gpus, ephemeral=fingerprint.host.ephemeral_ports, wanted=wanted_port),
        *gpu_findings(
            fingerprint.gpus, os.environ.get("CUDA_VISIBLE_DEVICES"), reserved_gpus(fingerprint.gpus.devices, held)
        ),
        *host_findings(fingerprint, disks, meter.read_after(LOOK_S)),
        *reservation_findings(fingerprint.gpus.devices, held),
        *_running(),
    ]
    return Checkup(fingerprint, disks, left, in_order(findings))


def _folder() -> tuple[Path, list[Finding]]:
    """Return the folder a search would write to, and a finding where it was deleted under us."""
    try:
        return Path.cwd(), []
    except FileNotFoundError:
        why = "a search writes its study there, and ends at once"
        return Path.home(), [
            Finding("folder-gone", "fatal", "the current folder was deleted", why, "cd to another one")
        ]


def _space_findings(space: SearchSpace, engine: SGLangEngine) -> list[Finding]:
    if (runtime := to_install(space)) is not None:
        seen, install = f"the runtime {runtime} is not installed", f"spectune engine install {runtime}"
        return [Finding("runtime-missing", "info", seen, "the first search installs it, which takes minutes", install)]
    ends = "the search ends before its first launch"
    lacking = [_missing(problem, ends) for problem in engine.missing()]
    lacking += [
        Finding("model-missing", "fatal", str(problem), ends, "put it there, or correct its path in the space")
        for problem in missing_models(space, engine)
    ]
    drafters = preflight_of(space, engine)
    lacking += [Finding("drafter", "fatal", str(problem), ends) for problem in drafters.problems]
    said = [*drafters.notes, *queueing(space, engine), *unwise_variables(space, engine)]
    return [*lacking, *(Finding("space", "warning", text, "the search says so too, and goes on") for text in said)]


def _missing(problem: Problem, why: str) -> Finding:
    """Return what the engine lacks; behind the semicolon of its message stands the way out."""
    seen, _, way_out = str(problem).partition("; ")
    return Finding("engine-missing", "fatal", seen, why, way_out)


def _not_needed(finding: Finding) -> Finding:
    """Return a finding about GPUs for an engine that uses none."""
    if finding.severity != "fatal":
        return finding
    return replace(finding, severity="warning", why=f"{finding.why}; this space uses no GPU")


def _running() -> list[Finding]:
    return [
        Finding(
            "study-running",
            "info",
            f"the study {study.name} is being run (pid {', '.join(map(str, sorted(pids)))})",
            "another search on the same GPUs would spoil the figures of both",
        )
        for study, pids in running_studies()
    ]
