"""Whether the algorithm is the one the drafter was made for, and whether the target supports it."""

from __future__ import annotations

from spectune.engines.sglang.preflight.architectures import kind_by_name
from spectune.engines.sglang.preflight.check import Check
from spectune.engines.sglang.preflight.origin import DRAFT_QUANTIZATION
from spectune.engines.sglang.preflight.pair import FUSION, HEADS, Pair
from spectune.engines.sglang.rules.algorithm import GEMMA4_DRAFTS
from spectune.engines.sglang.rules.names import BLOCK_ALGORITHMS
from spectune.engines.sglang.rules.rule import LAUNCHED, READ
from spectune.engines.sglang.versions.history import newest_known

OWN_COPY = "target-drafts-for-itself"
FUSED = frozenset({"EAGLE", "EAGLE3"})
# Names that MTP layers have in checkpoints, beside layers numbered behind the last one.
MTP_NAMES = ("mtp.", "model.mtp", "mtp_", "nextn", "eh_proj")


def _draft(pair: Pair) -> str:
    return f"{pair.draft.name} ({pair.draft.architecture})"


def _eagle3_under_eagle(pair: Pair) -> str | None:
    if pair.kind != "eagle3" or pair.algorithm != "EAGLE":
        return None
    return (
        f"{_draft(pair)} is an EAGLE-3 drafter: under EAGLE it starts without an error, its fusion layer is skipped "
        "and next to nothing is accepted (accept length 1.0)"
    )


def _eagle3_by_name(pair: Pair) -> str | None:
    """Guess from the name of a drafter of which nothing is known."""
    if pair.algorithm != "EAGLE" or pair.own or pair.draft.architecture is not None:
        return None
    if kind_by_name(pair.draft.name) != "eagle3":
        return None
    return (
        f"{pair.draft.name} is an EAGLE-3 drafter by its name, which is all that is known of it here: such a drafter "
        "starts under EAGLE without an error, and next to nothing is accepted (accept length 1.0)"
    )


def _eagle_under_eagle3(pair: Pair) -> str | None:
    if pair.kind != "eagle" or pair.algorithm != "EAGLE3":
        return None
    return f"{_draft(pair)} is an EAGLE-1/2 drafter: it has no input for the layers that EAGLE3 captures"


def _mtp_under_eagle3(pair: Pair) -> str | None:
    if pair.kind != "mtp" or pair.algorithm != "EAGLE3" or pair.draft.architecture in GEMMA4_DRAFTS:
        return None
    return f"{_draft(pair)} is loaded as a multi-token-prediction layer, which EAGLE3 cannot drive"


def _head_alone(pair: Pair) -> str | None:
    if pair.algorithm != "STANDALONE" or pair.kind not in HEADS | {"mtp", "block"}:
        return None
    return f"{_draft(pair)} is loaded as a draft head, which needs the target's hidden states; STANDALONE has none"


def _whole_model(pair: Pair) -> str | None:
    if pair.kind != "whole" or pair.algorithm not in FUSED or _misdeclared(pair) is not None:
        return None
    return f"{_draft(pair)} is a whole model, not a draft head: {pair.algorithm} has no use for it"


def _misdeclared(pair: Pair) -> str | None:
    if pair.kind != "whole" or pair.algorithm not in FUSED or pair.draft.weights.named(*FUSION) is None:
        return None
    return (
        f"{pair.draft.name}: its config.json says {pair.draft.architecture}, which SGLang loads as a whole model, but "
        "its weights are a draft head's (fc.weight)"
    )


def _block_drafter(pair: Pair) -> str | None:
    if pair.kind is None or (pair.kind == "block") == (pair.algorithm in BLOCK_ALGORITHMS):
        return None
    if pair.algorithm not in BLOCK_ALGORITHMS | FUSED:
        return None
    if pair.own and pair.algorithm == "DSPARK":  # a checkpoint may bundle such a head beside its MTP layers
        return None
    what = "drafts whole blocks" if pair.kind == "block" else "drafts token by token"
    return f"{_draft(pair)} {what}, and {pair.algorithm} drives the other sort"


def _unknown(pair: Pair) -> str | None:
    if pair.kind is not None or pair.draft.architecture is None:
        return None
    return f"SGLang {pair.version} has no model class {pair.draft.architecture}, which {pair.draft.name} asks for"


def _no_mtp_layers(pair: Pair) -> str | None:
    """Look for MTP layers in a checkpoint that is to draft with its own."""
    if not (pair.kind == "mtp" and pair.algorithm == "EAGLE" and pair.own):
        return None
    said = pair.draft.model.text("num_nextn_predict_layers")
    if said == 0:
        return f"{_draft(pair)} has num_nextn_predict_layers 0: no layer to draft with"
    names, layers = pair.draft.weights.tensors, pair.draft.layers
    if not names or pair.draft.weights.broken or layers is None:
        return None
    behind = tuple(f"layers.{layer}." for layer in range(layers, layers + max(1, said if isinstance(said, int) else 1)))
    if any(part in name for name in names for part in (*behind, *MTP_NAMES)):
        return None
    return f"{_draft(pair)} has {layers} layers and none behind them: this copy comes without its MTP layer"


def _captures(pair: Pair) -> str | None:
    if pair.algorithm != "EAGLE3" or pair.target_class is None or not pair.uses_auxiliary:
        return None
    if pair.target_class.captures_in(pair.version):
        return None
    return (
        f"ValueError: Model {pair.target.architecture} does not implement set_eagle3_layers_to_capture, which EAGLE3 "
        "aux hidden-state capture requires."
    )


def _shares(pair: Pair) -> str | None:
    if pair.algorithm not in FUSED or pair.target_class is None or pair.target_class.shares_in(pair.version):
        return None
    return (
        f"{pair.target.architecture} has no get_embed_and_head in SGLang {pair.version}: it lends a drafter neither "
        "its embedding nor its head"
    )


def _own_copy(pair: Pair) -> str | None:
    """Look for a target that is to draft for itself as a whole; its layers stored with fewer bits would be faster."""
    whole = pair.own and pair.kind == "whole" and pair.algorithm == "STANDALONE"
    if not whole or pair.arguments.get(DRAFT_QUANTIZATION) is not None:
        return None
    return (
        f"the drafter {pair.draft.name} is the target itself: each of its drafts takes as long as a token "
        "without speculation, and the verify comes on top: S drafts and a verify give S + 1 tokens at most"
    )


def _asking_nothing(pair: Pair) -> str:
    others = "NGRAM or STANDALONE, which ask nothing of the target"
    return others if newest_known(pair.version) else f"a newer SGLang, or {others}"


# fmt: off
ALGORITHM_CHECKS = (
    Check("eagle3-drafter-under-eagle", "fatal", _eagle3_under_eagle, "models/llama_eagle3.py:238", LAUNCHED,
          advice="--speculative-algorithm EAGLE3"),
    Check("eagle3-name-under-eagle", "warning", _eagle3_by_name, "models/llama_eagle3.py:238", LAUNCHED,
          advice="--speculative-algorithm EAGLE3, unless its config.json says otherwise"),
    Check("eagle-drafter-under-eagle3", "fatal", _eagle_under_eagle3, "eagle_worker_v2.py:366", LAUNCHED,
          advice="--speculative-algorithm EAGLE"),
    Check("mtp-under-eagle3", "fatal", _mtp_under_eagle3, "configs/model_config.py:1032, eagle_worker_v2.py:366", READ,
          advice="--speculative-algorithm EAGLE (NEXTN is the same), or another drafter"),
    Check("head-under-standalone", "fatal", _head_alone,
          "configs/model_config.py:1032, standalone_worker_v2.py:131", LAUNCHED,
          advice=lambda p: f"--speculative-algorithm {'EAGLE3' if p.kind == 'eagle3' else 'EAGLE'}, or a whole small "
                           "model as the drafter"),
    Check("drafter-misdeclared", "fatal", _misdeclared, "models/registry.py:90", LAUNCHED,
          advice="architectures must be LlamaForCausalLMEagle3 (EAGLE-3) or LlamaForCausalLMEagle in its config.json"),
    Check("whole-model-under-eagle", "fatal", _whole_model, "eagle_worker_v2.py:366 (EAGLE3), 378 (EAGLE)", LAUNCHED,
          advice="--speculative-algorithm STANDALONE drives a small model of the same vocabulary"),
    Check("block-drafter", "fatal", _block_drafter, "model_runner_components/spec_aux_hidden_state.py:207", READ,
          advice="DFLASH and DSPARK for block drafters, EAGLE3 or EAGLE for EAGLE heads"),
    Check("drafter-architecture-unknown", "warning", _unknown, "models/registry.py:90", READ,
          advice=lambda p: "unless a plugin brings it, compare with the drafter's description"
                           + ("" if newest_known(p.version) else " or take a newer SGLang")),
    Check("no-mtp-layers", "fatal", _no_mtp_layers, "configs/model_config.py:1032", READ,
          advice="take a checkpoint that keeps the MTP layer, or another drafter"),
    Check(OWN_COPY, "warning", _own_copy, "speculative/standalone_worker_v2.py:131", READ,
          advice="name a smaller model of the same vocabulary, or take NGRAM, which needs no drafter"),
    Check("target-does-not-capture", "fatal", _captures, "model_runner_components/attention_backend_setup.py:57", READ,
          advice=_asking_nothing),
    Check("target-does-not-share", "fatal", _shares, "speculative/pp_draft_embedding.py:95", READ,
          advice=_asking_nothing),
)
# fmt: on
