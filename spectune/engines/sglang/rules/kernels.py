"""On which GPU, for which kind of attention, each attention backend runs at all; SGLang's resolver looks at neither.

Read in SGLang 0.5.23: the factories of `layers/attention/attention_registry.py` and the backends they make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spectune.engines.sglang.rules import backends
from spectune.engines.sglang.rules import names as n
from spectune.engines.sglang.rules.backends import BLACKWELL, BLACKWELL_PRO, HOPPER
from spectune.engines.sglang.rules.rule import READ, Rule
from spectune.engines.sglang.rules.state import State

CPU = 0
_GPUS = (HOPPER, BLACKWELL, BLACKWELL_PRO)
_ALL = (CPU, *_GPUS)
# Backend → compute capabilities it runs on, without MLA and with MLA; what is not here is not judged.
KERNELS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "flashinfer": (_GPUS, _GPUS),
    "fa3": ((HOPPER,), (HOPPER,)),  # attention_registry.py:241, an assertion
    "fa4": (_GPUS, (BLACKWELL, BLACKWELL_PRO)),  # flash_attn/cute/interface.py:1016, absorbed MLA
    "triton": (_ALL, _ALL),
    "trtllm_mha": (_GPUS, ()),  # attention_registry.py:268; the GPUs are the resolver's check
    "trtllm_mla": ((), (BLACKWELL, BLACKWELL_PRO)),  # attention_registry.py:84
    "cutedsl_mla": ((), (BLACKWELL,)),  # attention_registry.py:107
    "flashmla": ((), (HOPPER,)),  # flashmla_backend.py:66 reads MLA's ranks; flash_mla_interface.py: dense decode SM90
    "hpc_ops": ((HOPPER,), ()),  # attention_registry.py:279, hpc_ops_backend.py:142
    "torch_native": (_ALL, _ALL),
    "intel_amx": ((CPU,), (CPU,)),
    "intel_xpu": ((), ()),
    "aiter": ((), ()),
    "wave": ((), ()),
    "ascend": ((), ()),
}
OFFERED = ("flashinfer", "fa3", "fa4", "triton", "trtllm_mha", "trtllm_mla", "flashmla", "intel_amx")
"""What is recommended, the most general first."""

_BY_ARCHITECTURE: Mapping[str, tuple[str, ...]] = {
    "GptOssForCausalLM": backends.GPT_OSS,
    **dict.fromkeys(backends.LLAMA4_ARCHITECTURES, backends.LLAMA4),
    **dict.fromkeys(backends.GEMMA4_ARCHITECTURES, backends.GEMMA4),
    **dict.fromkeys(backends.AMPERE_ON, backends.EXAONE),
    backends.IQUEST: ("fa3",),
}


def _runs_on(backend: str, *, mla: bool | None) -> tuple[int, ...] | None:
    """Return the capabilities a backend runs on; `mla` None where the kind of attention is not known."""
    if backend not in KERNELS:
        return None
    plain, latent = KERNELS[backend]
    return plain if mla is False else latent if mla else (*plain, *latent)


def _latent(state: State) -> bool | None:
    """Whether the target has MLA, None where nothing is known of it."""
    return None if state.model.architecture is None else state.model.mla


def _runs(state: State, backend: str, *, mla: bool | None) -> bool:
    where = _runs_on(backend, mla=mla)
    return where is None or (state.capability in where if state.capability is not None else bool(where))


def _roles(state: State) -> tuple[tuple[str, str, bool | None], ...]:
    """Return role, backend and kind of attention of everything that is built.

    fa4 is left alone as the prefill backend of an MLA model, which may prefill without absorbing.
    """
    prefill, decode = state.backends
    latent = _latent(state)
    drafter = state.draft.mla if state.draft is not None and state.draft.architecture is not None else None
    roles = (
        ("prefill", prefill if prefill != decode else None, None if prefill == "fa4" else latent),
        ("both" if prefill == decode else "decode", decode, latent),
        ("draft", state.get(n.DRAFT_ATTENTION) if state.algorithm is not None else None, drafter),
    )
    return tuple((role, str(backend), mla) for role, backend, mla in roles if backend is not None)


def without_kernels(state: State) -> tuple[str, str, bool | None] | None:
    """Return the first role whose backend cannot run on this GPU or with this model."""
    return next((found for found in _roles(state) if not _runs(state, found[1], mla=found[2])), None)


def _why(state: State) -> str:
    role, backend, mla = without_kernels(state) or ("", "", None)
    plain, latent = KERNELS[backend]
    own = f"the attention backend {backend}" if role == "both" else f"the {role} attention backend {backend}"
    if not (plain or latent):
        return f"{own} is for other makers' processors"
    if mla is not None and not (latent if mla else plain):
        return f"{own} serves models {'without' if mla else 'with'} MLA (multi-head latent attention) only"
    does = "serves models with MLA" if mla and plain != latent else "runs"
    where = " and ".join(_named(one) for one in sorted({*(_runs_on(backend, mla=mla) or ())}))
    return f"{own} {does} on {where} only, not on {_named(state.capability or CPU)}"


def _named(capability: int) -> str:
    return {CPU: "CPUs", HOPPER: "Hopper (SM90)", BLACKWELL: "Blackwell (SM100)", BLACKWELL_PRO: "SM120"}[capability]


def alternatives(state: State) -> tuple[str, ...]:
    """Return the attention backends that would run here in every role, the most general first.

    They take a branching draft where there is one, with the page size that was given.
    """
    known = _BY_ARCHITECTURE.get(state.model.architecture or "", OFFERED)
    kinds = (True, False) if _latent(state) is None else (state.model.mla,)  # of an unknown model it may be either
    found = [name for name in OFFERED if name in known and all(_runs(state, name, mla=kind) for kind in kinds)]
    refused: set[str] = set()
    if state.model.sinks or state.model.architecture == "Olmo2ForCausalLM":
        refused.add("flashinfer")
    if state.on("enable-deterministic-inference"):
        refused |= set(found) - set(backends.DETERMINISTIC_MLA if state.model.mla else backends.DETERMINISTIC)
    if state.algorithm is not None and state.tree:
        refused |= n.CHAIN_ONLY
        if state.model.mla and (state.get(n.STEPS) or 0) > 1:
            refused.add("flashinfer")
        if int(state.given.get(n.PAGE) or 1) > 1:
            refused |= set(found) - set(n.PAGED_TREE)
    return tuple(name for name in found if name not in refused)


def take(state: State) -> str:
    """Return the backends that would run, as advice."""
    found = alternatives(state)
    return f"attention-backend {_either(found)}" if found else "attention-backend left to SGLang"


def or_take(instead: str, state: State) -> str:
    """Return a way out, unless this backend cannot run at all, and the backends that would do as well."""
    if without_kernels(state) is not None:
        return take(state)
    found = alternatives(state)
    return f"{instead}, or {_either(found)} as attention backend in every role" if found else instead


def single_page(state: State) -> str:
    """Return how to have a branching draft without larger pages; some backends run with nothing else."""
    return "top-k 1" if {*state.backends, state.get(n.DRAFT_ATTENTION)} & set(backends.PAGES) else "page-size 1"


def _either(names: Sequence[str]) -> str:
    return " or ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


# fmt: off
KERNEL_RULES = (
    Rule(
        "attention-kernels", "die", lambda s: without_kernels(s) is not None, _why,
        "layers/attention/attention_registry.py:70-290", READ, advice=take,
    ),
)
# fmt: on
