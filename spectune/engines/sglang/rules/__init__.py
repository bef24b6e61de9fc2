"""What SGLang makes of a launch: one table of rules, and what a search derives from it."""

from spectune.engines.sglang.rules.names import ALGORITHM, DRAFT_MODEL, DRAFT_TOKENS, STEPS, TOPK
from spectune.engines.sglang.rules.rule import Rule
from spectune.engines.sglang.rules.table import BY_NAME, RULES

__all__ = ["ALGORITHM", "BY_NAME", "DRAFT_MODEL", "DRAFT_TOKENS", "RULES", "STEPS", "TOPK", "Rule"]
