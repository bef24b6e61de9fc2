"""The one table: every rule once, in the order in which SGLang's own pipeline comes to it."""

from __future__ import annotations

from functools import lru_cache

from spectune.engines.sglang.rules.afterwards import AFTERWARDS
from spectune.engines.sglang.rules.algorithm import ALGORITHM
from spectune.engines.sglang.rules.attention import ATTENTION
from spectune.engines.sglang.rules.by_model import BY_MODEL
from spectune.engines.sglang.rules.checks import CHECKS
from spectune.engines.sglang.rules.eagle import EAGLE
from spectune.engines.sglang.rules.hybrid import HYBRID
from spectune.engines.sglang.rules.kernels import KERNEL_RULES
from spectune.engines.sglang.rules.launch import DATA_PARALLELISM, MEMORY, PARALLELISM
from spectune.engines.sglang.rules.lookup import NGRAM, OTHERS
from spectune.engines.sglang.rules.nvfp4 import NVFP4, NVFP4_BACKENDS
from spectune.engines.sglang.rules.rule import Rule
from spectune.engines.sglang.rules.same import SAME
from spectune.engines.sglang.rules.sizes import MODEL_SIZES, SIZES
from spectune.engines.sglang.rules.unwise import UNWISE

PIPELINE: tuple[Rule, ...] = (
    *PARALLELISM,
    *MEMORY,
    *MODEL_SIZES,
    *BY_MODEL,
    *HYBRID,
    *NVFP4_BACKENDS,
    *ATTENTION,
    *NVFP4,
    *DATA_PARALLELISM,
    *ALGORITHM,
    *EAGLE,
    *NGRAM,
    *OTHERS,
    *CHECKS,
    *KERNEL_RULES,
    *AFTERWARDS,
    *SIZES,
    *UNWISE,
)
"""What resolves, refuses or warns."""

RULES: tuple[Rule, ...] = (*PIPELINE, *SAME)
"""All of it, the equivalences included."""

BY_NAME = {rule.name: rule for rule in RULES}
assert len(BY_NAME) == len(RULES), "rule names are unique"


@lru_cache(maxsize=32)
def pipeline(version: str) -> tuple[Rule, ...]:
    """Return the rules known for a version of SGLang, in order."""
    return tuple(rule for rule in PIPELINE if rule.holds_in(version))


@lru_cache(maxsize=32)
def folding(version: str) -> tuple[Rule, ...]:
    """Return the rules that rewrite candidates into the form that stands for all alike."""
    return tuple(rule for rule in RULES if rule.holds_in(version) and (rule.canonical or rule.kind == "same"))
