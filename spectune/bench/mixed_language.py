"""The prompts of `builtin:mixed`: what people ask of code, chat and math assistants, composed from templates.

Each class has tens of thousands of distinct prompts; a third of them carry material to work on. Every one asks for an
answer of a few hundred words, so that generation does not end early, and every one reads as a person could have written
it: random tokens would give a drafter an acceptance far below that of real traffic.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from string import Formatter

from spectune.bench import mixed_material
from spectune.bench import mixed_phrases as phrases

WITH_MATERIAL = 1 / 3
"""Of the prompts; these have hundreds to thousands of characters, the others one to three hundred."""


def code(rng: random.Random) -> str:
    """A programming task, or a question about pasted code."""
    if rng.random() < WITH_MATERIAL:
        return mixed_material.code(rng)
    return _filled(rng, phrases.CODE_TASKS, phrases.CODE_WORDS)


def chat(rng: random.Random) -> str:
    """A question or a writing task of everyday life or work, or about pasted minutes."""
    if rng.random() < WITH_MATERIAL:
        return mixed_material.chat(rng)
    return _filled(rng, phrases.CHAT_TASKS, phrases.CHAT_WORDS)


def math(rng: random.Random) -> str:
    """A word problem or an exercise, to be solved step by step, or a question about pasted figures."""
    if rng.random() < WITH_MATERIAL:
        return mixed_material.math(rng)
    return f"{rng.choice(_PROBLEMS)(rng)} {rng.choice(phrases.MATH_REQUESTS)}"


def _filled(rng: random.Random, templates: tuple[str, ...], words: dict[str, tuple[str, ...]]) -> str:
    """A template with every {slot} filled; two slots of one kind (`thing`, `thing2`) get different words."""
    template = rng.choice(templates)
    taken: dict[str, str] = {}
    for _, slot, _, _ in Formatter().parse(template):
        if slot is not None and slot not in taken:
            taken[slot] = rng.choice([word for word in words[slot.rstrip("2")] if word not in taken.values()])
    text = template.format_map(taken)
    return text[0].upper() + text[1:]


def _journey(rng: random.Random) -> str:
    vehicle, other = rng.sample(phrases.VEHICLES, 2)
    start, goal = rng.sample(phrases.TOWNS, 2)
    slow = rng.randrange(30, 90)
    return (
        f"A {vehicle} leaves {start} for {goal}, {rng.randrange(60, 900, 10)} km away, at {slow} km/h. A {other} "
        f"follows on the same road {rng.randrange(10, 95, 5)} minutes later at {slow + rng.randrange(5, 60)} km/h. "
        f"Does it catch up before {goal}, and if so, where and when?"
    )


def _shop(rng: random.Random) -> str:
    name, (thing, other) = rng.choice(phrases.NAMES), rng.sample(phrases.GOODS, 2)
    price, second, tax = rng.randrange(2, 60), rng.randrange(2, 60), rng.choice((7, 8, 10, 19, 20))
    return (
        f"{name} buys {rng.randrange(3, 40)} {thing} at {price}.{rng.randrange(10, 100)} each and "
        f"{rng.randrange(2, 25)} {other} at {second}.50 each. The shop takes {rng.randrange(5, 45, 5)} % off the "
        f"total and then adds {tax} % tax. How much does {name} pay, and how much was saved?"
    )


def _quadratic(rng: random.Random) -> str:
    first, second, scale = rng.randrange(-12, 13), rng.randrange(-12, 13), rng.randrange(1, 6)
    linear, constant = -scale * (first + second), scale * first * second
    return (
        f"Consider f(x) = {scale}x²{_signed(linear)}x{_signed(constant)}. Find its roots, its vertex and the interval "
        f"where it is below {rng.randrange(1, 30)}."
    )


def _signed(number: int) -> str:
    return f" {'-' if number < 0 else '+'} {abs(number)}"


def _chance(rng: random.Random) -> str:
    name, (colour, other) = rng.choice(phrases.NAMES), rng.sample(phrases.COLOURS, 2)
    return (
        f"A bag holds {rng.randrange(4, 20)} {colour} and {rng.randrange(3, 15)} {other} "
        f"{rng.choice(phrases.TOKENS)}. {name} draws {rng.randrange(2, 6)} of them "
        f"{rng.choice(('with', 'without'))} replacement. What is the probability that at least one is {colour}, "
        f"and what is the expected number of {other} ones?"
    )


def _work(rng: random.Random) -> str:
    one, other = rng.sample(phrases.NAMES, 2)
    hours = rng.randrange(4, 30)
    return (
        f"{one} can {rng.choice(phrases.JOBS)} in {hours} hours, {other} needs {hours + rng.randrange(1, 15)}. "
        f"{one} starts alone and works for {rng.randrange(2, 4)} hours before {other} joins in. How long does the "
        "whole job take, and what share of it did each do?"
    )


def _series(rng: random.Random) -> str:
    name, start, growth = rng.choice(phrases.NAMES), rng.randrange(100, 9000, 50), rng.randrange(2, 13)
    return (
        f"{name} puts {start} into an account that grows by {growth} % a year, and adds "
        f"{rng.randrange(20, 900, 10)} at the end of every year. How much is there after {rng.randrange(4, 26)} "
        "years, and how much of it is interest?"
    )


def _shape(rng: random.Random) -> str:
    radius, height = rng.randrange(2, 40), rng.randrange(5, 90)
    return (
        f"A {rng.choice(phrases.VESSELS)} is a cylinder of radius {radius} cm and height {height} cm with a cone "
        f"of the same radius and height {rng.randrange(3, 50)} cm on top. Find its volume and its surface, and say "
        f"how long a pump of {rng.randrange(2, 60)} litres per minute takes to fill it."
    )


def _divisors(rng: random.Random) -> str:
    return (
        f"Find all integers n between {rng.randrange(1, 400)} and {rng.randrange(500, 2000)} that leave remainder "
        f"{rng.randrange(1, 5)} when divided by {rng.randrange(5, 9)} and remainder {rng.randrange(1, 9)} when "
        f"divided by {rng.randrange(9, 14)}."
    )


_PROBLEMS: tuple[Callable[[random.Random], str], ...] = (
    _journey,
    _shop,
    _quadratic,
    _chance,
    _work,
    _series,
    _shape,
    _divisors,
)
