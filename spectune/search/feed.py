"""Prompts on their way to the engine: dealt out once each, rendered by the engine's own tokenizer."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any

from spectune.bench.prompt_stream import PromptStream
from spectune.bench.prompts import Prompt, TokenizedPrompt
from spectune.engines.protocol import Renderer

BATCH = 64


class PromptFeed:
    """Endless tokenised prompts; an iterator.

    Rendering takes CPU from the engine, so a level's prompts are rendered before it begins; should they run out, a
    batch is rendered on the way.
    """

    def __init__(self, stream: PromptStream, renderer: Renderer, *, chat_template: bool) -> None:
        self._stream, self._renderer, self._chat_template = stream, renderer, chat_template
        self._ready: deque[TokenizedPrompt] = deque()
        self._dealt = stream.position

    @property
    def position(self) -> int:
        """How many prompts of the study have been handed out."""
        return self._dealt

    @property
    def reused(self) -> int:
        """How many prompts had to be dealt a second time because there were no others."""
        return self._stream.reused

    def prepare(self, count: int) -> None:
        """Have at least `count` prompts ready."""
        missing = count - len(self._ready)
        if missing <= 0:
            return
        prompts = self._stream.take(missing)
        self._ready.extend(render(self._renderer, prompts, chat_template=self._chat_template))

    def ahead(self, count: int) -> list[TokenizedPrompt]:
        """Return the next prompts without handing them out."""
        self.prepare(count)
        return list(itertools.islice(self._ready, count))

    def __iter__(self) -> PromptFeed:
        return self

    def __next__(self) -> TokenizedPrompt:
        if not self._ready:
            self.prepare(BATCH)
        self._dealt += 1
        return self._ready.popleft()


def render(renderer: Renderer, prompts: Sequence[Prompt], *, chat_template: bool) -> list[TokenizedPrompt]:
    """Return prompts with their token ids."""
    plain, classes = [_plain(prompt) for prompt in prompts], [prompt.prompt_class for prompt in prompts]
    ids = renderer.render(plain, classes=classes, chat_template=chat_template)
    return [TokenizedPrompt(prompt, tokens) for prompt, tokens in zip(prompts, ids, strict=True)]


def _plain(prompt: Prompt) -> Any:
    if prompt.text is not None:
        return prompt.text
    return [{"role": message.role, "content": message.content} for message in prompt.messages]
