"""What clients ask of `/generate`, and what SGLang says when it cannot be served."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import orjson

from spectune.engines.simulated import tokens

DEFAULT_NEW_TOKENS = 128
_RESERVED = 6  # tokens of the KV cache that no prompt gets


class BadBody(ValueError):
    """The body is not a request at all; HTTP 400 whatever the client wanted."""


class BadRequest(ValueError):
    """A request the engine refuses; in a stream it says so inside."""


@dataclass(frozen=True)
class Limits:
    """How long requests may be, in tokens.

    Attributes:
        context: Prompt and answer together.
        kv: Capacity of the KV cache.
    """

    context: int
    kv: int

    @property
    def prompt(self) -> int:
        """The longest prompt."""
        return min(self.context, self.kv) - _RESERVED


@dataclass(frozen=True)
class Ask:
    """One prompt and how to answer it."""

    input_ids: list[int]
    max_new_tokens: int
    request_id: str | None
    prompt_class: str | None


@dataclass(frozen=True)
class Body:
    """One HTTP request: its prompts, and the form of the answer."""

    asks: tuple[Ask, ...]
    stream: bool
    listed: bool


def parse(data: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        BadBody: It is none.
    """
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadBody(f"[{{'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error: {error}'}}]") from None
    if not isinstance(body, dict):
        raise BadBody(f"the body must be a JSON object, but got a {type(body).__name__}")
    for name, kind in (("stream", bool), ("sampling_params", (dict, list)), ("rid", (str, list))):
        if body.get(name) is not None and not isinstance(body[name], kind):
            raise BadBody(f"{name} has the wrong type: {type(body[name]).__name__}")
    return body


def read(body: dict[str, Any], limits: Limits, classes: tuple[str, ...]) -> Body:
    """Check a request and take it apart.

    Args:
        body: The JSON object.
        limits: Of the engine.
        classes: Prompt classes a prompt may carry.

    Raises:
        BadRequest: In SGLang's words.
    """
    prompts, listed = _prompts(body)
    params = body.get("sampling_params") or {}
    each = params if isinstance(params, list) else [params] * len(prompts)
    if len(each) != len(prompts):
        raise BadRequest(f"there are {len(prompts)} prompts but {len(each)} sampling_params")
    samples = int(_number(each[0], "n", 1)) if each else 1
    if samples < 1:
        raise BadRequest(f"n must be at least 1, got {samples}.")
    rids = body.get("rid")
    asks = []
    for index, (ids, sampling) in enumerate(zip(prompts, each, strict=True)):
        rid = rids[index] if isinstance(rids, list) and index < len(rids) else rids if not listed else None
        label = tokens.class_of(ids, classes) or _label(body)
        for sample in range(samples):
            name = f"{rid}_{sample}" if isinstance(rid, str) and samples > 1 else rid
            asks.append(Ask(ids, _length(ids, sampling, limits), name if isinstance(name, str) else None, label))
    return Body(tuple(asks), bool(body.get("stream")), listed or samples > 1)


def _prompts(body: dict[str, Any]) -> tuple[list[list[int]], bool]:
    """Return the prompts as ids, and whether they came as a list."""
    text, ids = body.get("text"), body.get("input_ids")
    if (text is None) == (ids is None):
        raise BadRequest("Either text, input_ids or input_embeds should be provided.")
    if text is not None:
        texts = text if isinstance(text, list) else [text]
        if not texts or not all(isinstance(one, str) for one in texts):
            raise BadRequest("text must be a string or a non-empty list of strings")
        if "" in texts:
            raise BadRequest("texts cannot be empty and tokenizer must be initialized")
        return [tokens.encode(one) for one in texts], isinstance(text, list)
    if not isinstance(ids, list) or not ids:
        raise BadRequest("input_ids cannot be empty.")
    listed = isinstance(ids[0], list)
    prompts = ids if listed else [ids]
    for prompt in prompts:
        if not isinstance(prompt, list) or not prompt or not all(type(one) is int and one >= 0 for one in prompt):
            raise BadRequest("input_ids must be a non-empty list of token ids, or a list of such lists")
    return prompts, listed


def _length(ids: list[int], sampling: Any, limits: Limits) -> int:
    """Check one prompt against the limits; returns how many tokens it gets."""
    if not isinstance(sampling, dict):
        raise BadRequest("sampling_params must be an object")
    temperature = _number(sampling, "temperature", 1.0)
    if temperature < 0:
        raise BadRequest(f"temperature must be a non-negative finite number, got {temperature}.")
    asked = int(_number(sampling, "max_new_tokens", DEFAULT_NEW_TOKENS))
    if asked < 0:
        raise BadRequest(f"max_new_tokens must be at least 0, got {asked}.")
    if len(ids) >= limits.context:
        raise BadRequest(
            f"The input ({len(ids)} tokens) is longer than the model's context length ({limits.context} tokens)."
        )
    if sampling.get("max_new_tokens") is not None and len(ids) + asked > limits.context:
        raise BadRequest(
            f"Requested token count exceeds the model's maximum context length of {limits.context} tokens. You "
            f"requested a total of {len(ids) + asked} tokens: {len(ids)} tokens from the input messages and {asked} "
            "tokens for the completion. Please reduce the number of tokens in the input messages or the completion to "
            "fit within the limit."
        )
    if len(ids) > limits.prompt:
        raise BadRequest(
            f"Input length ({len(ids)} tokens) exceeds the maximum allowed length ({limits.prompt} tokens). Use a "
            "shorter input or enable --allow-auto-truncate."
        )
    return max(1, min(asked, limits.prompt + _RESERVED - len(ids) - 1))


def _number(sampling: Any, name: str, default: float) -> float:
    value = sampling.get(name) if isinstance(sampling, dict) else None
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadRequest(f"{name} must be a finite number, got {value!r}.")
    return value


def _label(body: dict[str, Any]) -> str | None:
    """Return the class named in SGLang's own field for labels."""
    labels = body.get("custom_labels")
    named = labels.get("prompt_class") if isinstance(labels, dict) else None
    return named if isinstance(named, str) else None
