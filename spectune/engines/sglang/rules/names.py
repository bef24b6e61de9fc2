"""Argument names and families that the rules speak of."""

from __future__ import annotations

import difflib
import string
from collections.abc import Mapping
from typing import Any

from spectune import space

MODEL = "model-path"
ALGORITHM = space.ALGORITHM
NONE = space.NO_SPECULATION
DRAFT_MODEL = space.DRAFTER
DRAFT_REVISION = "speculative-draft-model-revision"
STEPS, TOPK, DRAFT_TOKENS = space.NUM_STEPS, space.EAGLE_TOPK, space.NUM_DRAFT_TOKENS
ATTENTION_MODE = "speculative-attention-mode"
DRAFT_ATTENTION = "speculative-draft-attention-backend"
ADAPTIVE = "speculative-adaptive"
REJECTION = "speculative-use-rejection-sampling"
BLOCK_VERIFICATION = "speculative-use-block-verification"
NGRAM_BREADTH = "speculative-ngram-max-bfs-breadth"
MAMBA_STRATEGY = "mamba-radix-cache-strategy"
RUNNING = "max-running-requests"
PAGE = "page-size"
CHUNK = "chunked-prefill-size"
CONTEXT = "context-length"
MEMORY = "mem-fraction-static"
ATTENTION = "attention-backend"
PREFILL_ATTENTION = "prefill-attention-backend"
DECODE_ATTENTION = "decode-attention-backend"
GRAPH_SIZES = "cuda-graph-bs-decode"
GRAPH_MOST = "cuda-graph-max-bs-decode"
GRAPHS_OFF = ("disable-decode-cuda-graph", "disable-cuda-graph")

# What the resolver works out and no argument of this spelling sets.
DECODE_GRAPH = "decode-cuda-graph"
PREFILL_GRAPH = "prefill-cuda-graph"

BLOCK_ALGORITHMS = frozenset({"DFLASH", "DSPARK"})
"""Their drafters draft whole blocks at once."""

EAGLE_FAMILY = frozenset({"EAGLE", "EAGLE3", "STANDALONE"})
RULED = EAGLE_FAMILY | {"NGRAM"}
"""Algorithms spectune folds and refuses for; all others pass through a search as they are written."""

BUILT_IN = RULED | BLOCK_ALGORITHMS | {"UNO", "FROZEN_KV_MTP", "NONE"}
ALGORITHMS = tuple(sorted(BUILT_IN - {"NONE"} | {"NEXTN"}))
"""As a user may write them."""

FROM_HIDDEN_STATES = BLOCK_ALGORITHMS | {"EAGLE", "EAGLE3"}
"""Their drafters read the target's hidden states."""

PAGED_TREE = ("flashinfer", "fa3", "triton")
# Their multi-step draft or verify kernels take one branch only.
CHAIN_ONLY = frozenset({"trtllm_mha", "trtllm_mla", "cutedsl_mla", "flashmla", "aiter", "dsv4"})
# speculative/draft_utils.py:96-113; the same list serves draft-extend (124-143).
DRAFT_BACKENDS = frozenset(
    {
        "flashinfer", "triton", "intel_amx", "intel_xpu", "aiter", "fa3", "hybrid_linear_attn", "flashmla",
        "trtllm_mha", "trtllm_mla", "cutedsl_mla", "dsa", "nsa", "ascend", "fa4", "dsv4", "qsa",
    }
)  # fmt: skip
BUNDLED_DRAFT = frozenset(
    {
        "DeepseekV32ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV4ForCausalLM", "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM", "GlmMoeDsaForCausalLM", "BailingMoeForCausalLM", "BailingMoeV2ForCausalLM",
        "BailingMoeV2_5ForCausalLM", "MistralLarge3ForCausalLM", "PixtralForConditionalGeneration", "HYV3ForCausalLM",
        "HYV4ForCausalLM", "Qwen4ExpForConditionalGeneration",
    }
)  # fmt: skip
"""Architectures whose checkpoint brings its own draft layers: the draft path defaults to the model's."""

BACKEND_ALIASES = {"compressed": "dsv4", "tokenspeed_mla": "cutedsl_mla"}
ALIASES = {
    "attention-context-parallel-size": "attn-cp-size",
    "attention-data-parallel-size": "attn-dp-size",
    "data-parallel-size": "dp-size",
    "decode-context-parallel-size": "dcp-size",
    "expert-parallel-size": "ep-size",
    "ep": "ep-size",
    "model": MODEL,
    "pipeline-parallel-size": "pp-size",
    "speculative-draft-model": DRAFT_MODEL,
    "tensor-parallel-size": "tp-size",
}

# Read only together with each other (and with what every launch shares), so that they can be judged once per
# S × K × N and not once per combination with everything else.
DRAFT_NAMES = frozenset({ALGORITHM, STEPS, TOPK, DRAFT_TOKENS})
# Where one of these is in play, S and N matter to rules that read other arguments as well.
COUPLING = frozenset(
    {ADAPTIVE, "speculative-adaptive-config", "speculative-ngram-external-corpus-path", "mamba-track-interval"}
)


def algorithm_of(arguments: Mapping[str, Any]) -> str | None:
    """Return SGLang's own name of the algorithm, None without speculation."""
    name = str(arguments.get(ALGORITHM, NONE)).upper()
    return None if name == NONE.upper() else "EAGLE" if name == "NEXTN" else name


def reported_algorithm(fields: Mapping[str, Any]) -> str | None:
    """Return the algorithm that SGLang's resolved fields name, in capitals; None without speculation.

    Args:
        fields: By their names in `server_args` and `/server_info`.
    """
    name = fields.get("speculative_algorithm")
    return None if name in (None, "", "NONE") else str(name).upper()


def decode_graphs_off(arguments: Mapping[str, Any]) -> bool:
    """Whether arguments say that decoding runs without graphs."""
    switched_off = any(arguments.get(name) is True for name in GRAPHS_OFF)
    return switched_off or arguments.get("cuda-graph-backend-decode") == "disabled"


def misspelt_algorithm(name: str) -> str | None:
    """Return the algorithm that is surely meant by a name that is none.

    A plugin may call its own after one of SGLang's: EAGLE4, HOUSE_EAGLE. EAGLE33 is typed twice, and none.
    """
    written = name.upper()
    if written in ALGORITHMS:
        return None
    once = {written[:at] + written[at + 1 :] for at in range(1, len(written)) if written[at] == written[at - 1]}
    if typed_twice := once.intersection(ALGORITHMS):
        return min(typed_twice)
    if any(known.rstrip(string.digits) in written for known in (*BUILT_IN, *ALGORITHMS)):
        return None
    return next(iter(difflib.get_close_matches(written, ALGORITHMS, n=1, cutoff=0.8)), None)


def like_algorithm(name: str) -> list[str]:
    """Return the algorithms that a plugin's name is like: EAGLE-3 is EAGLE3 to a reader, EAGLE4 may be two of them."""
    letters = "".join(filter(str.isalnum, name.upper()))
    alike = [known for known in ALGORITHMS if known.replace("_", "") == letters]
    return alike or sorted(difflib.get_close_matches(letters, ALGORITHMS, n=2, cutoff=0.8))
