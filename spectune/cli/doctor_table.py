"""A checkup as a person reads it: the machine, then what to fix first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from spectune.cli.terminal import OUT, print_line
from spectune.machine import Finding, Fingerprint, overview
from spectune.printable import printable

STYLES = {"fatal": "bold red", "warning": "yellow", "info": "cyan"}


def print_checkup(fingerprint: Fingerprint, findings: Sequence[Finding]) -> None:
    """Print the machine's table, the findings in their order, and the count."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in overview(fingerprint.to_json()):
        table.add_row(label, Text(printable(text)))
    OUT.print(table)
    OUT.print()
    for finding in findings:
        seen = Text.assemble((f"{finding.severity}: ", STYLES[finding.severity]), printable(finding.seen))
        OUT.print(seen, soft_wrap=True)
        print_line(f"  why: {finding.why}")
        if finding.way_out:
            print_line(f"  way out: {finding.way_out}")
    print_line(verdict(findings))


def verdict(findings: Sequence[Finding]) -> str:
    """Return the last line: whether a search would fail."""
    fatal = sum(finding.severity == "fatal" for finding in findings)
    warnings = sum(finding.severity == "warning" for finding in findings)
    if fatal:
        return (
            f"a search would fail here: fix the first {fatal} of these"
            if fatal > 1
            else "a search would fail here: fix the first of these"
        )
    if warnings:
        return f"a search can run; {warnings} of these can make its figures worse or wrong"
    return "a search can run"
