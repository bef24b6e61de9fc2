import json
import os
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.prompt_file import read_prompt_file
from spectune.bench.prompt_sources import BUILTIN, MixPart, open_workload
from spectune.bench.prompt_stream import PromptStream
from spectune.bench.prompts import Message, Prompt
from spectune.errors import InputProblems, SpectuneError


def write(folder: Path, *lines: object) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    return path


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_builtin_prompts_are_thousands_and_distinct(name):
    stream = PromptStream(open_workload(name), seed=3)
    prompts = stream.take(6000)
    assert len({prompt.text for prompt in prompts}) == 6000
    assert len({prompt.prompt_id for prompt in prompts}) == 6000
    assert stream.reused == 0
    counts = Counter(prompt.prompt_class for prompt in prompts)
    assert set(counts.values()) == {6000 // len(BUILTIN[name])}


def test_mixed_prompts_are_whole_sentences_with_every_slot_filled():
    for prompt in PromptStream(open_workload("builtin:mixed"), seed=1).take(900):
        assert not re.search(r"{\w+}", prompt.text.replace("{number}", ""))
        assert prompt.text[0].isupper()
        question = prompt.text.split("\n\n", 1)[0]
        assert question[-1] in ".?"
        assert 40 < len(question) < 400
        assert len(prompt.text) < 9000


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_the_seed_alone_decides(name):
    workload = open_workload(name)
    assert PromptStream(workload, seed=1).take(50) == PromptStream(workload, seed=1).take(50)
    assert PromptStream(workload, seed=1).take(50) != PromptStream(workload, seed=2).take(50)


@given(used=st.integers(0, 60), seed=st.integers(0, 9))
def test_a_resumed_study_continues_where_it_was(used, seed):
    workload = open_workload("builtin:tiny")
    whole = PromptStream(workload, seed=seed)
    whole.take(used)
    resumed = PromptStream(workload, seed=seed, start=used)
    assert resumed.position == used
    assert resumed.take(5) == whole.take(5)


@given(start=st.integers(0, 300), length=st.integers(1, 100), tenths=st.integers(1, 9))
def test_every_stretch_has_the_same_mix(start, length, tenths):
    share = tenths / 10
    workload = open_workload([MixPart("builtin:tiny", share), MixPart("builtin:mixed", 1 - share)])
    stretch = PromptStream(workload, seed=0, start=start).take(length)
    counts = Counter(prompt.prompt_id.rsplit(":", 1)[0] for prompt in stretch)
    for stratum in workload.strata:
        assert abs(counts[stratum.name] - stratum.share * length) <= 2.0
    assert workload.class_shares["math"] == pytest.approx((1 - share) / 3)


def test_a_file_with_text_messages_classes_and_limits(tmp_path):
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
    path = write(
        tmp_path,
        {"prompt": "One", "class": "code", "output_tokens": 7, "source": "elsewhere"},
        "",
        {"messages": conversation},
        {"prompt": "One"},
    )
    file = read_prompt_file(path)
    assert file.duplicates == 1
    assert file.prompts == (
        Prompt("prompts.jsonl:1", "code", text="One", output_tokens=7),
        Prompt("prompts.jsonl:3", "prompts", messages=(Message("system", "Be brief."), Message("user", "Why?"))),
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[1]", "must be an object"),
        ("{}", "exactly one of"),
        ({"prompt": "a", "messages": []}, "exactly one of"),
        ({"prompt": "  "}, "not empty"),
        ({"prompt": 3}, "not empty"),
        ({"prompt": "a", "class": 3}, "`class`"),
        ({"prompt": "a", "output_tokens": 0}, "`output_tokens`"),
        ({"prompt": "a", "output_tokens": True}, "`output_tokens`"),
        ({"prompt": "a", "output_tokens": 1_000_001}, "from 1 to 1,000,000, but got 1000001"),
        ('{"prompt": "a", "output_tokens": 999999999999999999999999}', "from 1 to 1,000,000"),
        ({"messages": []}, "must be a list"),
        ({"messages": ["hi"]}, "a message must be"),
        ({"messages": [{"role": "user"}]}, "`content`"),
        ('{"prompt": "\\ud800"}', "not valid JSON"),
    ],
)
def test_a_line_that_is_no_prompt_is_named(tmp_path, line, complaint):
    with pytest.raises(InputProblems, match=complaint) as caught:
        read_prompt_file(write(tmp_path, {"prompt": "good"}, line))
    assert [problem.line for problem in caught.value.problems] == [2]


def test_all_bad_lines_are_named_at_once(tmp_path):
    with pytest.raises(InputProblems) as caught:
        read_prompt_file(write(tmp_path, "x", {"prompt": "good"}, "[]", {"prompt": ""}))
    assert [problem.line for problem in caught.value.problems] == [1, 3, 4]
    assert f"{tmp_path / 'prompts.jsonl'}:3: " in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'{"prompt": "ok"}\n{"prompt": "\xff"}\n')
    with pytest.raises(InputProblems, match=r"prompts\.jsonl:2: not valid JSON"):
        read_prompt_file(path)


@pytest.mark.parametrize(
    ("prompts", "complaint"),
    [
        ("builtin:mixd", "built in are builtin:mixed, builtin:random, builtin:tiny"),
        ("missing.jsonl", "cannot read the prompts .*missing.jsonl"),
        ([], "at least one part"),
        ([MixPart("builtin:tiny", 0.0)], "must be positive"),
        ([MixPart("builtin:tiny", float("nan"))], "must be positive"),
        ([MixPart("builtin:tiny", 1), MixPart("builtin:tiny", 2)], "same prompts twice"),
    ],
)
def test_workloads_that_cannot_be_are_refused(tmp_path, prompts, complaint):
    with pytest.raises(SpectuneError, match=complaint):
        open_workload(prompts, tmp_path)


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(SpectuneError, match="no prompt in it"):
        open_workload(str(write(tmp_path, "")), tmp_path)


def test_a_file_that_runs_out_starts_over_in_another_order_and_says_so(tmp_path):
    path = write(tmp_path, *({"prompt": f"Question {i}"} for i in range(20)))
    stream = PromptStream(open_workload(path.name, tmp_path), seed=0)
    first, second = stream.take(20), stream.take(20)
    assert stream.reused == 20
    assert {p.text for p in first} == {p.text for p in second}
    assert len({p.prompt_id for p in first + second}) == 40
    assert [p.text for p in first] != [p.text for p in second]


def test_a_class_whose_prompts_another_has_used_repeats_them(tmp_path):
    (tmp_path / "part.jsonl").write_text('{"prompt": "Question 1"}\n{"prompt": "Question 2"}\n')
    write(tmp_path, *({"prompt": f"Question {i}"} for i in range(4)))
    mix = [MixPart("prompts.jsonl", 0.9), MixPart("part.jsonl", 0.1)]
    stream = PromptStream(open_workload(mix, tmp_path), seed=0)
    dealt = stream.take(40)
    assert Counter(prompt.prompt_class for prompt in dealt) == {"prompts": 36, "part": 4}
    assert {prompt.text for prompt in dealt if prompt.prompt_class == "part"} == {"Question 1", "Question 2"}
    assert stream.reused == 36


def test_classes_of_a_file_keep_their_proportions(tmp_path):
    lines = [{"prompt": f"{i}", "class": "rare" if i % 4 == 0 else "common"} for i in range(40)]
    workload = open_workload(write(tmp_path, *lines).name, tmp_path)
    assert workload.class_shares == {"rare": pytest.approx(0.25), "common": pytest.approx(0.75)}
    assert Counter(p.prompt_class for p in PromptStream(workload, seed=0).take(8)) == {"rare": 2, "common": 6}


@pytest.mark.parametrize("make", BUILTIN["builtin:mixed"].values())
def test_templates_use_all_their_randomness(make):
    rng = random.Random(0)
    assert len({make(rng) for _ in range(3000)}) > 2500


def test_prompts_are_read_from_a_regular_file_only(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(SpectuneError, match="is not a regular file"):
            read_prompt_file(path)
    with pytest.raises(SpectuneError, match="cannot read the prompts"):
        read_prompt_file(Path("a\0b"))
