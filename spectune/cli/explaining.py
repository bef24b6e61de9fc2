"""`spectune explain`: what SGLang makes of a launch command, without launching it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from spectune.cli.exit_codes import ExitCode
from spectune.cli.explain_table import ASSUMED, FIELDS, UNTESTED, print_explanation
from spectune.cli.terminal import print_json
from spectune.engines.sglang.gpu_model import gpu_names, known_as
from spectune.engines.sglang.hardware import machine_named
from spectune.engines.sglang.launch_line.command_line import LaunchLine, read_launch
from spectune.engines.sglang.launch_line.older_names import is_known
from spectune.engines.sglang.model_folder import ModelReader
from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.preflight import Checkpoint, preflight
from spectune.engines.sglang.resolution import MACHINES, Finding, Machine, Model, resolve
from spectune.engines.sglang.rules.names import MODEL
from spectune.engines.sglang.versions.history import FIRST_VERSION
from spectune.errors import SpectuneError
from spectune.printable import printable, printable_json
from spectune.space import ALGORITHM, DRAFTER
from spectune.withheld import HIDDEN, secret_name

ASSUMED_MACHINE = "h100"
Status = Literal["ok", "warning", "rejected"]


@dataclass(frozen=True)
class Explanation:
    """What SGLang makes of a launch.

    Attributes:
        line: The command as it was read.
        machine: The hardware its defaults were worked out for.
        status: `rejected` when SGLang itself refuses; a launch that dies later is a `warning` with a `fatal` finding.
        resolved: SGLang's field names → values in effect; empty when the command cannot be followed that far.
        findings: In the order SGLang would come to them.
    """

    line: LaunchLine
    machine: Machine
    status: Status
    resolved: Mapping[str, Any]
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> ExitCode:
        """NO when SGLang would not come up, or when not all of the command could be read."""
        fatal = any(finding.severity == "fatal" for finding in self.findings)
        return ExitCode.NO if self.status == "rejected" or fatal or self.line.incomplete else ExitCode.DONE

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints."""
        findings = [
            {"rule": one.rule, "severity": one.severity, "message": one.message, "advice": one.advice}
            for one in self.findings
        ]
        resolved = {name: HIDDEN if secret_name(name) and value else value for name, value in self.resolved.items()}
        return {"status": self.status, "resolved": resolved, "findings": findings}


def explain(
    command: str | Sequence[str], *, gpu: str | None, cwd: Path, environ: Mapping[str, str], version: str | None = None
) -> Explanation:
    """Explain a launch command.

    Args:
        command: A text, or words.
        gpu: Name of a machine; None for this one.
        cwd: The folder its relative paths start from.
        environ: The caller's environment, for the hub cache.
        version: The SGLang to judge it by; None for the one the command names, or the newest known.

    Raises:
        SpectuneError: When there is no launch in it, or nothing is known of the version.
    """
    if version is not None and not is_known(version):
        raise SpectuneError(f"--version takes {FIRST_VERSION} to {SHIPPED_VERSION}, but got {version!r}")
    line = read_launch(command, cwd=cwd, version=version)
    machine, findings = choose_machine(gpu, on_cpu=line.arguments.get("device") == "cpu", here=gpu_names())
    reader = ModelReader(cwd, {**environ, **line.env}, line.container)
    model, draft = Model.unknown(), None
    seen: tuple[Finding, ...] = ()
    if MODEL in line.arguments:
        model, seen = reader.read(line.arguments[MODEL], MODEL, line.arguments.get("revision"))
    findings = [*seen, *line.findings, *findings]
    if line.arguments.get(DRAFTER):
        draft, said = reader.read(
            line.arguments[DRAFTER], DRAFTER, line.arguments.get("speculative-draft-model-revision")
        )
        told = {one.advice for one in seen}
        findings += [replace(one, advice="") if one.advice in told else one for one in said]
    rejected = line.refused or any(one.rule == "model-config" and one.severity == "fatal" for one in findings)
    resolved: Mapping[str, Any] = {}
    if line.complete:
        resolution = resolve(
            line.arguments, model=model, draft=draft, machine=machine, env=line.env, version=line.version
        )
        resolved = {FIELDS.get(name.replace("_", "-"), name): value for name, value in resolution.resolved.items()}
        findings = [*_told_once(findings, resolution.findings), *resolution.findings]
        findings += _preflight(line, reader, model, draft)
        rejected = rejected or resolution.status == "rejected"
    worst = {one.severity for one in findings}
    status: Status = "rejected" if rejected else "warning" if worst & {"warning", "fatal"} else "ok"
    return Explanation(line, machine, status, resolved, tuple(findings))


def _preflight(line: LaunchLine, reader: ModelReader, model: Model, draft: Model | None) -> list[Finding]:
    """Say what is wrong with the drafter for the target, as far as both are on this machine."""
    arguments = line.arguments
    if MODEL not in arguments or not isinstance(arguments.get(ALGORITHM), str):
        return []
    target = Checkpoint(arguments[MODEL], model, reader.folder(arguments[MODEL], arguments.get("revision")))
    drafter = None
    if draft is not None:
        where = reader.folder(arguments[DRAFTER], arguments.get("speculative-draft-model-revision"))
        drafter = Checkpoint(arguments[DRAFTER], draft, where)
    return preflight(
        target, drafter, algorithm=arguments[ALGORITHM], version=line.version, arguments=arguments, env=line.env
    )  # fmt: skip


def _told_once(read: Sequence[Finding], ruled: Sequence[Finding]) -> list[Finding]:
    """Leave out what the rules say better: deprecated options they translate."""
    named = " ".join(one.message for one in ruled)
    return [one for one in read if one.rule != "deprecated-option" or one.message.split()[0].lstrip("-") not in named]


def choose_machine(gpu: str | None, *, on_cpu: bool, here: Sequence[str]) -> tuple[Machine, list[Finding]]:
    """Return the machine to work defaults out for, and why where it was not simply asked for.

    Args:
        gpu: What the user asked for.
        on_cpu: Whether the command says `--device cpu`.
        here: Names of the GPUs of this machine.

    Raises:
        SpectuneError: For a machine whose rules are not known.
    """
    gpu = None if gpu is None else machine_named(gpu).name
    local = known_as(here[0]) if here else None
    name = "cpu" if on_cpu else gpu or local or ASSUMED_MACHINE
    findings = []
    if on_cpu and gpu not in (None, "cpu"):
        findings.append(
            Finding("machine", "info", f"--device cpu decides: --gpu {gpu} is not looked at", "leave one out")
        )
    elif not on_cpu and gpu is None and local is None:
        seen = f"no rules are known for {printable(here[0], 60)}" if here else "no GPU was found here"
        message = f"{seen}: explained for {ASSUMED_MACHINE}"
        findings.append(Finding(ASSUMED, "info", message, f"--gpu {'|'.join(MACHINES)} names another"))
    machine = MACHINES[name]
    if not machine.tested:
        message = f"the rules for {name} were read, not run"
        findings.append(Finding(UNTESTED, "info", message, "check what the engine logs as server_args"))
    return machine, findings


def run_explain(words: Sequence[str], *, gpu: str | None, version: str | None, as_json: bool) -> int:
    """Print the explanation of a command; return the exit code.

    Raises:
        SpectuneError: When there is no launch in it.
    """
    command: str | Sequence[str] = words
    if list(words) in ([], ["-"]):
        if sys.stdin.isatty():
            raise SpectuneError("give the launch command after --, or pipe it in: spectune explain -- sglang serve …")
        command = sys.stdin.buffer.read().decode("utf-8", "replace")
    elif len(words) == 1 and Path(words[0]).is_file():
        (file,) = words
        raise SpectuneError(f"{file} is a file, not a launch; pipe it in: spectune explain < {shlex.quote(file)}")
    explanation = explain(command, gpu=gpu, cwd=Path.cwd(), environ=os.environ, version=version)
    if as_json:
        print_json(printable_json(explanation.to_json()))
    else:
        print_explanation(
            status=explanation.status, machine=explanation.machine, line=explanation.line,
            resolved=explanation.resolved, findings=explanation.findings,
        )  # fmt: skip
    return explanation.exit_code
