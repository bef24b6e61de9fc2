"""Arguments that make no difference: candidates that differ in nothing else are one (facts, section 2.7).

Look-alikes that are *not* the same and therefore have no entry: S, K, N left to SGLang against the same numbers written
out; max-running-requests left out against 48; page-size 16 against 1 without a named attention backend.
"""

from __future__ import annotations

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.variables import OVERLAP
from spectune.space.names import ENV_PREFIX

OTHERS = frozenset({"speculative-dflash-*", "speculative-dspark-*", "speculative-domino-*"})
DRAFTERS = frozenset(
    {
        "speculative-draft-load-format", "speculative-draft-model-quantization", "speculative-draft-kv-cache-dtype",
        "speculative-draft-window-size", "speculative-draft-sink-size", "speculative-token-map",
        "speculative-moe-runner-backend", "speculative-moe-a2a-backend",
    }
)  # fmt: skip


# fmt: off
SAME = (
    Rule(
        "no-speculation", "same", lambda s: s.algorithm is None, "without speculation its arguments are not passed",
        "DESIGN, section 6", RAN, drops=frozenset({"speculative-*"}),
    ),
    Rule(
        "ngram-has-no-drafter", "same", lambda s: s.algorithm == "NGRAM",
        "NGRAM looks tokens up: no drafter, and steps and breadth come from its own options", "section 2.2", RAN,
        drops=frozenset({n.DRAFT_MODEL, n.DRAFT_REVISION, n.STEPS, n.TOPK, n.DRAFT_ATTENTION}),
    ),
    Rule(
        "attention-mode", "same",
        lambda s: s.backends[0] == s.backends[1] and s.backends[0] not in (None, "aiter"),
        "speculative-attention-mode only picks one of two different backends", "section 2.7", READ,
        drops=frozenset({n.ATTENTION_MODE}),
    ),
    Rule(
        "split-backends", "same",
        lambda s: s.get(n.PREFILL_ATTENTION) is not None and s.get(n.PREFILL_ATTENTION) == s.get(n.DECODE_ATTENTION),
        "attention-backend does not matter where prefill and decode name the same other one", "overrides.py:1127", RAN,
        drops=frozenset({n.ATTENTION}),
    ),
    Rule(
        "graphs-off", "same", lambda s: n.decode_graphs_off(s.values), "batch sizes do not matter without graphs",
        "section 1.2", RAN,
        drops=frozenset({n.GRAPH_SIZES, n.GRAPH_MOST, "disable-cuda-graph-padding"}),
    ),
    Rule(
        "graph-list", "same", lambda s: s.get(n.GRAPH_SIZES) is not None,
        "the list decides, whatever the maximum says", "section 1.2, memory_hook.py:202", RAN,
        drops=frozenset({n.GRAPH_MOST}),
    ),
    Rule(
        "attention-alone", "same", lambda s: s.number("dp-size") == 1,
        "enable-dp-attention with one group is no data parallelism", "R16 parallel_hook.py:39", RAN,
        drops=frozenset({"enable-dp-attention"}),
    ),
    Rule(
        "main-revision", "same", lambda s: s.get(n.DRAFT_REVISION) == "main", "main is the default revision",
        "section 2.7, speculative_hook.py:123", RAN, drops=frozenset({n.DRAFT_REVISION}),
    ),
    Rule(
        "eagle3-token-map", "same", lambda s: s.algorithm == "EAGLE3", "EAGLE3 ignores speculative-token-map",
        "R13 eagle_worker_v2.py:323", READ, drops=frozenset({"speculative-token-map"}),
    ),
    Rule(
        "overlap-variable", "same", lambda _: True, f"no code of this version reads {OVERLAP}",
        "section 1.1", READ, drops=frozenset({f"{ENV_PREFIX}{OVERLAP}"}), since="0.5.14",
    ),
    Rule(
        "others-alone", "same", lambda s: s.algorithm in n.EAGLE_FAMILY,
        "only NGRAM, DFLASH and DSPARK read the arguments with their names", "sections 2.2 to 2.4, ngram_worker.py:99",
        READ, drops=frozenset({"speculative-ngram-*", *OTHERS}),
    ),
    Rule(
        "drafter-alone", "same", lambda s: s.algorithm == "NGRAM", "NGRAM has no draft model that these could be for",
        "section 2.2, ngram_worker.py:99", READ, drops=DRAFTERS | OTHERS,
    ),
    Rule(
        "mixed-chunk", "same", lambda s: s.algorithm in {"STANDALONE", "NGRAM"},
        "mixed chunks are switched off with this algorithm", "R9 speculative_hook.py:1104", RAN,
        drops=frozenset({"enable-mixed-chunk"}),
    ),
)
# fmt: on
