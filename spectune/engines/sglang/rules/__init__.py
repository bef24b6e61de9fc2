"""What SGLang makes of a launch: one table of rules, and what a search derives from it."""

from spectune.engines.sglang.rules.table import BY_NAME, RULES

__all__ = ["BY_NAME", "RULES"]
