"""Rules on NGRAM, and what SGLang makes of the algorithms a search passes through."""

from __future__ import annotations

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.eagle import paged_tree
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

NGRAM_TOKENS = 12
DFLASH_TOKENS = 16
DSPARK_GAMMA = 7
DFLASH_BLOCK, DSPARK_BLOCK = "speculative-dflash-block-size", "speculative-dspark-block-size"


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def dspark_gamma(state: State) -> int | None:
    """Return how many tokens DSPARK drafts, None when only N says so."""
    drafter = None if state.draft is None else state.draft.integer("block_size")
    gamma = _int(state.get(DSPARK_BLOCK)) or drafter
    return DSPARK_GAMMA if gamma is None and state.get(n.DRAFT_TOKENS) is None else gamma


# fmt: off
NGRAM = (
    Rule(
        "ngram-topk", "rewrite", lambda s: s.algorithm == "NGRAM" and s.get(n.TOPK) != s.get(n.NGRAM_BREADTH),
        "NGRAM's breadth stands in for top-k, whatever was given", "section 2.2, speculative_hook.py:1312", RAN,
        sets=lambda s: {n.TOPK: s.get(n.NGRAM_BREADTH)},
    ),
    Rule(
        "ngram-tokens", "rewrite", lambda s: s.algorithm == "NGRAM" and s.get(n.DRAFT_TOKENS) is None,
        "speculative_num_draft_tokens is set to 12 by default for ngram speculative decoding.",
        "section 2.2, speculative_hook.py:1318", RAN, sets=lambda _: {n.DRAFT_TOKENS: NGRAM_TOKENS},
    ),
    Rule(
        "ngram-breadth-zero", "reject",
        lambda s: s.algorithm == "NGRAM" and s.get(n.STEPS) is None and s.get(n.TOPK) == 0,
        "ZeroDivisionError: integer division or modulo by zero", "section 2.2, speculative_hook.py:1328", RAN,
        advice="speculative-ngram-max-bfs-breadth from 1 on",
    ),
    Rule(
        "ngram-steps", "rewrite",
        lambda s: s.algorithm == "NGRAM" and s.get(n.STEPS) is None, "",
        "section 2.2, speculative_hook.py:1328", RAN,
        sets=lambda s: {n.STEPS: s.get(n.DRAFT_TOKENS) // s.get(n.TOPK)},
    ),
    Rule(
        "ngram-page", "reject", lambda s: s.algorithm == "NGRAM" and paged_tree(s, ("flashinfer",)),
        lambda s: (f"ValueError: speculative_eagle_topk({s.get(n.TOPK)}) > 1 with page_size({s.get(n.PAGE)}) > 1 is "
                   "unstable and produces incorrect results for paged attention backends. This combination is only "
                   "supported for the 'flashinfer' backend."), "section 2.2, speculative_hook.py:1351", RAN,
        advice="page-size 1, flashinfer, or speculative-ngram-max-bfs-breadth 1",
    ),
    Rule(
        "ngram-dp", "reject", lambda s: s.algorithm == "NGRAM" and s.attention_dp,
        "ValueError: Currently ngram speculative decoding does not support dp attention.",
        "section 2.2, speculative_hook.py:1362", RAN, advice="attn-dp-size 1",
    ),
)

OTHERS = (
    Rule(
        "block-draft-device", "reject", lambda s: s.algorithm in n.BLOCK_ALGORITHMS and s.cpu,
        lambda s: (f"ValueError: DFLASH speculative decoding is not supported by CpuPlatform on device "
                   f"{s.get('device')!r}." if s.algorithm == "DFLASH" else
                   "ValueError: DSpark speculative decoding only supports CUDA, NPU or XPU device."),
        "section 2.3, speculative_hook.py:300", RAN, since="0.5.15",
    ),
    Rule(
        "block-draft-dp-head", "reject",
        lambda s: s.algorithm in n.BLOCK_ALGORITHMS and s.attention_dp and not s.on("enable-dp-lm-head"),
        lambda s: (f"ValueError: {'DFLASH' if s.algorithm == 'DFLASH' else 'DSpark'} with dp attention requires "
                   "--enable-dp-lm-head."), "sections 2.3, 2.4, speculative_hook.py:307", READ, since="0.5.22",
    ),
    Rule(
        "block-draft-pp", "reject", lambda s: s.algorithm in n.BLOCK_ALGORITHMS and s.number("pp-size") != 1,
        lambda s: ("ValueError: Currently DFLASH speculative decoding only supports pp_size == 1."
                   if s.algorithm == "DFLASH" else "ValueError: DSpark pipeline parallelism requires PD prefill; "
                   "decode and non-disaggregated serving require pp_size == 1."), "speculative_hook.py:324", READ,
    ),
    Rule(
        "dflash-drafter", "reject", lambda s: s.algorithm == "DFLASH" and s.get(n.DRAFT_MODEL) is None,
        "ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path.",
        "section 2.3, speculative_hook.py:329", READ,
    ),
    Rule(
        "block-draft-chain", "rewrite",
        lambda s: s.algorithm in n.BLOCK_ALGORITHMS and (s.get(n.STEPS), s.get(n.TOPK)) != (1, 1),
        "drafts blocks: steps and top-k are 1", "sections 2.3, 2.4, speculative_hook.py:339", RAN,
        sets=lambda _: {n.STEPS: 1, n.TOPK: 1},
    ),
    Rule(
        "dflash-size", "reject",
        lambda s: s.algorithm == "DFLASH" and None not in (s.get(DFLASH_BLOCK), s.get(n.DRAFT_TOKENS))
        and s.get(DFLASH_BLOCK) != s.get(n.DRAFT_TOKENS),
        lambda s: ("ValueError: Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but "
                   "they differ. For DFLASH they must match. speculative_num_draft_tokens="
                   f"{s.get(n.DRAFT_TOKENS)}, speculative_dflash_block_size={s.get(DFLASH_BLOCK)}."),
        "section 2.3, speculative_hook.py:381", RAN,
    ),
    Rule(
        "dflash-tokens", "rewrite", lambda s: s.algorithm == "DFLASH" and s.get(n.DRAFT_TOKENS) is None, "",
        "section 2.3, speculative_hook.py:396", RAN,
        sets=lambda s: {n.DRAFT_TOKENS: s.get(DFLASH_BLOCK) or (s.draft and s.draft.integer("block_size"))
                        or DFLASH_TOKENS},
    ),
    Rule(
        "dspark-size", "reject",
        lambda s: s.algorithm == "DSPARK" and None not in (dspark_gamma(s), s.get(n.DRAFT_TOKENS))
        and s.get(n.DRAFT_TOKENS) != (dspark_gamma(s) or 0) + 1,
        lambda s: ("ValueError: DSpark speculative_num_draft_tokens must equal gamma + 1 "
                   f"(= {(dspark_gamma(s) or 0) + 1} for gamma={dspark_gamma(s)}), but got "
                   f"speculative_num_draft_tokens={s.get(n.DRAFT_TOKENS)}."), "section 2.4, speculative_hook.py:829",
        READ,
    ),
    Rule(
        "dspark-tokens", "rewrite", lambda s: s.algorithm == "DSPARK" and s.get(n.DRAFT_TOKENS) is None, "",
        "section 2.4, speculative_hook.py:838", READ, sets=lambda s: {n.DRAFT_TOKENS: (dspark_gamma(s) or 0) + 1},
    ),
    Rule(
        "block-draft-requests", "rewrite", lambda s: s.algorithm in n.BLOCK_ALGORITHMS and s.get(n.RUNNING) is None,
        "Max running requests is reset to 48 for speculative decoding.", "section 1.1, speculative_hook.py:438", RAN,
        sets=lambda _: {n.RUNNING: 48}, advice="pass max-running-requests",
    ),
    Rule(
        "uno-device", "reject", lambda s: s.algorithm == "UNO" and s.cpu, "ValueError: UNO only supports CUDA.",
        "section 2.5, speculative_hook.py:452", RAN, since="0.5.23",
    ),
    Rule(
        "uno-drafter", "reject", lambda s: s.algorithm == "UNO" and s.get(n.DRAFT_MODEL) is not None,
        "ValueError: UNO reuses the target model and does not accept --speculative-draft-model-path.",
        "section 2.5, speculative_hook.py:454", READ, since="0.5.23",
    ),
    Rule(
        "uno-adapter", "reject", lambda s: s.algorithm == "UNO" and s.get("uno-lora-path") is None,
        "ValueError: UNO requires --uno-lora-path.", "section 2.5, speculative_hook.py:459", READ, since="0.5.23",
    ),
)
# fmt: on
