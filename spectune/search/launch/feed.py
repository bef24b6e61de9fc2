"""Prompts on their way to the engine: dealt out once each, rendered by the engine's own tokenizer."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any

from spectune.bench.prompt_sources import Workload
from spectune.bench.prompt_stream import PromptStream
from spectune.bench.prompts import Prompt, TokenizedPrompt
from spectune.engines.protocol import Renderer
from spectune.errors import SpectuneError

BATCH = 64
SEED = 0  # of the prompts: every study of a space asks the same questions
HOPELESS = 256  # prompts in a row that do not fit


class PromptFeed:
    """Endless tokenised prompts; an iterator.

    Rendering takes CPU from the engine, so a level's prompts are rendered before it begins; should they run out, a
    batch is rendered on the way.
    """

    def __init__(
        self, workload: Workload, renderer: Renderer, *, chat_template: bool, output_tokens: int, start: int = 0
    ) -> None:
        """Begin to deal.

        Args:
            workload: What there is to ask.
            renderer: Of the engine.
            chat_template: Whether prompts go through it.
            output_tokens: Most tokens of an answer, where a prompt has no limit of its own.
            start: How many prompts the study has used already.
        """
        self.workload = workload
        self._stream = stream = PromptStream(workload, seed=SEED, start=start)
        self._renderer, self._chat_template, self._output_tokens = renderer, chat_template, output_tokens
        self._context: int | None = None
        self._ready: deque[tuple[int, TokenizedPrompt]] = deque()
        self._dealt = stream.position
        self._too_long: set[str] = set()
        self._too_long_in_a_row = 0

    @property
    def position(self) -> int:
        """How many prompts of the study have been handed out or passed over."""
        return self._dealt

    @property
    def reused(self) -> int:
        """How many prompts had to be dealt a second time because there were no others."""
        return self._stream.reused

    @property
    def too_long(self) -> int:
        """How many different prompts were passed over, because with their answers they exceed the context."""
        return len(self._too_long)

    def fit(self, context: int | None) -> None:
        """From now on pass over what exceeds the engine's context, in tokens of prompt and answer; None: unknown."""
        if context != self._context:
            self._context = context
            self._ready = deque(entry for entry in self._ready if self._fits(entry[1]))

    def prepare(self, count: int) -> None:
        """Have at least `count` prompts ready.

        Raises:
            SpectuneError: If no prompt fits the engine's context.
        """
        while (missing := count - len(self._ready)) > 0:
            first = self._stream.position
            prompts = self._stream.take(missing)
            rendered = render(self._renderer, prompts, chat_template=self._chat_template)
            self._ready.extend((index, one) for index, one in enumerate(rendered, first) if self._fits(one))

    def ahead(self, count: int) -> list[TokenizedPrompt]:
        """Return the next prompts without handing them out."""
        self.prepare(count)
        return [prompt for _, prompt in itertools.islice(self._ready, count)]

    def __iter__(self) -> PromptFeed:
        return self

    def __next__(self) -> TokenizedPrompt:
        if not self._ready:
            self.prepare(BATCH)
        index, prompt = self._ready.popleft()
        self._dealt = index + 1
        return prompt

    def _fits(self, prompt: TokenizedPrompt) -> bool:
        answer = prompt.prompt.output_tokens or self._output_tokens
        if self._context is None or len(prompt.input_ids) + answer <= self._context:
            self._too_long_in_a_row = 0
            return True
        self._too_long.add(prompt.prompt.prompt_id.partition("#")[0])
        self._too_long_in_a_row += 1
        if self._too_long_in_a_row >= HOPELESS:
            raise SpectuneError(
                f"{HOPELESS} prompts in a row do not fit: the last has {len(prompt.input_ids)} tokens and may be "
                f"answered with {answer}, but the engine's context is {self._context}; give shorter prompts or fewer "
                "output_tokens"
            )
        return False


def render(renderer: Renderer, prompts: Sequence[Prompt], *, chat_template: bool) -> list[TokenizedPrompt]:
    """Return prompts with their token ids."""
    plain, classes = [_plain(prompt) for prompt in prompts], [prompt.prompt_class for prompt in prompts]
    ids = renderer.render(plain, classes=classes, chat_template=chat_template)
    return [TokenizedPrompt(prompt, tokens) for prompt, tokens in zip(prompts, ids, strict=True)]


def _plain(prompt: Prompt) -> Any:
    if prompt.text is not None:
        return prompt.text
    return [{"role": message.role, "content": message.content} for message in prompt.messages]
