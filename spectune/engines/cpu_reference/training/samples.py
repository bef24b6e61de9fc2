"""What the tiny models learn: their tokenizer, and windows of the tiny language."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
import tiny_language

VOCABULARY = 512
CONTEXT = 2048
WINDOW = 320  # tokens per training sample: prompt and answer of a served request fit in
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}


def train_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE on the tiny language, digits split so that counting can be learned."""
    rng = random.Random(0)
    corpus = [tiny_language.document(rng, cls, 20) for _ in range(300) for cls in tiny_language.CLASSES]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=list(SPECIAL_TOKENS.values()),
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=CONTEXT, **SPECIAL_TOKENS)
    # A chat is its messages, one per line: the text the models know, with nothing around it.
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% if not loop.last %}\n{% endif %}{% endfor %}"
    return fast


class Samples:
    """An endless, seeded stream of training windows; the classes take turns."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        self._tokenizer = tokenizer
        self._rng = random.Random(seed)
        self._classes = self._turns()

    def batch(self, size: int) -> Tensor:
        """Token ids [size, WINDOW]; half the windows begin a document, as prompts do."""
        return torch.tensor([self._window() for _ in range(size)])

    def _window(self) -> list[int]:
        text = tiny_language.document(self._rng, next(self._classes), 60)
        ids = self._tokenizer.encode(text)
        start = self._rng.choice([0, self._rng.randrange(len(ids) - WINDOW)])
        return ids[start : start + WINDOW]

    @staticmethod
    def _turns() -> Iterator[tiny_language.PromptClass]:
        while True:
            yield from tiny_language.CLASSES
