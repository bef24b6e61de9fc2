import math

import pytest

from spectune.analysis.estimate import Estimate
from spectune.analysis.strata import Stratum, least, worst_in_words

EVEN = Estimate(2.0, 1.9, 2.1)


def kind(name, length, requests=10, of="class"):
    return Stratum(of, name, "c4", requests, Estimate(length, length - 0.02, length + 0.02), EVEN)


def test_a_kind_pays_where_its_interval_and_that_of_the_break_even_do_not_meet():
    assert [kind("code", length).verdict for length in (2.5, 2.05, 1.5)] == ["pays", "unclear", "loses"]
    assert kind("code", 3.0).speedup.est == pytest.approx(1.5)
    # an exact break-even would call this one shown to pay
    assert Stratum("class", "code", "c4", 10, Estimate(2.05, 2.03, 2.07), Estimate.exactly(2.0)).verdict == "pays"


@pytest.mark.parametrize(
    ("length", "verdict"),
    [(1.5, "speculation does not pay"), (2.5, "speculation pays"), (2.05, "whether speculation pays is not known")],
)
def test_the_worst_of_each_sort_is_named_with_what_it_means(length, verdict):
    found = [
        kind("code", 3.0),
        kind("chat", length),
        kind("64-127", 2.6, of="context"),
        kind("128-255", 2.4, of="context"),
    ]
    words = worst_in_words(found)
    assert words[0].startswith(f"chat prompts gain least: accept length {length:.2f} (")
    assert words[0].endswith(f"against a break-even of 2.00 (1.90–2.10): {verdict} there")
    assert words[1].startswith("contexts of 128-255 tokens gain least")


def test_kinds_whose_intervals_meet_are_not_told_apart():
    alike = worst_in_words([kind("code", 2.53), kind("chat", 2.5), kind("prose", 2.51)])
    assert alike[0].startswith(
        "the classes of prompts are not told apart by what they gain; lowest are chat prompts: accept length 2.50 ("
    )
    some = worst_in_words([kind("code", 3.0), kind("chat", 2.5), kind("prose", 2.51)])
    assert some[0].startswith(
        "chat prompts and prose prompts gain least and are not told apart; lowest are chat prompts: accept length 2.50"
    )
    unknown = Stratum("context", "64-127", "c4", 10, Estimate(2.0, -math.inf, math.inf), EVEN)
    assert "the lengths of context are not told apart" in worst_in_words([unknown, kind("0-63", 9.0, of="context")])[0]


def test_chance_in_few_requests_is_not_called_the_worst():
    found = [kind("code", 3.0), kind("chat", 2.5), kind("poem", 1.01, requests=2)]
    assert [one.name for one in least(found, "class")] == ["chat"]
    assert least(found[1:], "class") == []
    assert least(found, "context") == []
