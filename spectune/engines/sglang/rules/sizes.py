"""Sizes that a model, a machine or a network does not have."""

from __future__ import annotations

from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.rule import RAN, READ, Rule
from spectune.engines.sglang.rules.state import State
from spectune.engines.sglang.variables import LONGER_CONTEXT, longer_context_allowed

GPUS_OF_A_MACHINE = 8
PORTS = ("port", "nccl-port")
GREATEST_PORT = 65535


def _too_long(state: State) -> bool:
    given, own = state.get(n.CONTEXT), state.model.context_length
    return given is not None and own is not None and int(given) > own and not longer_context_allowed(state.env)


def _head_ranks(state: State) -> int:
    """Return how many ranks share the attention heads of a group."""
    return max(1, state.number("tp-size") // state.attention_groups // max(1, state.number("attn-cp-size")))


def undivided(state: State) -> tuple[str, int] | None:
    """Return what of the attention heads cannot be shared out among the ranks, and how many there are."""
    ranks = _head_ranks(state)
    heads, shared = (state.model.integer(f"num_{kind}_heads") for kind in ("attention", "key_value"))
    if ranks == 1 or state.cpu or not heads:  # on CPUs SGLang pads them
        return None
    if heads % ranks != 0:
        return "attention heads", heads
    if state.model.mla or not shared:
        return None
    return None if max(shared, ranks) % min(shared, ranks) == 0 else ("key-value heads", shared)


def _port(state: State) -> str | None:
    given = ((name, state.get(name)) for name in PORTS)
    return next((name for name, port in given if port is not None and not 0 <= int(port) <= GREATEST_PORT), None)


def gpus_each(state: State) -> int:
    """Return the GPUs a launch takes of each of its machines."""
    replicas = 1 if state.attention_dp else state.number("dp-size")
    return state.number("tp-size") * state.number("pp-size") * replicas // max(1, int(state.get("nnodes") or 1))


# fmt: off
MODEL_SIZES = (
    Rule(
        "context-beyond-model", "reject", _too_long,
        lambda s: (f"ValueError: Warning: User-specified context_length ({s.get(n.CONTEXT)}) is greater than the "
                   f"derived context_length ({s.model.context_length})."), "configs/model_config.py:1296", RAN,
        advice=lambda s: (f"{n.CONTEXT} {s.model.context_length} at most, or {LONGER_CONTEXT}=1 where the model "
                          "bears it"),
    ),
)

SIZES = (
    Rule(
        "empty-context", "die", lambda s: s.get(n.CONTEXT) is not None and int(s.get(n.CONTEXT)) < 2,
        lambda s: (f"a {n.CONTEXT} of {s.get(n.CONTEXT)} leaves no room for a token: AssertionError: Memory pool size "
                   "is too small"), "managers/tp_worker.py:425", READ, advice=f"a larger {n.CONTEXT}, or none",
    ),
    Rule(
        "heads-divide", "die", lambda s: undivided(s) is not None,
        lambda s: "{1} {0} cannot be shared out among {ranks} ranks: an AssertionError without a message".format(
            *(undivided(s) or ()), ranks=_head_ranks(s)), "models/llama.py:183 and most other models", READ,
        advice=lambda s: f"a tp-size that divides {(undivided(s) or ('', 0))[1]}",
    ),
    Rule(
        "port-range", "die", lambda s: _port(s) is not None,
        lambda s: f"{_port(s)} {s.get(str(_port(s)))} is no port: it cannot be bound", "sockets of the system", READ,
        advice=f"from 1 to {GREATEST_PORT}",
    ),
    Rule(
        "gpus-of-a-machine", "unwise", lambda s: not s.cpu and gpus_each(s) > GPUS_OF_A_MACHINE,
        lambda s: (f"this takes {gpus_each(s)} GPUs of one machine, and machines with more than {GPUS_OF_A_MACHINE} "
                   "are rare"), "server_args.py:589", READ,
        advice="for several machines, pass nnodes, node-rank and dist-init-addr on each",
    ),
    Rule(
        "no-running-requests", "unwise", lambda s: s.get(n.RUNNING) is not None and int(s.get(n.RUNNING)) < 1,
        lambda s: f"{n.RUNNING} {s.get(n.RUNNING)} is taken for 1: one request runs at a time",
        "mem_cache/kv_cache_configurator.py:3128", READ, advice="from 1 on",
    ),
)
# fmt: on
