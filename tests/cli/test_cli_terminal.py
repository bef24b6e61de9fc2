"""What other people's words may do to a terminal: nothing."""

from __future__ import annotations

import pytest
from rich.text import Text

from spectune.cli.terminal import OUT

HOSTILE = "a\x1b]0;title\x07b\u202ec\x9b31md\tτ\u202f3"


@pytest.mark.parametrize("thing", [HOSTILE, Text(HOSTILE, style="bold").append(" end", style="red")])
def test_no_control_character_reaches_the_terminal(thing: str | Text) -> None:
    with OUT.capture() as captured:
        OUT.print(thing, markup=False, soft_wrap=True)
    shown = captured.get()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
    assert shown.startswith("a\N{REPLACEMENT CHARACTER}]0;title")
    assert "τ\u202f3" in shown
