"""Rules on which algorithm runs and on its switches, in the order SGLang applies them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State

ADAPTIVE_CONFIG = "speculative-adaptive-config"
ADAPTIVE_STEPS = (0, 1, 3, 5, 7)
GEMMA4_DRAFTS = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")


def unreadable_config(state: State) -> str | None:
    """Say why the file of adaptive speculation cannot be read from here, None without one or with a good one."""
    if state.get(ADAPTIVE_CONFIG) is None:
        return None
    try:
        config = _adaptive_config(state)
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None if isinstance(config, dict) else f"it must hold an object, but got {type(config).__name__}"


def adaptive_steps(state: State) -> tuple[int, ...]:
    """Return the step counts adaptive speculation moves between; SGLang's own without a readable file."""
    try:
        config = _adaptive_config(state)
        slots = [entry["candidate_steps"] for key, entry in config.items() if key.isdigit()]
        return tuple(sorted({int(step) for steps in slots for step in steps})) or ADAPTIVE_STEPS
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return ADAPTIVE_STEPS


def _adaptive_config(state: State) -> Any:
    file = Path(str(state.get(ADAPTIVE_CONFIG)))
    if file.exists() and not file.is_file():  # a pipe may never begin, a device may never end
        raise ValueError("it is a folder, a device or a pipe")
    return json.loads(file.read_text(encoding="utf-8"))


def not_adaptive(state: State) -> str | None:
    """Return why SGLang turns adaptive speculation off."""
    if state.algorithm not in ("EAGLE", "EAGLE3"):
        return f"speculative_algorithm={state.algorithm} (only EAGLE/EAGLE3 are supported)"
    if state.get(n.TOPK) not in (None, 1):
        return f"speculative_eagle_topk={state.get(n.TOPK)} (only topk=1 is supported)"
    if state.attention_dp:
        return "attention DP is not supported"
    names = ("enable-multi-layer-eagle", "enable-two-batch-overlap", "enable-pdmux")
    return next((f"{name} is not supported" for name in names if state.on(name)), None)


def _adaptive_settings(state: State) -> dict[str, Any]:
    steps = state.get(n.STEPS)
    chosen = adaptive_steps(state)[len(adaptive_steps(state)) // 2] if steps is None else steps
    return {n.STEPS: chosen, n.TOPK: state.get(n.TOPK) or 1, n.DRAFT_TOKENS: chosen + 1}


# fmt: off
ALGORITHM = (
    Rule(
        "draft-revision", "rewrite", lambda s: s.get(n.DRAFT_MODEL) is not None and s.get(n.DRAFT_REVISION) is None,
        "", "section 1.1, speculative_hook.py:123", RAN, sets=lambda _: {n.DRAFT_REVISION: "main"},
    ),
    Rule(
        "algorithm-case", "rewrite",
        lambda s: s.algorithm is not None and s.get(n.ALGORITHM) != s.algorithm and s.algorithm != "NEXTN",
        "algorithms are read in capitals", "section 1, speculative_hook.py:138", RAN,
        sets=lambda s: {n.ALGORITHM: s.algorithm}, canonical=True,
    ),
    Rule(
        "gemma4-eagle3", "reject",
        lambda s: s.algorithm == "EAGLE3" and s.draft is not None and s.draft.architecture in GEMMA4_DRAFTS,
        "ValueError: Gemma4AssistantForCausalLM draft requires --speculative-algorithm NEXTN or EAGLE; EAGLE3 is not "
        "supported for this draft architecture.", "speculative_hook.py:102", READ, advice="use NEXTN",
    ),
    Rule(
        "gemma4-mtp", "rewrite",
        lambda s: s.algorithm in ("NEXTN", "EAGLE") and s.draft is not None and s.draft.architecture in GEMMA4_DRAFTS,
        "this drafter runs as FROZEN_KV_MTP", "speculative_hook.py:109", READ,
        sets=lambda _: {n.ALGORITHM: "FROZEN_KV_MTP"},
    ),
    Rule(
        "nextn-is-eagle", "rewrite", lambda s: s.algorithm == "NEXTN", "NEXTN is EAGLE",
        "section 2.7, speculative_hook.py:109", RAN, sets=lambda _: {n.ALGORITHM: "EAGLE"}, canonical=True,
    ),
    Rule(
        "block-verification-algorithm", "reject",
        lambda s: s.on(n.BLOCK_VERIFICATION) and s.algorithm not in n.FROM_HIDDEN_STATES,
        "ValueError: --speculative-use-block-verification only supports EAGLE / EAGLE3 / NEXTN / DFLASH / DSPARK.",
        "R11 speculative_hook.py:175", RAN, since="0.5.23",
    ),
    Rule(
        "block-verification-device", "reject", lambda s: s.on(n.BLOCK_VERIFICATION) and s.get("device") != "cuda",
        "ValueError: --speculative-use-block-verification only supports CUDA or ROCm.",
        "R11 speculative_hook.py:181", RAN, since="0.5.23",
    ),
    Rule(
        "block-verification-samples", "rewrite",
        lambda s: s.on(n.BLOCK_VERIFICATION) and s.algorithm in ("EAGLE", "EAGLE3") and not s.on(n.REJECTION),
        "block verification turns rejection sampling on", "R11 speculative_hook.py:188", RAN,
        sets=lambda _: {n.REJECTION: True}, since="0.5.23",
    ),
    Rule(
        "draft-window", "reject",
        lambda s: s.get("speculative-draft-window-size") is not None and s.get("speculative-draft-window-size") <= 0,
        lambda s: ("ValueError: --speculative-draft-window-size must be positive, got "
                   f"{s.get('speculative-draft-window-size')}."), "R12 speculative_hook.py:202", RAN, since="0.5.15",
    ),
    Rule(
        "draft-window-unused", "unwise",
        lambda s: s.get("speculative-draft-window-size") is not None
        and s.algorithm not in ("EAGLE", "EAGLE3", "DFLASH"),
        "speculative-draft-window-size has no effect with this algorithm", "R12 speculative_hook.py:215", READ,
    ),
    Rule(
        "draft-sink", "reject",
        lambda s: s.get("speculative-draft-sink-size") is not None and s.get("speculative-draft-sink-size") < 0,
        lambda s: ("ValueError: --speculative-draft-sink-size must be non-negative, got "
                   f"{s.get('speculative-draft-sink-size')}."), "R12 speculative_hook.py:224", READ, since="0.5.23",
    ),
    Rule(
        "sink-without-window", "reject",
        lambda s: s.get("speculative-draft-sink-size") is not None and s.get("speculative-draft-window-size") is None,
        "ValueError: --speculative-draft-sink-size requires --speculative-draft-window-size.",
        "R12 speculative_hook.py:228", RAN, since="0.5.23",
    ),
    Rule(
        "unknown-algorithm", "reject", lambda s: s.algorithm is not None and s.algorithm not in n.BUILT_IN,
        lambda s: f"ValueError: Unknown speculative algorithm name: {s.algorithm}", "section 1, spec_info.py:65", RAN,
        advice="EAGLE, EAGLE3, NEXTN, STANDALONE, NGRAM, DFLASH, DSPARK, UNO, or a name that a plugin registers",
    ),
    Rule(
        "adaptive-off", "rewrite", lambda s: s.on(n.ADAPTIVE) and not_adaptive(s) is not None,
        lambda s: f"speculative_adaptive disabled: {not_adaptive(s)}. Falling back to static speculative params.",
        "section 2.6, adaptive_spec_params.py:56", RAN, sets=lambda _: {n.ADAPTIVE: False}, since="0.5.15",
    ),
    Rule(
        "adaptive-config", "unwise", lambda s: s.on(n.ADAPTIVE) and unreadable_config(s) is not None,
        lambda s: (f"speculative-adaptive-config {s.get(ADAPTIVE_CONFIG)}: {unreadable_config(s)}; SGLang refuses a "
                   "file it cannot read, and its own step counts are assumed here"),
        "section 5.5, adaptive_spec_params.py:103", RAN, since="0.5.15", advice="give a JSON file that is there",
    ),
    Rule(
        "adaptive-steps", "reject",
        lambda s: s.on(n.ADAPTIVE) and s.get(n.STEPS) is not None and s.get(n.STEPS) not in adaptive_steps(s),
        lambda s: (f"ValueError: --speculative-num-steps={s.get(n.STEPS)} is not in the adaptive config "
                   f"candidate_steps {list(adaptive_steps(s))}. Pass one of those values."),
        "section 2.6, speculative_hook.py:1415", RAN, since="0.5.15",
    ),
    Rule(
        "adaptive-start", "rewrite", lambda s: s.on(n.ADAPTIVE),
        "adaptive speculation drafts chains and moves between step counts by itself",
        "section 2.6, speculative_hook.py:1398", RAN, sets=_adaptive_settings, since="0.5.15",
    ),
)
# fmt: on
