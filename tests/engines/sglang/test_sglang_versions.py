"""Which versions are launched, and since when a name has existed."""

from __future__ import annotations

import logging

import pytest
from parsers import names_of, parser_of, versions

from spectune.engines.sglang.options import SHIPPED_VERSION, Options
from spectune.engines.sglang.versions.history import (
    FIRST_VERSION,
    check_supported,
    history,
    lacking,
    older_than,
    release,
)
from spectune.errors import SpectuneError


def test_the_table_says_what_the_parsers_of_all_versions_say() -> None:
    every = versions()
    assert (every[0], every[-1]) == (FIRST_VERSION, SHIPPED_VERSION)
    for name in set().union(*map(names_of, every)):
        having = [version for version in every if name in names_of(version)]
        if having == list(every):
            assert name not in history(), name
            continue
        row = history()[name]
        assert row.first == having[0], name
        assert (row.last or SHIPPED_VERSION) == having[-1], name
        assert row.source.split(":")[1].isdigit()


def test_the_table_holds_nothing_else() -> None:
    assert set(history()) <= set().union(*map(names_of, versions()))


def test_the_newest_parser_is_the_shipped_one() -> None:
    assert names_of(SHIPPED_VERSION) == set(Options.shipped().by_name)


def test_older_spellings_were_names_before() -> None:
    for row in history().values():
        for older in (row.older or "").split(" + "):
            earlier = versions()[: versions().index(row.first)]
            assert not older or any(older in names_of(version) for version in earlier), row


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("0.5.10", (0, 5, 10)),
        ("0.5.10.post1", (0, 5, 10)),
        ("0.6", (0, 6, 0)),
        ("0.5.9rc1", (0, 5, 9)),
        ("odd", (0, 0, 0)),
        ("9" * 5000, (999_999_999, 0, 0)),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers
    assert older_than("0.5.9", "0.5.10")
    assert not older_than("0.5.10.post1", "0.5.10")


def test_an_old_sglang_is_refused_in_one_sentence() -> None:
    with pytest.raises(
        SpectuneError, match=r"0\.5\.5 of python3 is too old; spectune takes 0\.5\.6 to 0\.5\.23"
    ) as refused:
        check_supported("0.5.5", "python3")
    assert "\n" not in str(refused.value)


def test_a_new_sglang_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_supported("0.5.24", "python3")
        check_supported("0.5.24", "python3")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "0.5.24 is newer than 0.5.23" in caplog.text


@pytest.mark.parametrize("version", [FIRST_VERSION, "0.5.14", SHIPPED_VERSION, "0.5.23.post1"])
def test_supported_versions_pass_in_silence(version: str, caplog: pytest.LogCaptureFixture) -> None:
    check_supported(version, "python3")
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("speculative-adaptive", "0.5.10", "came with 0.5.11"),
        ("speculative-draft-attention-backend", "0.5.6", "came with 0.5.7"),
        ("speculative-ngram-branch-length", "0.5.10", "0.5.9 was the last"),
        ("page-size", "0.9.0", "has no option page-size"),
        ("attn-dp-size", "0.5.24", "although that version should"),
    ],
)
def test_what_is_lacking_is_said_with_its_version(name: str, version: str, words: str) -> None:
    message = lacking(name, version)
    assert words in message
    assert version in message
    assert "remove it" in message


def test_parsers_of_tests_know_their_version() -> None:
    assert parser_of("0.5.10").version == "0.5.10"
