"""What SGLang's resolver would make of a launch, without SGLang: the table of rules applied in the pipeline's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spectune.engines.sglang.hardware import MACHINES, Machine
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import Kind, Rule
from spectune.engines.sglang.rules.state import DEFAULTS, FLAGS, State
from spectune.engines.sglang.rules.table import pipeline

__all__ = ["MACHINES", "Finding", "Machine", "Model", "Resolution", "resolve"]

Severity = Literal["info", "warning", "fatal"]
SEVERITY: Mapping[Kind, Severity] = {
    "reject": "fatal", "die": "fatal", "unwise": "warning", "implicit": "warning", "rewrite": "info", "note": "info",
}  # fmt: skip
# Defaults that only stand in for reading; nobody asked for them and the report would drown in them.
UNREPORTED = frozenset(DEFAULTS) - {"attn-dp-size", "dp-size", "tp-size"}


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


@dataclass(frozen=True)
class Resolution:
    """The answer.

    Attributes:
        status: `rejected` when the engine's resolver refuses; what resolves and dies later is a `warning` with a fatal
            finding.
        resolved: The engine's field names and values; what had been resolved when it refused.
        findings: In the order of the pipeline.
    """

    status: Literal["ok", "warning", "rejected"]
    resolved: Mapping[str, Any]
    findings: tuple[Finding, ...]

    @property
    def fatal(self) -> bool:
        """Whether the launch does not live to serve."""
        return any(finding.severity == "fatal" for finding in self.findings)


def resolve(
    arguments: Mapping[str, Any],
    *,
    model: Model,
    draft: Model | None,
    machine: Machine,
    env: Mapping[str, str] = {},  # noqa: B006 (never written to)
    version: str = "0.5.23",
) -> Resolution:
    """Resolve a launch as SGLang would.

    Args:
        arguments: SGLang's long names without dashes in front → values; None is not given.
        model: The target model.
        draft: The drafter, None when there is none or nothing is known of it.
        machine: Where it would run.
        env: Variables of the launch.
        version: SGLang's version; rules not known for it are left out.
    """
    state = State(arguments, model=model, draft=draft, machine=machine, env=env)
    findings: list[Finding] = []
    rejected = False
    for rule in pipeline(version):
        if not rule.when(state):
            continue
        if message := rule.message(state):
            findings.append(Finding(rule.name, SEVERITY[rule.kind], message, rule.way_out(state)))
        if rule.kind == "reject":
            rejected = True
            break
        rewrite(state, rule)
    graver = any(finding.severity != "info" for finding in findings)
    return Resolution(
        "rejected" if rejected else "warning" if graver else "ok", reported(state), tuple(findings)
    )  # fmt: skip


def rewrite(state: State, rule: Rule) -> None:
    """Apply what a rule rewrites, if it does."""
    if rule.sets is None:
        return
    for name, value in rule.sets(state).items():
        if value is None:
            state.values.pop(name, None)
        else:
            state.values[name] = value


def reported(state: State) -> dict[str, Any]:
    """Return the resolved values under the engine's field names."""
    values = {name: value for name, value in state.values.items() if name in state.given or name not in UNREPORTED}
    values |= {name: state.on(name) for name in FLAGS}
    for key in (n.DECODE_GRAPH, n.PREFILL_GRAPH):
        if key in values:
            graph = values[key]
            sizes = graph["bs"]
            values[key] = {"backend": graph["backend"], "max_bs": graph["max_bs"], "bs": sizes,
                           "n_bs": None if sizes is None else len(sizes)}  # fmt: skip
    return {name.replace("-", "_"): value for name, value in sorted(values.items())}
