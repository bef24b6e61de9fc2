"""An explanation as a person reads it: the verdict, what was found, then what SGLang changes and adds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from spectune.cli.terminal import OUT, print_line
from spectune.engines.sglang.launch_line.command_line import LaunchLine
from spectune.engines.sglang.resolution import Finding, Machine
from spectune.engines.sglang.rules.names import MODEL
from spectune.printable import printable
from spectune.space import DRAFTER
from spectune.withheld import HIDDEN, secret_name

# Fields that are not called as their option is.
FIELDS = {
    "fp8-gemm-backend": "fp8_gemm_runner_backend",
    "fp4-gemm-backend": "fp4_gemm_runner_backend",
    "elastic-ep-join-mode": "ep_join_mode",
    "elastic-ep-join-rank-offset": "ep_join_rank_offset",
}
ASSUMED, UNTESTED = "machine-assumed", "machine-untested"
UNSEEN = frozenset({"model-unknown", "model-config"})
# Defaults that say nothing.
UNREMARKABLE = {("attn_dp_size", "1"), ("dp_size", "1"), ("tp_size", "1"), ("device", "cuda")}
VERDICTS = {
    "ok": "SGLang starts with this",
    "warning": "SGLang takes this, but see below",
    "rejected": "SGLang refuses this",
}
_WIDEST = 52  # characters of a value
_STYLES = {"fatal": "bold red", "warning": "yellow", "info": "cyan"}


def print_explanation(
    *,
    status: str,
    machine: Machine,
    line: LaunchLine,
    resolved: Mapping[str, Any],
    findings: Sequence[Finding],
) -> None:
    """Print what was assumed, the verdict, the findings and the table; what is not known of a model comes first."""
    for finding in findings:
        if finding.rule == ASSUMED:
            print_line(f"{finding.message}; {finding.advice}")
    tested = "" if machine.tested else " (read, not run)"
    verdict = _verdict(status, line, findings)
    print_line(f"{verdict}: SGLang {line.version} on {machine.name}{tested}")
    order = list(_STYLES)
    for finding in sorted(findings, key=lambda one: (one.rule not in UNSEEN, order.index(one.severity))):
        if finding.rule in (ASSUMED, UNTESTED):  # said above
            continue
        OUT.print(
            Text.assemble((f"{finding.severity}: ", _STYLES[finding.severity]), printable(finding.message)),
            soft_wrap=True,
        )
        if finding.advice:
            print_line(f"  way out: {finding.advice}")
    _print_resolved(status, line, resolved)


def _verdict(status: str, line: LaunchLine, findings: Sequence[Finding]) -> str:
    """Return the headline."""
    graver = [finding for finding in findings if finding.severity != "info"]
    if status == "rejected":
        return VERDICTS[status]
    if any(finding.severity == "fatal" for finding in graver):
        return "SGLang takes this, but it does not work"
    if line.incomplete:
        return "Incomplete: some arguments could not be read, and what is said here leaves them out"
    if {finding.rule for finding in graver} == {"model-unknown"}:
        return f"Nothing known speaks against this, but the config.json of {_unseen(line, findings)} was not seen here"
    return VERDICTS[status]


def _unseen(line: LaunchLine, findings: Sequence[Finding]) -> str:
    """Return the models of which nothing is known."""
    said = [finding.message for finding in findings if finding.rule == "model-unknown"]
    named = [
        line.arguments.get(option) for option in (MODEL, DRAFTER) if any(f"--{option} " in message for message in said)
    ]
    return " and ".join(str(name) for name in named if name)


def _print_resolved(status: str, line: LaunchLine, resolved: Mapping[str, Any]) -> None:
    """Print what SGLang changes and adds, and in a line each what stays as it was given."""
    rows = _rows(line.arguments, resolved)
    if not rows:
        return
    changed = [row for row in rows if row[3] and (row[0], row[2]) not in UNREMARKABLE]
    if changed:
        heading = "What SGLang makes of it"
        if status == "rejected":
            heading = "With the refusals mended" if line.refused else "Resolved until it refuses"
        OUT.print(f"\n{heading}:", markup=False)
        OUT.print(_table(changed))
    kept = [name for name, *_, mark in rows if not mark]
    passed = [field_of(name) for name in line.arguments if field_of(name) not in resolved]
    if kept or passed:
        print_line(f"as given: {', '.join(dict.fromkeys((*kept, *passed)))}")


def field_of(option: str) -> str:
    """Return the name of the engine's field that an option sets."""
    return FIELDS.get(option, option.replace("-", "_"))


def _rows(arguments: Mapping[str, Any], resolved: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return name, given, resolved and mark of each field worth a line."""
    given = {field_of(name): value for name, value in arguments.items()}
    rows = []
    order = list(given)
    for name, value in sorted(
        resolved.items(), key=lambda item: order.index(item[0]) if item[0] in given else len(order)
    ):
        if name not in given:
            if value not in (None, False):
                rows.append((name, "", _shown(name, value), "default"))
            continue
        before = given[name]
        same = before == value or str(before) == str(value) or (isinstance(value, tuple) and before == list(value))
        mark = "" if same else "ignored" if value in (None, False) else "rewritten"
        rows.append((name, _shown(name, before), _shown(name, value), mark))
    return rows


def _table(rows: Sequence[tuple[str, str, str, str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("", "given", "resolved", ""):
        table.add_column(heading, overflow="fold")
    for name, given, value, mark in rows:
        table.add_row(name, Text(given), Text(value), Text(mark, style="" if mark == "default" else "yellow"))
    return table


def _shown(name: str, value: Any) -> str:
    if secret_name(name) and value:
        return HIDDEN
    if isinstance(value, dict) and "n_bs" in value:
        value = {key: inner for key, inner in value.items() if key != "bs"}  # up to a hundred batch sizes
    plain = value if isinstance(value, str) else json.dumps(value, default=str)
    return printable(plain, _WIDEST)
