"""The little language the tiny models are trained on, and the prompts that ask them to go on with it.

Three classes of text, each an almost deterministic walk: what comes next follows from what stands there, with a few
surprises. A greedy model therefore has one clearly best continuation (so outputs can be compared) that neither stops
nor repeats within hundreds of tokens, and the classes differ in how hard they are to draft.

Standard library only: the training script runs in the engine's interpreter, the workloads in spectune's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeVar, get_args

PromptClass = Literal["prose", "code", "counting"]
CLASSES: Final[tuple[PromptClass, ...]] = get_args(PromptClass)

_T = TypeVar("_T")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Cycle lengths are coprime, so that a walk comes back to the same sentence only after hundreds of others.
ADJECTIVES: Final = _words(
    "red quick lazy old small bright cold tall quiet happy green proud slow wise young brave calm dark kind"
)
NOUNS: Final = _words(
    "fox dog cat bird tree river house engine server model cloud stone king child wolf garden ship tower horse letter "
    "road lamp queen"
)
VERBS: Final = _words("sees finds likes builds moves drives holds")
ARGUMENTS: Final = _words("size step count index value")
FUNCTIONS: Final = _words("get set add load save make read")

_SURPRISE: Final = 0.08
_HIGHEST: Final = 960  # of the numbers counted to: three digits


def sentence(rng: random.Random, cls: PromptClass) -> str:
    """One unit of text of a class: a sentence, a function or a line of numbers."""
    return next(_WALKS[cls](rng))


def document(rng: random.Random, cls: PromptClass, units: int) -> str:
    """A title and `units` − 1 units of text, each following from the one before it."""
    return "".join(islice(_titled(rng, cls), units))


def prompt(rng: random.Random, cls: PromptClass) -> str:
    """The opening of a document, about 20 to 60 tokens of the tiny tokenizer, ending where a unit ends.

    Hundreds of thousands of them are distinct: every document opens with a number and a random state.
    """
    return document(rng, cls, rng.choice(_PROMPT_UNITS[cls]))


def _titled(rng: random.Random, cls: PromptClass) -> Iterator[str]:
    yield f"{_TITLES[cls]} {rng.randrange(1000)}:"
    yield from _WALKS[cls](rng)


def _prose(rng: random.Random) -> Iterator[str]:
    adjective, noun = rng.choice(ADJECTIVES), rng.choice(NOUNS)
    while True:
        verb = VERBS[NOUNS.index(noun) % len(VERBS)]
        next_adjective, next_noun = _following(rng, ADJECTIVES, adjective), _following(rng, NOUNS, noun)
        yield f" the {adjective} {noun} {verb} the {next_adjective} {next_noun}."
        adjective, noun = next_adjective, next_noun


def _code(rng: random.Random) -> Iterator[str]:
    function, noun, argument = rng.choice(FUNCTIONS), rng.choice(NOUNS), rng.choice(ARGUMENTS)
    added, factor = rng.randrange(2, 10), rng.randrange(2, 10)
    digits = range(2, 10)
    while True:
        yield (
            f"\n\ndef {function}_{noun}({argument}):\n    {argument} = {argument} + {added}\n"
            f"    return {argument} * {factor}"
        )
        function, noun = _following(rng, FUNCTIONS, function), _following(rng, NOUNS, noun)
        argument, added, factor = _following(rng, ARGUMENTS, argument), _following(rng, digits, added), added


def _counting(rng: random.Random) -> Iterator[str]:
    number, step = rng.randrange(1, _HIGHEST), rng.randrange(1, 6)
    while True:
        numbers = [number + step * i for i in range(8)]
        yield f"\nfrom {number} by {step}: {' '.join(map(str, numbers))}."
        number, step = (numbers[-1] + step) % _HIGHEST, _following(rng, range(1, 6), step)


def _following(rng: random.Random, cycle: Sequence[_T], current: _T) -> _T:
    """The next element of a cycle; now and then any element."""
    if rng.random() < _SURPRISE:
        return rng.choice(cycle)
    return cycle[(cycle.index(current) + 1) % len(cycle)]


_WALKS: Final[dict[PromptClass, Callable[[random.Random], Iterator[str]]]] = {
    "prose": _prose,
    "code": _code,
    "counting": _counting,
}
_TITLES: Final[dict[PromptClass, str]] = {"prose": "story", "code": "# module", "counting": "table"}
# Units after which the opening has 20 to 60 tokens; the title is one of them.
_PROMPT_UNITS: Final[dict[PromptClass, Sequence[int]]] = {"prose": (3, 4), "code": (2,), "counting": (2,)}
