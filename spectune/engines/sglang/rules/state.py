"""A launch part way through SGLang's resolution: what the rules read and rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectune.engines.sglang.hardware import Machine
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules import names as n

DEFAULTS: Mapping[str, Any] = {
    "tp-size": 1, "pp-size": 1, "dp-size": 1, "attn-dp-size": 1, "attn-cp-size": 1, "dcp-size": 1, "ep-size": 1,
    "moe-a2a-backend": "none", "kv-cache-dtype": "auto", "disaggregation-mode": "null", "max-prefill-tokens": 16384,
    "torch-compile-max-bs": 32, n.NGRAM_BREADTH: 10, n.ATTENTION_MODE: "prefill",
    "speculative-accept-threshold-single": 1.0, "speculative-accept-threshold-acc": 1.0,
}  # fmt: skip
FLAGS = frozenset({"enable-mixed-chunk", "disable-overlap-schedule", n.ADAPTIVE, n.REJECTION})
"""Switches that are always reported, whether or not they were given."""


class State:
    """What is known so far.

    Attributes:
        values: Argument name → value as resolved so far; what nobody gave and SGLang has not set is absent.
        given: Names somebody gave.
        model: The target.
        draft: The drafter; None when nothing is known of it.
        machine: None in a search, where every argument that depends on it is passed.
        env: Variables of the launch.
        searching: Whether the launch is a search's, which leaves nothing to defaults.
    """

    __slots__ = ("draft", "env", "given", "machine", "model", "searching", "values")

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        model: Model,
        draft: Model | None = None,
        machine: Machine | None = None,
        env: Mapping[str, str] = {},
        searching: bool = False,
    ) -> None:
        given = {n.ALIASES.get(name, name): value for name, value in arguments.items() if value is not None}
        self.given, self.values = given, {**DEFAULTS, **given}
        self.model, self.draft, self.machine, self.env, self.searching = model, draft, machine, env, searching

    def get(self, name: str) -> Any:
        """Return a value as resolved so far, None when there is none yet."""
        return self.values.get(name)

    def on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.values.get(name) is True

    def number(self, name: str) -> int:
        """Return a whole number that has a default."""
        return int(self.values[name])

    @property
    def algorithm(self) -> str | None:
        """The algorithm as resolved so far, in capitals; None without speculation."""
        name = self.values.get(n.ALGORITHM)
        upper = None if name is None else str(name).upper()
        return None if upper == "NONE" else upper

    @property
    def eagle(self) -> bool:
        """Whether the draft is EAGLE's, with steps, branches and a tree."""
        return self.algorithm in n.EAGLE_FAMILY

    @property
    def tree(self) -> bool:
        """Whether the draft branches."""
        topk = self.values.get(n.TOPK)
        return topk is not None and topk > 1

    @property
    def triple(self) -> tuple[Any, Any, Any]:
        """S, K and N."""
        return self.get(n.STEPS), self.get(n.TOPK), self.get(n.DRAFT_TOKENS)

    @property
    def backends(self) -> tuple[Any, Any]:
        """Attention backends of prefill and decode; None where SGLang has not chosen yet."""
        common = self.get(n.ATTENTION)
        return self.get(n.PREFILL_ATTENTION) or common, self.get(n.DECODE_ATTENTION) or common

    @property
    def attention_dp(self) -> bool:
        """Whether attention runs data parallel."""
        return self.attention_groups > 1

    @property
    def attention_groups(self) -> int:
        """Groups that attention runs data parallel in, at least 1; until 0.5.21 dp-size counts them, with a switch."""
        groups = self.number("attn-dp-size")
        return max(1, self.number("dp-size") if groups == 1 and self.on("enable-dp-attention") else groups)

    @property
    def cpu(self) -> bool:
        """Whether it runs on CPUs."""
        return bool(self.get("device") == "cpu")

    @property
    def capability(self) -> int | None:
        """Compute capability of the GPU, 0 on CPUs; None when nothing is known of it."""
        return 0 if self.cpu else None if self.machine is None else self.machine.compute_capability
