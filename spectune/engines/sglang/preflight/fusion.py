"""Whether the drafter's fusion layer takes what the target hands over, and whether it holds anything."""

from __future__ import annotations

import math

from spectune.engines.sglang.preflight.check import Check
from spectune.engines.sglang.preflight.pair import ANY_FUSION, FUSION, Pair
from spectune.engines.sglang.preflight.values import FLOATS
from spectune.engines.sglang.rules.rule import LAUNCHED, READ


def _width(pair: Pair) -> str | None:
    if not pair.head or pair.input_width is None or pair.target.hidden_size in (None, pair.input_width):
        return None
    return (
        f"{pair.draft.name} reads hidden states of width {pair.input_width}, but {pair.target.name} has "
        f"{pair.target.hidden_size}"
    )


def _shape(pair: Pair) -> str | None:
    """Compare the weight with the layer SGLang builds from the config."""
    if not pair.head or pair.fusion is None or pair.fusion.dtype not in FLOATS or pair.input_width is None:
        return None
    parts = pair.auxiliary if pair.eagle3 else 2
    wanted = (pair.draft.hidden_size, parts * pair.input_width)
    if pair.fusion.shape == wanted:
        return None
    of = f"{parts} layers × {pair.input_width}" if pair.eagle3 else f"2 × {pair.input_width} (embedding, hidden state)"
    return (
        f"{pair.draft.name}: the fusion weight has {list(pair.fusion.shape)} (outputs, inputs), but its config asks "
        f"for {list(wanted)}, the inputs being {of}"
    )


def _count(pair: Pair) -> str | None:
    """Compare what the target captures with what the drafter was built for."""
    if not (pair.eagle3 and pair.fuses) or _ids(pair) is not None:
        return None
    captured = len(set(pair.layer_ids)) if pair.layer_ids else 3
    if captured == pair.auxiliary:
        return None
    return f"{pair.draft.name}: its fusion layer takes {pair.auxiliary} hidden states, but {captured} are captured"


def _ids(pair: Pair) -> str | None:
    ids = pair.layer_ids
    if not (pair.eagle3 and pair.fuses) or ids is None:
        return None
    if not (isinstance(ids, list) and ids and all(type(one) is int for one in ids)):
        return f"{pair.draft.name}: eagle_aux_hidden_state_layer_ids must be a list of layers, but got {ids!r}"
    if len(set(ids)) < len(ids):
        return f"{pair.draft.name}: eagle_aux_hidden_state_layer_ids {ids} names a layer twice; it is captured once"
    layers = pair.target.layers
    outside = [one for one in ids if one < -1 or (layers is not None and one >= layers)]
    if not outside:
        return None
    return f"{pair.draft.name}: it reads layers {outside}, but {pair.target.name} has layers 0 to {(layers or 1) - 1}"


def _last(pair: Pair) -> str | None:
    ids, layers = pair.layer_ids, pair.target.layers
    if not (pair.eagle3 and pair.fuses) or _ids(pair) is not None or ids is None or layers is None:
        return None
    if layers - 1 not in ids:
        return None
    return (
        f"{pair.draft.name}: it reads layer {layers - 1}, the target's last; most models of SGLang capture a layer's "
        "output on entering the next one, so this one is never captured"
    )


def _missing(pair: Pair) -> str | None:
    if not pair.fuses or not pair.has_weights or pair.fusion is not None:
        return None
    if any(part in name for name in pair.draft.weights.tensors for part in ANY_FUSION):  # packed by a quantization
        return None
    count = len(pair.draft.weights.tensors)
    return f"{pair.draft.name}: none of its {count} tensors is the fusion weight ({FUSION[0]})"


def _zero(pair: Pair) -> str | None:
    if not pair.fuses or pair.fusion_magnitude is None or not pair.fusion_magnitude.zero:
        return None
    return f"{pair.draft.name}: the fusion weight is all zeros, so the drafter is blind to the target"


def _not_finite(pair: Pair) -> str | None:
    if not pair.fuses or pair.fusion_magnitude is None or all(map(math.isfinite, pair.fusion_magnitude.blocks)):
        return None
    return f"{pair.draft.name}: the fusion weight holds values that are not finite (NaN or infinite)"


def _blind(pair: Pair) -> str | None:
    if not pair.fuses or pair.fusion_magnitude is None or pair.fusion_magnitude.zero:
        return None
    blocks = pair.fusion_magnitude.blocks
    empty = [str(index + 1) for index, block in enumerate(blocks) if block == 0]
    if not empty:
        return None
    shown = ", ".join(f"{block:.3g}" for block in blocks)
    return (
        f"{pair.draft.name}: part {', '.join(empty)} of {len(blocks)} of the fusion weight's inputs is zero in every "
        f"sampled row (root mean squares: {shown})"
    )


# fmt: off
FUSION_CHECKS = (
    Check("fusion-width", "fatal", _width, "models/llama_eagle3.py:152, models/llama_eagle.py:91", LAUNCHED,
          advice="take the drafter that was made for this target"),
    Check("fusion-shape", "fatal", _shape, "models/llama_eagle3.py:163, models/llama_eagle.py:91", LAUNCHED,
          advice="hidden_size, target_hidden_size, num_aux_hidden_states and the layer ids must be those it was "
                 "trained with"),
    Check("fusion-count", "fatal", _count, "models/llama_eagle3.py:157, models/llama.py:929", READ,
          advice="make num_aux_hidden_states the number of eagle_aux_hidden_state_layer_ids"),
    Check("fusion-layers", "fatal", _ids, "models/llama.py:929", LAUNCHED,
          advice="eagle_aux_hidden_state_layer_ids must be those it was trained with, on this target"),
    Check("fusion-last-layer", "warning", _last, "models/llama.py:939, models/gpt_oss.py:732", LAUNCHED,
          advice="watch for a shape error at the first request, and for the accept length"),
    Check("fusion-missing", "fatal", _missing, "models/llama_eagle3.py:371", LAUNCHED,
          advice="SGLang starts all the same, with whatever is in memory; take a complete checkpoint"),
    Check("fusion-zero", "fatal", _zero, "field case 1", LAUNCHED, advice="take a trained checkpoint"),
    Check("fusion-not-finite", "fatal", _not_finite, "field case 1", READ,
          advice="take an earlier checkpoint of the training"),
    Check("fusion-part-zero", "warning", _blind, "field case 1", LAUNCHED,
          advice="compare the layers it was trained on with eagle_aux_hidden_state_layer_ids"),
)
# fmt: on
