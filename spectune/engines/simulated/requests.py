"""What clients ask of `/generate`, and what SGLang says when it cannot be served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from spectune.engines.simulated import sampling, tokens
from spectune.engines.simulated.setup import Setup

DEFAULT_NEW_TOKENS = 128
MOST_ANSWERS = 4096  # of one request; SGLang has no such limit, but this process answers for a whole machine
_RESERVED = 6  # tokens of the KV cache that no prompt gets


class BadBody(ValueError):
    """The body is not a request at all; HTTP 400 whatever the client wanted."""

    @property
    def content(self) -> dict[str, Any]:
        """What is answered."""
        return {"object": "error", "message": str(self), "type": "Bad Request", "param": None, "code": 400}


class BadSampling(BadBody):
    """A sampling parameter has a wrong name or type, which SGLang says in a form of its own."""

    @property
    def content(self) -> dict[str, Any]:
        """What is answered."""
        return {"error": str(self)}


class BadRequest(ValueError):
    """A request the engine refuses; in a stream it says so inside."""


@dataclass(frozen=True)
class Limits:
    """How long requests may be, in tokens.

    Attributes:
        context: Prompt and answer together.
        kv: Capacity of the KV cache.
        drafts: Kept free of the context for a request's drafts, which take the slots of its next tokens.
    """

    context: int
    kv: int
    drafts: int = 0

    @classmethod
    def of(cls, setup: Setup, context: int, kv: int) -> Limits:
        """Return the limits of a launch; only the EAGLE family keeps slots for drafts (0.5.23, managers/utils.py)."""
        eagle = setup.algorithm in {"EAGLE", "EAGLE3", "FROZEN_KV_MTP"}
        drafts = max(setup.eagle_topk * setup.num_steps, setup.num_draft_tokens)
        return cls(context, kv, drafts if eagle else 0)

    @property
    def prompt(self) -> int:
        """The longest prompt."""
        return min(self.context, self.kv) - _RESERVED

    def check(self, prompt: int) -> None:
        """Refuse a prompt of so many tokens if it fills the context.

        Raises:
            BadRequest: It does.
        """
        taken = prompt + self.drafts
        if taken >= self.context:
            raise BadRequest(
                f"The input ({taken} tokens) is longer than the model's context length ({self.context} tokens)."
            )


@dataclass(frozen=True)
class Ask:
    """One prompt and how to answer it."""

    input_ids: list[int]
    max_new_tokens: int
    request_id: str | None
    prompt_class: str | None
    temperature: float = 0.0


@dataclass(frozen=True)
class Body:
    """One HTTP request: its prompts, and the form of the answer."""

    asks: tuple[Ask, ...]
    stream: bool
    listed: bool


def parse(data: bytes) -> dict[str, Any]:
    """Read a JSON object with fields of the right types.

    Raises:
        BadBody: It is none.
        BadSampling: Its sampling parameters are none.
    """
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadBody(f"[{{'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error: {error}'}}]") from None
    if not isinstance(body, dict):
        raise BadBody(f"the body must be a JSON object, but got a {type(body).__name__}")
    if not isinstance(body.get("stream", False), bool):
        raise BadBody(f"stream has the wrong type: {type(body['stream']).__name__}")
    for name, kinds, of in (
        ("sampling_params", (dict, list), dict),
        ("rid", (str, list), str),
        ("text", (str, list), str),
        ("input_ids", (list,), (int, list)),
    ):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, kinds):
            raise BadBody(f"{name} has the wrong type: {type(value).__name__}")
        wrong = [one for one in value if not isinstance(one, of)] if isinstance(value, list) else []
        if wrong:
            raise BadBody(f"{name} has an element of the wrong type: {type(wrong[0]).__name__}")
    parameters = body.get("sampling_params") or {}
    for each in parameters if isinstance(parameters, list) else [parameters]:
        if complaint := sampling.wrong_type(each):
            raise BadSampling(complaint)
    return body


def read(body: dict[str, Any], limits: Limits, classes: tuple[str, ...]) -> Body:
    """Check a request and take it apart.

    Args:
        body: What `parse` returned.
        limits: Of the engine.
        classes: Prompt classes a prompt may carry.

    Raises:
        BadRequest: In SGLang's words.
    """
    prompts, listed = _prompts(body, limits)
    params = body.get("sampling_params") or {}
    each = params if isinstance(params, list) else [params] * len(prompts)
    if len(each) != len(prompts):
        raise BadRequest(f"there must be as many sampling_params as prompts, {len(prompts)}, but got {len(each)}")
    samples = max(1, each[0].get("n") or 1) if each else 1
    _few(len(prompts) * samples)
    names = _names(body.get("rid"), len(prompts), listed=listed)
    asks = []
    for ids, parameters, name in zip(prompts, each, names, strict=True):
        label = tokens.class_of(ids, classes) or _label(body)
        length = _length(ids, parameters, limits)
        for sample in range(samples):
            own = f"{name}_{sample}" if name is not None and samples > 1 else name
            asks.append(Ask(ids, length, own, label, parameters.get("temperature") or 0.0))
    return Body(tuple(asks), body.get("stream", False), listed or samples > 1)


def _prompts(body: dict[str, Any], limits: Limits) -> tuple[list[list[int]], bool]:
    """Return the prompts as ids, and whether they came as a list; where both are given, the ids count."""
    text, ids = body.get("text"), body.get("input_ids")
    if ids is None:
        if text is None:
            raise BadRequest("Either text, input_ids or input_embeds should be provided.")
        texts = text if isinstance(text, list) else [text]
        _few(len(texts))
        if "" in texts:
            raise BadRequest("texts cannot be empty and tokenizer must be initialized")
        for one in texts:
            limits.check(tokens.count(one))  # first: encoding a text of many megabytes would hold up everybody
        return [tokens.encode(one) for one in texts], isinstance(text, list)
    if not ids:
        raise BadRequest("input_ids cannot be empty.")
    listed = isinstance(ids[0], list)
    prompts = ids if listed else [ids]
    _few(len(prompts))
    for prompt in prompts:
        limits.check(len(prompt) if isinstance(prompt, list) else 1)
        if not isinstance(prompt, list) or not prompt or not all(type(one) is int and one >= 0 for one in prompt):
            raise BadRequest("input_ids must be a non-empty list of token ids, or a list of such lists")
    return prompts, listed


def _few(answers: int) -> None:
    if answers > MOST_ANSWERS:
        raise BadRequest(f"the simulated engine answers at most {MOST_ANSWERS} prompts at once, but got {answers}")


def _names(rid: str | list[str] | None, prompts: int, *, listed: bool) -> list[str | None]:
    """Return the name of each prompt's request as the client gives it."""
    if isinstance(rid, list):
        if len(rid) != prompts:
            raise BadRequest("The specified rids length mismatch with the batch_size for batch processing.")
        return list(rid)
    if rid is None or not listed:
        return [rid] * prompts
    return [f"{rid}_{index}" for index in range(prompts)]


def _length(ids: list[int], parameters: dict[str, Any], limits: Limits) -> int:
    """Check one prompt against the limits; returns how many tokens it gets."""
    if complaint := sampling.out_of_range(parameters):
        raise BadRequest(complaint)
    limits.check(len(ids))
    asked, taken = parameters.get("max_new_tokens"), len(ids) + limits.drafts
    if asked is not None and taken + asked > limits.context:
        raise BadRequest(
            f"Requested token count exceeds the model's maximum context length of {limits.context} tokens. You "
            f"requested a total of {taken + asked} tokens: {taken} tokens from the input messages and {asked} "
            "tokens for the completion. Please reduce the number of tokens in the input messages or the completion to "
            "fit within the limit."
        )
    if len(ids) > limits.prompt:
        raise BadRequest(
            f"Input length ({len(ids)} tokens) exceeds the maximum allowed length ({limits.prompt} tokens). Use a "
            "shorter input or enable --allow-auto-truncate."
        )
    return min(DEFAULT_NEW_TOKENS if asked is None else asked, limits.prompt + _RESERVED - len(ids) - 1)


def _label(body: dict[str, Any]) -> str | None:
    """Return the class named in SGLang's own field for labels."""
    labels = body.get("custom_labels")
    named = labels.get("prompt_class") if isinstance(labels, dict) else None
    return named if isinstance(named, str) else None
