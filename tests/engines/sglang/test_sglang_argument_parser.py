"""An option that is parsed alone is parsed as SGLang's whole parser does it."""

from __future__ import annotations

import argparse

from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.engines.sglang.launch_line.argument_parser import ArgumentParser
from spectune.engines.sglang.options import Options


class _Whole(ArgumentParser):
    """Goes through all options for every one it reads, as argparse does."""

    def _parser_for(self, word: str) -> argparse.ArgumentParser:  # type: ignore[override]
        del word
        return self._argparse


ALONE, WHOLE = ArgumentParser(Options.shipped()), _Whole(Options.shipped())
SPELLINGS = sorted({one for spellings in ALONE.spellings.values() for one in spellings} | {"--help", "-h"})
VALUES = ["8", "-5", "-1.5", "x", "a=b", "", '{"a": 1}', "-x y", "--", "true", "auto", "fa3", "EAGLE3", "-"]


@settings(max_examples=400, deadline=None)
@given(
    spelling=st.sampled_from(SPELLINGS),
    length=st.integers(1, 60),
    joined=st.none() | st.sampled_from(VALUES),
    values=st.lists(st.sampled_from(VALUES), max_size=4),
)
def test_an_option_read_alone_is_read_as_among_all_others(
    spelling: str, length: int, joined: str | None, values: list[str]
) -> None:
    written = spelling[:length] if joined is None else f"{spelling[:length]}={joined}"
    words = [written, *values]
    for group in ALONE.groups(words):
        some = [words[place] for place in group]
        assert ALONE.read(some) == WHOLE.read(some)
