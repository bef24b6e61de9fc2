"""What SGLang's resolver would make of a launch, without SGLang: the table of rules applied in the pipeline's order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spectune.engines.sglang.hardware import MACHINES, Machine
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.judging import Finding, judge
from spectune.engines.sglang.rules.state import DEFAULTS, FLAGS, State

__all__ = ["MACHINES", "Finding", "Machine", "Model", "Resolution", "resolve"]

# Defaults that only stand in for reading; nobody asked for them and the report would drown in them.
UNREPORTED = frozenset(DEFAULTS) - {"attn-dp-size", "dp-size", "tp-size"}


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
    env: Mapping[str, str] = {},
    version: str = SHIPPED_VERSION,
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
    findings, rejected = judge(state, version)
    graver = any(finding.severity != "info" for finding in findings)
    return Resolution(
        "rejected" if rejected else "warning" if graver else "ok", reported(state), tuple(findings)
    )  # fmt: skip


def reported(state: State) -> dict[str, Any]:
    """Return the resolved values under the engine's field names."""
    values = {
        name: value
        for name, value in state.values.items()
        if name in state.given or name not in UNREPORTED or value != DEFAULTS[name]
    }
    values |= {name: state.on(name) for name in FLAGS}
    for key in (n.DECODE_GRAPH, n.PREFILL_GRAPH):
        if key in values:
            graph = values[key]
            sizes = graph["bs"]
            values[key] = {"backend": graph["backend"], "max_bs": graph["max_bs"], "bs": sizes,
                           "n_bs": len(sizes) if isinstance(sizes, list) else None}  # fmt: skip
    return {name.replace("-", "_"): value for name, value in sorted(values.items())}
