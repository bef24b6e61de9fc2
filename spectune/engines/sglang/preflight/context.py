"""Whether the drafter reaches as far as the target and the workload do."""

from __future__ import annotations

from spectune.engines.sglang.preflight.check import Check
from spectune.engines.sglang.preflight.pair import Pair
from spectune.engines.sglang.rules.names import CONTEXT
from spectune.engines.sglang.rules.rule import LAUNCHED, READ
from spectune.engines.sglang.variables import LONGER_CONTEXT, longer_context_allowed
from spectune.typed_json import whole_number

TOO_SHORT = "draft-context"


def _served(pair: Pair) -> int | None:
    """Return the context length of the launch, which SGLang hands to the drafter too."""
    given = whole_number(pair.arguments.get(CONTEXT))
    return pair.target.context_length if given is None else given


def _shorter(pair: Pair) -> tuple[int, int] | None:
    served, reach = _served(pair), pair.draft.context_length
    return None if served is None or reach is None or pair.own or served <= reach else (served, reach)


def _refused(pair: Pair) -> str | None:
    found = _shorter(pair)
    if found is None or longer_context_allowed(pair.env):
        return None
    served, reach = found
    return (
        f"{pair.draft.name}: Target model's context_length ({served}) is greater than the derived context_length "
        f"({reach})"
    )


def _stretched(pair: Pair) -> str | None:
    found = _shorter(pair)
    if found is None or not longer_context_allowed(pair.env):
        return None
    served, reach = found
    reached = "" if pair.longest_request is None else f" and {pair.longest_request} asked for"
    return (
        f"{pair.draft.name} was made for {reach} tokens, but {served} are served{reached}: acceptance falls behind it"
    )


def _longest(pair: Pair) -> str | None:
    served = _served(pair)
    if pair.longest_request is None or served is None or pair.longest_request <= served:
        return None
    return f"the workload asks for {pair.longest_request} tokens in a request, but {served} are served"


def _rope(pair: Pair) -> str | None:
    """Say that one of the two stretches its positions and the other does not."""
    if not pair.head:
        return None
    kinds = [_stretch(side.rope_scaling) for side in (pair.target, pair.draft)]
    if kinds[0] == kinds[1]:
        return None
    return f"{pair.target.name} has RoPE scaling {kinds[0]}, {pair.draft.name} {kinds[1]}"


def _stretch(scaling: object) -> str:
    found = dict(scaling) if isinstance(scaling, dict) else {}
    kind = found.get("rope_type") or found.get("type") or "default"
    return "none" if kind == "default" else f"{kind} × {found.get('factor', 1)}"


# fmt: off
CONTEXT_CHECKS = (
    Check(TOO_SHORT, "fatal", _refused, "configs/model_config.py:1291, eagle_worker_v2.py:229", LAUNCHED,
          advice=lambda p: f"--{CONTEXT} {p.draft.context_length}, or {LONGER_CONTEXT}=1 where the drafter bears it "
                           "(older versions: illegal memory access)"),
    Check("draft-context-stretched", "warning", _stretched, "configs/model_config.py:1308", READ,
          advice=f"measure at the length of your requests; a shorter --{CONTEXT} is safer"),
    Check("request-beyond-context", "warning", _longest, "managers/tokenizer_manager.py:1338", READ,
          advice=f"shorter prompts or outputs, or a larger --{CONTEXT}"),
    Check("rope-differs", "info", _rope, "models/llama_eagle3.py:134", READ,
          advice="as it was trained is right; acceptance beyond the unscaled length has to be measured"),
)
# fmt: on
