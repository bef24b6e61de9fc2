"""The table applied to a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from spectune.engines.sglang.rules.rule import Kind, Rule
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.rules.table import pipeline

Severity = Literal["info", "warning", "fatal"]
SEVERITY: Mapping[Kind, Severity] = {
    "reject": "fatal", "die": "fatal", "unwise": "warning", "implicit": "warning", "pointless": "warning",
    "rewrite": "info", "note": "info",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What one rule says of a launch.

    Attributes:
        rule: Its name in the table.
        severity: `fatal` ends the launch, sooner (rejected) or later.
        message: SGLang's own words where it refuses.
        advice: The way out; empty where none is needed.
    """

    rule: str
    severity: Severity
    message: str
    advice: str


def judge(state: State, version: str) -> tuple[list[Finding], bool]:
    """Resolve a launch in place; return what the rules say of it, and whether SGLang's resolver refuses it.

    As SGLang does, it stops at the first refusal.
    """
    findings = []
    for rule in pipeline(version):
        if not rule.when(state):
            continue
        if message := rule.message(state):
            findings.append(Finding(rule.name, SEVERITY[rule.kind], message, rule.way_out(state)))
        if rule.kind == "reject":
            return findings, True
        rewrite(state, rule)
    return findings, False


def rewrite(state: State, rule: Rule) -> None:
    """Apply what a rule rewrites, if it does."""
    if rule.sets is None:
        return
    for name, value in rule.sets(state).items():
        if value is None:
            state.values.pop(name, None)
        else:
            state.values[name] = value
