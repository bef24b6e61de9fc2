"""Which attention backends a new space compares, with which pages, and which of them draft chains only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spectune.engines.sglang.arguments import CUDA_DEFAULTS
from spectune.engines.sglang.hardware import MACHINES, Machine
from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.resolution import Resolution, resolve
from spectune.engines.sglang.rules import names as n

GENERAL = str(CUDA_DEFAULTS[n.ATTENTION])
ONE_TOKEN = 1
_CHAIN: Mapping[str, Any] = {n.DRAFT_MODEL: "a drafter", n.STEPS: 3, n.TOPK: 1, n.DRAFT_TOKENS: 4}
_TREE: Mapping[str, Any] = {**_CHAIN, n.TOPK: 2, n.DRAFT_TOKENS: 6}


@dataclass(frozen=True)
class Attention:
    """What a new space says of attention.

    Attributes:
        backends: Attention backends worth comparing; at least one.
        page_size: Tokens of a page of the KV cache, for those backends that have no size of their own.
        chains_only: Which of the backends take no branching draft.
        reasons: Why, a sentence each.
    """

    backends: tuple[str, ...]
    page_size: int = ONE_TOKEN
    chains_only: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def trees(self) -> bool:
        """Whether any of the backends takes a branching draft."""
        return set(self.chains_only) < set(self.backends)


@dataclass(frozen=True)
class _Judged:
    """A backend, as the table of rules sees its launches.

    Attributes:
        page_size: That it runs with; None where the launches differ.
        never: Why no launch with it lives; empty where one does.
        no_tree: Why no branching draft lives with it.
    """

    name: str
    page_size: int | None
    never: str
    no_tree: str


def attention_of(model: Model, algorithms: Sequence[str], machine: Machine | None, version: str) -> Attention | None:
    """Ask the table of rules for the backends SGLang takes itself, and for what each of them bears.

    Args:
        model: The target.
        algorithms: That are searched.
        machine: Where it runs; None where nothing is known of it.
        version: SGLang's version.

    Returns:
        The choice; None on a CPU, where there is none.
    """
    if machine is None:
        known = ", ".join(name for name, one in MACHINES.items() if one.device == "cuda")
        why = (
            f"{GENERAL} serves every model, chains and trees, on every CUDA GPU; `spectune init --gpu` ({known}) adds "
            "what SGLang itself would take there"
        )
        return Attention((GENERAL,), reasons=(why,))
    if machine.device != "cuda":
        return None
    kinds = _kinds(model)
    drafting = [{"NEXTN": "EAGLE"}.get(one, one) for one in algorithms]
    drafting = [one for one in drafting if one in n.EAGLE_FAMILY]
    judged = [_judged(name, kinds, drafting, machine, version) for name in _taken(kinds, drafting, machine, version)]
    alive = [one for one in judged if not one.never] or judged  # what ends every launch is no choice of a backend
    pages = {one.page_size for one in alive}
    return Attention(
        backends=tuple(one.name for one in alive),
        page_size=(pages.pop() or ONE_TOKEN) if len(pages) == 1 else ONE_TOKEN,
        chains_only=tuple(one.name for one in alive if one.no_tree) if drafting else (),
        reasons=tuple(_reasons(kinds, judged, alive, machine)),
    )


def _kinds(model: Model) -> tuple[Model, ...]:
    """Return the model as it may be: with or without MLA, where it was not seen or its config speaks for both."""
    if model.architecture is None:
        return Model("a model with MLA", mla=True), Model("a model without MLA", mla=False)
    doubtful = not model.mla and model.text("kv_lora_rank") is not None
    return (model, replace(model, mla=True)) if doubtful else (model,)


def _taken(kinds: Sequence[Model], drafting: Sequence[str], machine: Machine, version: str) -> list[str]:
    """Return the backends SGLang itself takes, without speculation and with a chain, and the one that serves all."""
    launches: list[Mapping[str, Any]] = [{}, *({**_CHAIN, n.ALGORITHM: one} for one in drafting)]
    found = [_resolve(launch, kind, machine, version).resolved.get("attention_backend")
             for kind in kinds for launch in launches]  # fmt: skip
    return list(dict.fromkeys([*(str(one) for one in found if one is not None), GENERAL]))


def _judged(name: str, kinds: Sequence[Model], drafting: Sequence[str], machine: Machine, version: str) -> _Judged:
    asked = {n.ATTENTION: name, n.PAGE: ONE_TOKEN}
    chains: list[Mapping[str, Any]] = [asked, *({**asked, **_CHAIN, n.ALGORITHM: one} for one in drafting)]
    trees: list[Mapping[str, Any]] = [{**asked, **_TREE, n.ALGORITHM: one} for one in drafting]
    plain = [_resolve(launch, kind, machine, version) for kind in kinds for launch in chains]
    branching = [_resolve(launch, kind, machine, version) for kind in kinds for launch in trees]
    pages = {one.resolved.get("page_size") for one in plain}
    return _Judged(name, pages.pop() if len(pages) == 1 else None, _death(plain), _death(branching))


def _resolve(launch: Mapping[str, Any], model: Model, machine: Machine, version: str) -> Resolution:
    return resolve(launch, model=model, draft=None, machine=machine, version=version)


def _death(resolutions: Sequence[Resolution]) -> str:
    fatal = (one for resolution in resolutions for one in resolution.findings if one.severity == "fatal")
    return next((" ".join(one.message.split()) for one in fatal), "")


def _reasons(
    kinds: Sequence[Model], judged: Sequence[_Judged], alive: Sequence[_Judged], machine: Machine
) -> Iterator[str]:
    if len(kinds) > 1:
        yield (
            "whether the model has MLA (multi-head latent attention) could not be told, so only what runs either way "
            "is searched; a folder with its config.json tells"
        )
    elif kinds[0].mla:
        yield f"{kinds[0].architecture} has MLA (multi-head latent attention), with which flashinfer takes chains only"
    for one in judged:
        if one not in alive:
            yield f"{one.name} is left out: {one.never}"
            continue
        own = f"is SGLang's own choice on {machine.name}"
        chosen = "serves every model, chains and trees" if one.name == GENERAL else own
        pages = f", with pages of {one.page_size} tokens" if one.page_size not in (None, ONE_TOKEN) else ""
        trees = f"; chains only: {one.no_tree}" if one.no_tree else ""
        yield f"{one.name} {chosen}{pages}{trees}"
