from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.errors import InputProblems
from spectune.space import parse_document, read_document
from spectune.space.dialect import dump

FILE = Path("a.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(InputProblems) as caught:
        parse_document(text, FILE)
    return [str(problem) for problem in caught.value.problems]


def test_lines_of_keys_values_and_items() -> None:
    document = parse_document("a:\n  b: 1\n  c:\n    - x\n    - {y: 2,\n       z: 3}\n", FILE)
    assert document.data == {"a": {"b": 1, "c": ["x", {"y": 2, "z": 3}]}}
    assert document.key_lines["a", "c"] == 3
    assert document.value_lines["a", "c"] == 4
    assert document.line_of(("a", "c", 1)) == 5
    assert document.line_of(("a", "c", 1, "z")) == 6
    assert document.line_of(("a", "c", 7, "nothing")) == 3
    assert document.line_of(("elsewhere",)) == 1


def test_the_text_as_written_is_kept() -> None:
    document = parse_document("a: 0x10\nb: on\nc: '7'\nd: 1e-3\n", FILE)
    assert document.data == {"a": 16, "b": True, "c": "7", "d": 0.001}
    assert [document.texts[(key,)] for key in "abcd"] == ["0x10", "on", "7", "1e-3"]


def test_traps_of_yaml_are_plain_text() -> None:
    text = "time: 12:30\ndate: 2024-01-01\noctal: 010\nring: allreduce:ring\n"
    assert parse_document(text, FILE).data == {
        "time": "12:30",
        "date": "2024-01-01",
        "octal": "010",
        "ring": "allreduce:ring",
    }


def test_anchors_and_merged_mappings() -> None:
    text = "base: &b {x: 1, y: 2}\nother: &o {y: 5, z: 6}\nuse:\n  <<: [*b, *o]\n  x: 9\ntwice: [*b, *b]\n"
    document = parse_document(text, FILE)
    assert document.data["use"] == {"x": 9, "y": 2, "z": 6}
    assert document.data["twice"] == [{"x": 1, "y": 2}] * 2
    assert document.line_of(("use", "x")) == 5
    assert document.line_of(("use", "y")) == 1
    assert document.problems == ()


def test_duplicated_keys_are_told_with_both_lines() -> None:
    document = parse_document("a: 1\nb: 2\na: 3\n", FILE)
    assert document.data == {"a": 1, "b": 2}
    assert [str(problem) for problem in document.problems] == ["a.yaml:3: 'a' stands twice; the first is on line 1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("? [1, 2]\n: x\n", "a.yaml:1: a key must be a name, not a list or a mapping"),
        ("a: !!python/object:os.system {}\n", "a.yaml:1: the YAML tag tag:yaml.org,2002:python/object:os.system is"),
        ("a: !secret x\n", "a.yaml:1: the YAML tag !secret is not supported here"),
        ("a: !!int many\n", "a.yaml:1: invalid literal for int"),
        ("a: !!bool many\n", "a.yaml:1: 'many' is not a bool"),
        ("a: {<<: 3}\n", "a.yaml:1: << merges mappings, but this is none"),
    ],
)
def test_readable_but_wrong(text: str, message: str) -> None:
    (problem,) = parse_document(text, FILE).problems
    assert str(problem).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.yaml: is empty"),
        ("# nothing\n", "a.yaml: is empty"),
        ("- 1\n", "a.yaml:1: must be a mapping of names to values, but is a list"),
        ("just words\n", "a.yaml:1: must be a mapping of names to values, but is a str"),
        ("a: 1\nb: [1, 2\nc: 3\n", "a.yaml:3: is not valid YAML: while parsing a flow sequence, "),
        ("a: 1\n\tb: 2\n", "a.yaml:2: is not valid YAML: "),
        ("a: *nowhere\n", "a.yaml:1: is not valid YAML: found undefined alias 'nowhere'"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: is not valid YAML: expected a single document in the stream"),
        ("a: 1\nb: \x07\n", "a.yaml:2: character U+0007 is not allowed in YAML"),
        ("a: &x [*x]\n", "a.yaml:1: an anchor contains an alias of itself"),
        ("a: &x {<<: *x}\n", "a.yaml:1: an anchor contains an alias of itself"),
        ("a: " + "[" * 60 + "]" * 60, "a.yaml:1: is nested too deeply"),
        ("a: " + "[" * 5000, "a.yaml: is nested too deeply"),
    ],
)
def test_unreadable(text: str, message: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(message)


def test_nested_aliases_do_not_blow_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert problems("\n".join(lines)) == ["a.yaml: unfolds to more than 20000 values; are aliases nested?"]


def test_nested_merges_do_not_blow_up() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    assert problems("\n".join(lines)) == ["a.yaml: unfolds to more than 20000 values; are aliases nested?"]


def test_files_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    for raw, message in (
        (b"a: 1\nb: \xff\n", f"{file}:2: byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: 1\n" * 100_000, f"{file}: is larger than 256 KiB: not a file of this kind"),
    ):
        file.write_bytes(raw)
        with pytest.raises(InputProblems) as caught:
            read_document(file)
        assert str(caught.value) == message
    with pytest.raises(InputProblems, match="cannot be read: Is a directory"):
        read_document(tmp_path)
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_document(file).data == {"a": 1, "b": 2}


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=10),
    st.sampled_from(
        ["on", "1e3", "12:30", "0x10", "010", "~", "", "<<", "null", "1.", ".5", "2024-01-01", "- a", "unset"]
    ),
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.one_of(scalars, st.lists(scalars)), min_size=1))
def test_what_is_written_is_read_back(data: dict[str, object]) -> None:
    read = parse_document(dump(data), FILE).data
    assert read == data
    assert repr(read) == repr(data)
