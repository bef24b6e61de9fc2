"""The language of the tiny models: distinct, reproducible prompts in three classes."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from spectune.bench import tiny_language
from spectune.bench.tiny_language import CLASSES, PromptClass
from spectune.engines import cpu_reference

MODELS = Path(cpu_reference.__file__).parent / "models"


@pytest.mark.parametrize("cls", CLASSES)
def test_thousands_of_prompts_are_distinct(cls: PromptClass) -> None:
    rng = random.Random(0)
    assert len({tiny_language.prompt(rng, cls) for _ in range(5000)}) > 4980


@pytest.mark.parametrize("cls", CLASSES)
def test_a_seed_makes_the_same_prompt_again(cls: PromptClass) -> None:
    assert tiny_language.prompt(random.Random(7), cls) == tiny_language.prompt(random.Random(7), cls)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_longer_document_goes_on_where_a_shorter_one_ends(cls: PromptClass) -> None:
    short, long = (tiny_language.document(random.Random(3), cls, units) for units in (4, 12))
    assert long.startswith(short)
    assert len(long) > 2 * len(short)


def test_counting_counts() -> None:
    numbers = re.search(r"from (\d+) by (\d+): ([\d ]+)\.", tiny_language.sentence(random.Random(1), "counting"))
    assert numbers is not None
    first, step = int(numbers[1]), int(numbers[2])
    assert [int(n) for n in numbers[3].split()] == [first + step * i for i in range(8)]


def test_code_is_python() -> None:
    compile(tiny_language.document(random.Random(2), "code", 9).split(":", 1)[1], "tiny", "exec")


def test_every_letter_of_every_word_is_in_the_tokenizer() -> None:
    vocabulary = json.loads((MODELS / "target/tokenizer.json").read_text())["model"]["vocab"]
    words = [*tiny_language.ADJECTIVES, *tiny_language.NOUNS]
    assert [word for word in words if f"Ġ{word}" not in vocabulary] == []  # one token each: prompts stay short


def test_models_share_one_tokenizer_and_fit_into_four_megabytes() -> None:
    folders = ["target", "drafter-strong", "drafter-weak", "drafter-standalone"]
    assert sorted(path.name for path in MODELS.iterdir()) == sorted(folders)
    assert len({(MODELS / folder / "tokenizer.json").read_bytes() for folder in folders}) == 1
    assert sum(path.stat().st_size for path in MODELS.rglob("*")) < 4_000_000
