"""Whether the files are whole, made for this target, and stored in a form that SGLang loads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spectune.counts import count
from spectune.engines.sglang.preflight.check import Check
from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.preflight.pair import Pair
from spectune.engines.sglang.rules.rule import READ

# Where trainers write the model a drafter was made for; `_name_or_path` is as often the drafter's own folder.
BASE_KEYS = ("base_model_name_or_path", "base_model", "target_model_name_or_path", "verifier_name_or_path")
QUANTIZATION, DRAFT_QUANTIZATION = "quantization", "speculative-draft-model-quantization"
PACKED = frozenset({"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "I8", "U8", "I32"})
SHORTEST_NAME = 3  # letters and digits: a shorter folder name begins too many others
NOT_WEIGHTS = frozenset({"d2t", "t2d"})


def _broken(checkpoint: Checkpoint) -> str | None:
    wrong = checkpoint.weights.broken
    more = f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return f"{wrong[0]}{more}" if wrong else None


def _unread(pair: Pair) -> str | None:
    unread = pair.draft.weights.unread
    if not unread or pair.own:
        return None
    return f"{pair.draft.name}: only headers of safetensors are read, so {unread[0]} was not looked into"


def _no_weights(pair: Pair) -> str | None:
    weights = pair.draft.weights
    if not pair.head or pair.own or weights.tensors or weights.broken or weights.unread:
        return None
    return f"{pair.draft.name}: there are no weights here, so its fusion layer and vocabulary maps could not be checked"


def _base(config: Mapping[str, Any]) -> str | None:
    """Return the name of the model a drafter says it was made for."""
    speculators = config.get("speculators_config")
    verifier = speculators.get("verifier") if isinstance(speculators, Mapping) else None
    candidates = [verifier.get("name_or_path")] if isinstance(verifier, Mapping) else []
    candidates += [config.get(key) for key in BASE_KEYS]
    return next((one for one in candidates if isinstance(one, str) and one.strip()), None)


def _other_base(pair: Pair) -> str | None:
    base = None if pair.own else _base(pair.draft.model.config)
    if base is None:
        return None
    targets = [pair.target.name, str(pair.target.model.config.get("_name_or_path") or "")]
    if any(_alike(base, name) for name in targets if name):
        return None
    return f"{pair.draft.name} says it was made for {base}, not for {pair.target.name}"


def _alike(base: str, other: str) -> bool:
    """Whether two names may mean the same model: quantized copies carry a suffix, and a cached one lies deeper."""
    wanted = _letters(re.split("--|/", base.rstrip("/"))[-1])
    parts = [part for part in map(_letters, re.split("--|/", other)) if len(part) >= SHORTEST_NAME]
    return any(part.startswith(wanted) or wanted.startswith(part) for part in parts)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _inherits(pair: Pair) -> str | None:
    method = pair.arguments.get(QUANTIZATION)
    if method in (None, "unquant") or pair.arguments.get(DRAFT_QUANTIZATION) is not None or pair.own:
        return None
    if pair.draft.architecture is None or pair.draft.model.config.get("quantization_config") is not None:
        return None
    return f"{pair.draft.name} is not quantized, but inherits --{QUANTIZATION} {method} from the target"


def _packed(pair: Pair) -> str | None:
    if pair.own or pair.draft.model.config.get("quantization_config") is not None:
        return None
    found = {name: tensor.dtype for name, tensor in pair.draft.weights.tensors.items()
             if tensor.dtype in PACKED and name.rpartition(".")[2] not in NOT_WEIGHTS}  # fmt: skip
    if not found:
        return None
    name, dtype = next(iter(found.items()))
    packed = count(len(found), "packed tensor")
    return f"{pair.draft.name}: {packed} ({name}: {dtype}), but its config has no quantization"


# fmt: off
FILES = (
    Check("target-weights-broken", "fatal", lambda p: _broken(p.target), "model_loader/weight_utils.py:757", READ,
          advice="download the file again"),
    Check("draft-weights-broken", "fatal", lambda p: None if p.own else _broken(p.draft),
          "model_loader/weight_utils.py:757", READ, advice="download the file again"),
    Check("draft-weights-unread", "info", _unread, "unpickling runs code", READ,
          advice="a safetensors copy can be checked"),
    Check("draft-weights-missing", "info", _no_weights, "config.json alone", READ),
)
ORIGIN = (
    Check("other-base-model", "warning", _other_base, "the drafter's config.json", READ,
          advice="a sibling model's drafter runs, but accepts less; the one made for this target is the first choice"),
    Check("quantization-inherited", "warning", _inherits, "arg_groups/serving_hook.py:689", READ,
          advice=f"--{DRAFT_QUANTIZATION} unquant keeps the drafter as it is"),
    Check("draft-quantization-unnamed", "warning", _packed, "configs/model_config.py:2000", READ,
          advice="copy quantization_config from where the weights were made"),
)
# fmt: on
