"""Rules on a KV cache in NVFP4 (arg_groups/kv_cache_hook.py:handle_kv4_compatibility)."""

from __future__ import annotations

from typing import Any

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.backends import BLACKWELL, BLACKWELL_PRO
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

MHA = ("triton", "torch_native", "flex_attention", "trtllm_mha")
MLA = ("flashinfer", "trtllm_mla")
DEQUANTIZED = "prefill-kv-cache-dequant-dtype"
SERVED_BY = {"nvfp4": "trtllm_mha", "fp8_e4m3": "flashinfer"}
"""What prefill reads a cache as, to the backend that does."""
DRAFTED = ("EAGLE", "EAGLE3", "NEXTN", "NGRAM")


def _nvfp4(state: State) -> bool:
    return bool(state.get("kv-cache-dtype") == "nvfp4")


def native(state: State) -> bool:
    """Whether the cache has the layout of Blackwell's own kernels, which few drafters can write."""
    return _nvfp4(state) and state.capability == BLACKWELL and "trtllm_mha" in state.backends


def _unread(state: State) -> bool:
    """Whether one backend serves both phases and cannot read such a cache."""
    prefill, decode = state.backends
    known = MLA if state.model.mla else MHA
    return _nvfp4(state) and prefill == decode != "fa4" and state.get(n.ATTENTION) not in (None, *known)


def _prefill(state: State) -> Any:
    return state.get(n.PREFILL_ATTENTION) or state.get(n.ATTENTION)


def workspace(state: State) -> str | None:
    """Return what prefill reads such a cache as; None where its backend can read neither."""
    asked, backend = state.get(DEQUANTIZED), _prefill(state)
    if asked not in (None, "auto"):
        return str(asked)
    if backend is not None:
        return next((dtype for dtype, served in SERVED_BY.items() if served == backend), None)
    return "nvfp4" if state.capability == BLACKWELL else "fp8_e4m3"


# fmt: off
NVFP4_BACKENDS = (
    Rule(
        "nvfp4-prefill", "reject", lambda s: _nvfp4(s) and workspace(s) not in SERVED_BY,
        lambda s: ("ValueError: NVFP4 prefill supports an FP8 E4M3 workspace or native NVFP4, but backend "
                   f"{_prefill(s)!r} provides neither."), "R21 kv_cache_hook.py:53", RAN, since="0.5.23",
        advice="leave the attention backends to SGLang, or another kv-cache-dtype",
    ),
    Rule(
        "nvfp4-native-machine", "reject",
        lambda s: _nvfp4(s) and workspace(s) == "nvfp4" and s.capability not in (None, BLACKWELL),
        "ValueError: Native NVFP4 prefill currently requires SM100; use --prefill-kv-cache-dequant-dtype=fp8_e4m3 on "
        "this platform.", "kv_cache_hook.py:60", RAN, since="0.5.23", advice=f"{DEQUANTIZED} fp8_e4m3",
    ),
    Rule(
        "nvfp4-prefill-dtype", "reject",
        lambda s: _nvfp4(s) and s.get(n.PREFILL_ATTENTION) not in (None, SERVED_BY[str(workspace(s))]),
        lambda s: (f"ValueError: --{DEQUANTIZED}={workspace(s)} requires prefill backend "
                   f"{SERVED_BY[str(workspace(s))]!r}, but --prefill-attention-backend={s.get(n.PREFILL_ATTENTION)!r} "
                   "was set. Remove the backend option and select the KV dtype only."), "kv_cache_hook.py:71", READ,
        since="0.5.23", advice="leave prefill-attention-backend out",
    ),
    Rule(
        "nvfp4-decode", "reject", lambda s: _nvfp4(s) and s.get(n.DECODE_ATTENTION) not in (None, "trtllm_mha"),
        lambda s: (f"ValueError: NVFP4 decode requires --decode-attention-backend=trtllm_mha; got "
                   f"{s.get(n.DECODE_ATTENTION)!r}. Remove the backend option; NVFP4 selects the supported decode "
                   "implementation automatically."), "kv_cache_hook.py:80", RAN, since="0.5.23",
        advice="leave decode-attention-backend out",
    ),
    Rule(
        "nvfp4-backends", "rewrite", _nvfp4,
        lambda s: f"a KV cache in NVFP4 is prefilled by {SERVED_BY[str(workspace(s))]} and decoded by trtllm_mha",
        "kv_cache_hook.py:86", RAN, since="0.5.23",
        sets=lambda s: {n.PREFILL_ATTENTION: SERVED_BY[str(workspace(s))], n.DECODE_ATTENTION: "trtllm_mha"},
    ),
)

NVFP4 = (
    Rule(
        "nvfp4-machine", "reject",
        lambda s: _nvfp4(s) and not s.cpu and s.capability not in (None, BLACKWELL, BLACKWELL_PRO),
        "RuntimeError: --kv-cache-dtype=nvfp4 requires Blackwell SM100 or SM120. Use --kv-cache-dtype=fp4_mx_block16 "
        "for the block-size-16 FP4 recipe.", "R21 kv_cache_hook.py:122", RAN, since="0.5.22", advice="fp8_e4m3",
    ),
    Rule(
        "nvfp4-algorithm", "reject",
        lambda s: native(s) and s.algorithm is not None and s.algorithm not in DRAFTED
        and s.algorithm not in ("DFLASH", "DSPARK"),
        lambda s: ("ValueError: SM100 native NVFP4 speculative decoding supports EAGLE, EAGLE3, NEXTN, and breadth-1 "
                   f"NGRAM; got {s.algorithm}."), "R21 kv_cache_hook.py:178", RAN, since="0.5.22",
        advice="EAGLE3, or another kv-cache-dtype",
    ),
    Rule(
        "nvfp4-block-drafts", "reject", lambda s: native(s) and s.algorithm in n.BLOCK_ALGORITHMS,
        lambda s: ("ValueError: SM100 native NVFP4 speculative decoding does not yet support "
                   f"{s.algorithm}; use EAGLE/NEXTN or NGRAM."), "R21 kv_cache_hook.py:166", READ, since="0.5.22",
    ),
    Rule(
        "nvfp4-ngram", "reject",
        lambda s: native(s) and s.algorithm == "NGRAM" and s.get(n.NGRAM_BREADTH) != 1,
        lambda s: ("ValueError: SM100 native NVFP4 NGRAM speculative decoding requires "
                   "--speculative-ngram-max-bfs-breadth=1 because trtllm_mha supports linear target verification only; "
                   f"got {s.get(n.NGRAM_BREADTH)}."), "R21 kv_cache_hook.py:190", RAN, since="0.5.22",
        advice="speculative-ngram-max-bfs-breadth 1",
    ),
    Rule(
        "nvfp4-draft-backend", "rewrite",
        lambda s: native(s) and s.algorithm not in (None, "NGRAM") and s.get(n.DRAFT_ATTENTION) is None,
        "SM100 native NVFP4 speculative decoding uses trtllm_mha for the draft worker.",
        "R21 kv_cache_hook.py:216", RAN, sets=lambda _: {n.DRAFT_ATTENTION: "trtllm_mha"}, since="0.5.22",
    ),
    Rule(
        "nvfp4-draft-backend-named", "reject",
        lambda s: native(s) and s.algorithm not in (None, "NGRAM") and s.get(n.DRAFT_ATTENTION) != "trtllm_mha",
        lambda s: ("ValueError: SM100 native NVFP4 speculative decoding requires "
                   "--speculative-draft-attention-backend=trtllm_mha so the draft worker consumes its physical NVFP4 "
                   f"KV layout; got {s.get(n.DRAFT_ATTENTION)!r}."), "R21 kv_cache_hook.py:226", RAN, since="0.5.22",
        advice="leave speculative-draft-attention-backend out",
    ),
    Rule(
        "nvfp4-attention-mode", "rewrite",
        lambda s: native(s) and s.backends == ("flashinfer", "trtllm_mha") and s.algorithm is not None
        and s.get(n.ATTENTION_MODE) == "prefill",
        "SM100 mixed NVFP4 speculative decoding routes target verify to trtllm_mha: speculative-attention-mode is "
        "decode", "R21 kv_cache_hook.py:233", RAN, sets=lambda _: {n.ATTENTION_MODE: "decode"}, since="0.5.22",
    ),
    Rule(
        "nvfp4-model", "reject", _unread,
        lambda s: (f"AssertionError: KV4 {'MLA' if s.model.mla else 'MHA'} expects attention_backend to be one of "
                   f"{list(MLA if s.model.mla else MHA)}, but got {s.get(n.ATTENTION)}"), "kv_cache_hook.py:294", RAN,
        since="0.5.22", advice="one of these, or another kv-cache-dtype",
    ),
)
# fmt: on
