"""The prompts of `builtin:random`: letters in no order, for measuring an engine without regard to what it says.

No drafter predicts what follows on them: vllm issue 53906 has an accept rate of 12 % on random tokens, 52 % on text.
"""

from __future__ import annotations

import random
import string

_WORDS = (20, 200)
_LETTERS = (2, 9)


def text(rng: random.Random) -> str:
    """Words of random letters."""
    words = rng.randint(*_WORDS)
    return " ".join("".join(rng.choices(string.ascii_letters, k=rng.randint(*_LETTERS))) for _ in range(words))
