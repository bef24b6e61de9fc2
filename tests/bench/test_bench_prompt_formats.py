import contextlib
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.bench.prompt_entry import read_entry
from spectune.bench.prompt_file import read_prompt_file
from spectune.bench.prompt_sources import MixPart, open_workload
from spectune.bench.prompt_stream import PromptStream
from spectune.bench.prompts import Message, Prompt
from spectune.bench.shared_prefix import SharedPrefix, prefixed
from spectune.errors import InputProblems, SpectuneError

USER, ANSWER = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}
FOLLOW_UP = {"role": "user", "content": "And then?"}


def written(folder, content, name="asked.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), "utf-8")
    return path


def entry(data, turns="last"):
    return read_entry(data, "f:1", "f", turns)


def said(*messages):
    return tuple(Message(message["role"], message["content"]) for message in messages)


def test_an_openai_batch_entry_with_its_own_limit():
    data = {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [USER], "max_tokens": 7}}  # fmt: skip
    assert entry(data).prompts == (Prompt("f:1", "f", messages=said(USER), output_tokens=7),)
    assert entry({"body": {"prompt": "Go on:", "max_completion_tokens": 9}}).prompts[0].output_tokens == 9


def test_text_parts_are_joined_and_pictures_refused():
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert entry({"messages": [{"role": "user", "content": parts}]}).prompts[0].messages[0].content == "one\ntwo"
    with pytest.raises(ValueError, match="only text can be sent"):
        entry({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})


def test_what_follows_the_last_question_is_left_out_and_what_was_said_before_is_kept():
    conversation = [USER, ANSWER, FOLLOW_UP, ANSWER]
    assert entry({"messages": conversation}).prompts[0].messages == said(USER, ANSWER, FOLLOW_UP)
    both = entry({"messages": conversation}, "all").prompts
    assert [prompt.messages for prompt in both] == [said(USER), said(USER, ANSWER, FOLLOW_UP)]
    assert [prompt.prompt_id for prompt in both] == ["f:1/1", "f:1/2"]


def test_sharegpt_conversations():
    turns = [
        ("gpt", "Hello!"),
        ("human", "Why?"),
        ("gpt", "Because."),
        ("human", "And then?"),
        ("gpt", " "),
        ("human", "x"),
    ]
    data = {"id": "a", "conversations": [{"from": speaker, "value": value} for speaker, value in turns]}
    assert entry(data).prompts[0].messages == said(USER, ANSWER, FOLLOW_UP)
    assert entry({"conversations": [{"from": "gpt", "value": "Hello!"}]}).prompts == ()
    with pytest.raises(ValueError, match="a turn must be"):
        entry({"conversations": [{"from": "nobody", "value": "Hello!"}]})


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


@given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=6), system=st.none() | texts)
def test_every_question_of_a_conversation_comes_with_all_that_was_said_before(pairs, system):
    messages = [] if system is None else [{"role": "system", "content": system}]
    for question, answer in pairs:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    prompts = entry({"messages": messages}, "all").prompts
    assert [prompt.messages[-1].content for prompt in prompts] == [question for question, _ in pairs]
    for prompt in prompts:
        assert prompt.messages == said(*messages)[: len(prompt.messages)]
    assert entry({"messages": messages}).prompts[0].messages == prompts[-1].messages


plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=5)
KEYS = "prompt messages conversations body class output_tokens timestamp role content from value type text"
keys = st.sampled_from(KEYS.split())
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))


@given(data=anything, turns=st.sampled_from(["last", "all"]))
def test_whatever_an_entry_is_it_is_a_prompt_or_said_not_to_be_one(data, turns):
    with contextlib.suppress(ValueError):
        assert all(prompt.content for prompt in entry(data, turns).prompts)


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ({"timestamp": 12.5}, 12.5),
        ({"timestamp": 1_700_000_000}, 1.7e9),
        ({"timestamp": 1_700_000_000_000}, 1.7e9),
        ({"timestamp_ms": 250}, 0.25),
        ({"timestamp": "2024-05-01T00:00:01+00:00"}, 1714521601.0),
        ({}, None),
    ],
)
def test_timestamps(stamp, seconds):
    assert entry({"prompt": "a", **stamp}).time_s == seconds


@pytest.mark.parametrize("bad", [-1, True, "soon", [], float("inf")])
def test_timestamps_that_are_none(bad):
    with pytest.raises(ValueError, match="`timestamp` must be"):
        entry({"prompt": "a", "timestamp": bad})


def test_a_nul_character_is_no_text():
    with pytest.raises(ValueError, match="NUL"):
        entry({"prompt": "a\0b"})


def test_a_json_list_of_conversations(tmp_path):
    asked = [{"conversations": [{"from": "human", "value": f"Question {i % 3}"}]} for i in range(5)]
    file = read_prompt_file(written(tmp_path, [*asked, {"conversations": []}]))
    assert [prompt.messages[0].content for prompt in file.prompts] == ["Question 0", "Question 1", "Question 2"]
    assert (file.duplicates, file.empty) == (2, 1)
    assert {prompt.prompt_class for prompt in file.prompts} == {"asked"}


def test_bad_entries_of_a_list_are_named_with_the_line_they_begin_on(tmp_path):
    path = written(tmp_path, '[\n {"prompt": "a"},\n {"prompt":\n  ""}, {"prompt": "b"},\n\n 3\n]')
    with pytest.raises(InputProblems) as caught:
        read_prompt_file(path)
    assert [problem.line for problem in caught.value.problems] == [3, 6]


@pytest.mark.parametrize(
    ("content", "line"),
    [('[\n{"prompt": "a"},\n{"prompt" "b"}]', 3), ('[{"prompt": "a"},\n{"prompt": "\\ud800"}]', 2), ("[", 1)],
)
def test_a_list_that_is_no_json_names_the_line(tmp_path, content, line):
    with pytest.raises(InputProblems, match="not valid JSON") as caught:
        read_prompt_file(written(tmp_path, content))
    assert [problem.line for problem in caught.value.problems] == [line]


def test_values_nested_beyond_reason_are_refused_like_any_other(tmp_path):
    lines, whole = tmp_path / "lines.jsonl", tmp_path / "whole.json"
    lines.write_text('{"prompt": ' + "[" * 300 + "]" * 300 + '}\n{"prompt": "b"}\n')
    with pytest.raises(InputProblems, match=r"lines.jsonl:1: `prompt` must be a text .* but got something nested"):
        read_prompt_file(lines)
    whole.write_text('[{"x": ' + "[" * 1000 + "]" * 1000 + ', "prompt": "a"},\n{"prompt": 3}]')
    with pytest.raises(InputProblems, match=r"whole.json: `prompt` must be a text that is not empty, but got 3"):
        read_prompt_file(whole)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(b'{"prompt": "a"}\n{"prompt": "b"}\n'), "compressed by gzip"),
        ('{"prompt": "a"}\n{"prompt": "b"}\n'.encode("utf-16"), "in UTF-16"),
        (b"PAR1\x15\x04", "a Parquet table"),
    ],
)
def test_a_file_of_another_kind_is_said_to_be_one(tmp_path, content, kind):
    file = tmp_path / "prompts.jsonl"
    file.write_bytes(content)
    with pytest.raises(SpectuneError, match=rf"prompts.jsonl: it is {kind}; make it JSON or JSONL in UTF-8"):
        read_prompt_file(file)


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "\u202egnp", "c" * 101, " ", None, 3])
def test_a_class_is_a_short_line(name):
    with pytest.raises(ValueError, match="`class` must be a line of at most 100 printable characters"):
        read_entry({"prompt": "a", "class": name}, "id", "file", "last")


def test_a_file_of_which_nothing_is_right_does_not_fill_the_screen(tmp_path):
    with pytest.raises(InputProblems) as caught:
        read_prompt_file(written(tmp_path, "no\n" * 5000, "asked.jsonl"))
    assert len(caught.value.problems) == 21
    assert "4,980 more" in str(caught.value)


@pytest.mark.parametrize("lines", [1, 3])
def test_one_prompt_is_no_traffic(tmp_path, lines):
    with pytest.raises(SpectuneError, match="only one prompt"):
        read_prompt_file(written(tmp_path, '{"prompt": "a"}\n' * lines, "asked.jsonl"))


def test_arrivals_are_recorded_where_every_entry_has_a_time(tmp_path):
    stamped = [{"prompt": str(i), "timestamp": 10 - i} for i in range(3)]
    workload = open_workload(written(tmp_path, stamped).name, tmp_path)
    assert workload.times_s == (8.0, 9.0, 10.0)
    assert workload.recorded_rate == 1.0
    partly = written(tmp_path, [*stamped, {"prompt": "x"}], "partly.json")
    assert read_prompt_file(partly).times_s == ()
    written(tmp_path, [{"prompt": f"other {i}", "timestamp": i} for i in range(3)], "other.json")
    both = open_workload([MixPart("asked.json", 1), MixPart("other.json", 1)], tmp_path)
    assert both.times_s == ()
    assert both.class_shares == {"asked": 0.5, "other": 0.5}


@given(share=st.floats(0.05, 1.0), characters=st.integers(1, 20_000))
def test_a_shared_prefix_goes_to_its_share_of_every_class(share, characters):
    prefix = SharedPrefix(characters, share)
    assert len(prefix.text) == characters
    dealt = PromptStream(open_workload("builtin:tiny", shared_prefix=prefix), seed=0).take(120)
    for prompt_class in ("prose", "code", "counting"):
        texts = [prompt.text for prompt in dealt if prompt.prompt_class == prompt_class]
        assert abs(sum(text.startswith(prefix.text) for text in texts) - share * len(texts)) <= 1.0


def test_a_prefix_stands_before_the_first_message_whoever_speaks():
    asked = Prompt("p", "c", messages=said(USER, ANSWER, FOLLOW_UP))
    assert prefixed(asked, "Rules.").messages[0] == Message("user", "Rules.\n\nWhy?")
    assert prefixed(Prompt("p", "c", text="Why?"), "Rules.").text == "Rules.\n\nWhy?"
