"""Causes, their price and what to do, from what is known of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.analysis.diagnosis import Cost, Diagnosis, Load, Running, diagnose, loads_of
from spectune.errors import InputProblems


@dataclass(frozen=True)
class Sample:
    running: int = 1
    accept_length: float | None = 2.0
    tok_s: float = 60.0
    in_graph: bool | None = True
    first: bool = False
    pure: bool = True


def load(
    running: int | None = 1, length: float | None = 2.0, speed: float | None = 60.0, graph: float | None = 1.0
) -> Load:
    return Load(running, 20, length, speed, graph)


def field_case(**changes: Any) -> Running:
    """The team's server: 2 steps of a 37 K drafter, 60 tok/s at accept length 2.0."""
    known = {
        "algorithm": "EAGLE3", "num_steps": 2, "eagle_topk": 1, "num_draft_tokens": 3, "captured": 48,
        "max_running": 48, "loads": (load(),),
    }  # fmt: skip
    return Running(**{**known, **changes})


def names(found: Diagnosis) -> list[str]:
    return [cause.name for cause in found.causes]


def test_the_field_case_60_tok_s_at_accept_length_2() -> None:
    """FIELD_CASE.md, 5: 82 tok/s baseline, 60 measured at τ = 2.0: a cycle of 33.3 ms, 27 % slower."""
    found = diagnose(field_case(), baseline_tok_s=82.0)
    assert found.load is not None
    assert found.load.cycle_ms == pytest.approx(33.33, abs=0.01)
    assert found.break_even is not None
    assert found.break_even.break_even == pytest.approx(2.73, abs=0.01)
    assert found.break_even.change == pytest.approx(-0.268, abs=0.001)
    assert any("27% slower" in sentence for sentence in found.words)
    (cause,) = found.causes
    assert cause.name == "weak_drafter"
    assert cause.lost_tok_s == pytest.approx(22.0)
    assert [action.cost for action in found.actions] == [Cost.FLAG, Cost.DRAFTER, Cost.TRAINING]
    assert "of 3 possible" in found.actions[1].words


def test_the_field_case_30_ms_verify_leaves_3_3_ms_unexplained() -> None:
    """FIELD_CASE.md, 5: at τ = 2.0 a 30 ms cycle gives 66.7 tok/s; 60 means 3.3 ms of draft and host time."""
    found = diagnose(field_case(), baseline_tok_s=82.0, verify_ms=30.0)
    cause = next(cause for cause in found.causes if cause.name == "draft_and_host_time")
    assert cause.lost_tok_s == pytest.approx(6.67, abs=0.01)
    assert "3.3 ms" in cause.evidence


def test_a_cycle_of_30_ms_breaks_even_at_2_46() -> None:
    found = diagnose(field_case(loads=(load(length=2.4, speed=80.0),)), baseline_tok_s=82.0)
    assert found.break_even is not None
    assert found.break_even.break_even == pytest.approx(2.46)


def test_the_field_case_graphs_off_comes_before_the_drafter() -> None:
    """FIELD_CASE.md, 2: 56.7 tok/s at 16 draft tokens without graphs: steps, graphs and drafter, in order of loss."""
    server = field_case(
        num_steps=15, num_draft_tokens=16, graphs_off=True, captured=0, loads=(load(1, 2.25, 56.7, 0.0),)
    )
    found = diagnose(server, baseline_tok_s=90.0)
    assert names(found) == ["graphs_off", "weak_drafter", "too_many_steps"]
    graphs, _, steps = found.causes
    assert graphs.at_most
    assert graphs.lost_tok_s == pytest.approx(90 * 2.25 - 56.7)
    assert steps.lost_tok_s is None
    assert "--speculative-num-steps 3 --speculative-num-draft-tokens 4" in steps.actions[0].words


def test_without_a_baseline_the_arithmetic_says_what_it_would_take() -> None:
    found = diagnose(field_case())
    assert found.break_even is None
    assert found.causes == ()
    assert "less than 60.0 tok/s" in found.words[0]
    assert "× 33.33 ms" in found.words[0]
    assert "--baseline" in found.words[1]


def test_no_drafter_makes_two_steps_pay_at_a_long_cycle() -> None:
    found = diagnose(field_case(loads=(load(speed=40.0),)), baseline_tok_s=82.0)
    (cause,) = found.causes
    assert "no drafter makes it pay" in cause.evidence
    assert Cost.TRAINING not in [action.cost for action in cause.actions]


CHAIN = "--speculative-num-steps"


@pytest.mark.parametrize(
    ("steps", "length", "baseline", "verify_ms", "advised"),
    [
        (5, 1.9, 82.0, None, 3),  # the last positions accept next to nothing
        (5, 1.9, 82.0, 30.0, 3),  # whatever a step costs
        (2, 2.8, 82.0, None, 3),  # nearly all is accepted, and 3 at most do not pay
        (2, 2.0, 82.0, None, None),  # neither
        (3, 3.6, 200.0, 45.0, 4),  # drafting is cheap
        (3, 3.6, 200.0, 10.0, None),  # it may be dear, or the host slow
        (1, 1.3, 82.0, 10.0, None),
    ],
)
def test_steps_are_advised_in_one_direction(
    steps: int, length: float, baseline: float, verify_ms: float | None, advised: int | None
) -> None:
    """At a cycle of 50 ms, whichever causes are found."""
    server = field_case(num_steps=steps, num_draft_tokens=steps + 1, loads=(load(length=length, speed=20 * length),))
    found = diagnose(server, baseline_tok_s=baseline, verify_ms=verify_ms)
    told = {action.words.partition(" instead;")[0] for action in found.actions if "steps" in action.words}
    wanted = {f"launch with {CHAIN} {advised} --speculative-num-draft-tokens {advised + 1}"} if advised else set()
    assert told == wanted
    assert ("too_many_steps" in names(found)) == (advised is not None and advised < steps)


def test_no_step_is_added_where_memory_is_short() -> None:
    server = field_case(max_running=8, asked_running=48, loads=(load(length=2.8, speed=56.0),))
    found = diagnose(server, baseline_tok_s=82.0)
    assert "fewer_than_asked" in names(found)
    assert not any(CHAIN in action.words for action in found.actions)


def test_where_no_drafter_can_pay_it_is_said_how_short_the_cycle_would_have_to_be() -> None:
    found = diagnose(field_case(loads=(load(speed=40.0),)), baseline_tok_s=82.0)
    (shorter,) = (one.words for one in found.actions if "shorten" in one.words)
    assert shorter.startswith("shorten the cycle to less than 36.6 ms, for it to pay at all: ")


def test_of_two_launches_to_try_the_second_says_when_it_beats_the_baseline() -> None:
    weak = load(length=1.9, speed=38.0)
    (fewer,) = (
        one.words
        for one in diagnose(field_case(num_steps=5, num_draft_tokens=6, loads=(weak,)), baseline_tok_s=82.0).actions
        if CHAIN in one.words
    )
    assert " instead; that is faster than the baseline if a cycle then takes less than " in fewer
    assert fewer.endswith(" ms (50.0 ms now)")


@pytest.mark.parametrize(("off", "graphs", "advised"), [(True, True, True), (True, False, False), (False, True, False)])
def test_overlap_is_advised_where_it_is_off_and_there_is_any(off: bool, graphs: bool, advised: bool) -> None:
    server = field_case(overlap_off=off, graphs_possible=graphs)
    words = [action.words for action in diagnose(server, verify_ms=20.0).actions]
    assert ("launch without --disable-overlap-schedule" in words) == advised


@pytest.mark.parametrize(("newest", "words"), [(True, None), (False, "a newer SGLang"), (None, "if this one is older")])
def test_no_newer_version_is_advised_on_the_newest(newest: bool | None, words: str | None) -> None:
    found = diagnose(field_case(loads=(load(graph=0.0),), newest=newest))
    restarts = [action.words for action in found.actions if action.cost is Cost.RESTART]
    assert len(restarts) == (words is not None)
    assert all(str(words) in one for one in restarts)


def test_nothing_accepted_names_the_causes_in_order() -> None:
    """sglang#21272: an EAGLE-3 drafter under EAGLE: accept length exactly 1.0, slower than no speculation."""
    unknown = diagnose(field_case(algorithm="EAGLE", loads=(load(length=1.0, speed=50.0),)), baseline_tok_s=82.0)
    assert names(unknown) == ["wrong_algorithm", "zero_drafter", "foreign_drafter"]
    assert {cause.lost_tok_s for cause in unknown.causes} == {32.0}
    known = field_case(
        algorithm="EAGLE", draft_architecture="LlamaForCausalLMEagle3", loads=(load(length=1.0, speed=50.0),)
    )
    (cause,) = diagnose(known, baseline_tok_s=82.0).causes
    assert cause.name == "wrong_algorithm"
    assert cause.actions[0].words == "launch with --speculative-algorithm EAGLE3"
    right = field_case(draft_architecture="LlamaForCausalLMEagle3", loads=(load(length=1.02, speed=50.0),))
    assert names(diagnose(right)) == ["zero_drafter", "foreign_drafter"]
    ngram = Running(algorithm="NGRAM", num_draft_tokens=12, loads=(load(length=1.0),))
    assert names(diagnose(ngram)) == ["nothing_to_copy"]


def test_the_wrong_algorithm_is_seen_before_a_token_was_decoded() -> None:
    server = field_case(algorithm="NEXTN", draft_architecture="LlamaForCausalLMEagle3", loads=())
    assert names(diagnose(server)) == ["wrong_algorithm"]


def test_eager_steps_at_other_loads_are_said_without_a_price() -> None:
    """fastrl#4: graphs at small batches only."""
    server = field_case(captured=8, loads=(load(8), load(48, graph=0.0)))
    (cause,) = diagnose(server, concurrency=8).causes
    assert (cause.name, cause.lost_tok_s) == ("graphs_too_small", None)
    assert "at batch size 48 (in graphs at 8)" in cause.evidence
    assert "--cuda-graph-max-bs-decode 48" in cause.actions[0].words


def test_eager_without_a_known_reason_and_without_graphs_at_all() -> None:
    """FIELD_CASE.md, 4: in that version the verify ran without graphs although they were captured."""
    assert names(diagnose(field_case(loads=(load(graph=0.0),)))) == ["eager"]
    assert names(diagnose(field_case(loads=(load(graph=0.0),), graphs_possible=False))) == []


def test_a_tree_is_named_with_its_batch() -> None:
    """EAGLE#298, EAGLE#269: a tree of 32 tokens times the batch."""
    server = field_case(num_steps=6, eagle_topk=10, num_draft_tokens=32, loads=(load(20, 3.0),))
    (cause,) = diagnose(server).causes
    assert cause.name == "tree_in_a_batch"
    assert "verifies 640 tokens" in cause.evidence
    alone = field_case(num_steps=6, eagle_topk=10, num_draft_tokens=32, loads=(load(1, 3.0),))
    assert names(diagnose(alone)) == ["tree_too_large"]
    assert names(diagnose(field_case(num_steps=3, eagle_topk=2, num_draft_tokens=6, loads=(load(1, 3.0),)))) == []


def test_the_judged_load_is_the_nearest_to_the_baselines() -> None:
    server = field_case(loads=(Load(4, 100, 2.0, 50.0, 1.0), Load(32, 400, 2.0, 20.0, 1.0)))
    near = diagnose(server, baseline_tok_s=82.0)
    assert near.load is not None
    assert near.load.running == 4
    assert "nothing was seen at 1 running request; judged at 4" in near.notes[0]
    often = diagnose(server)
    assert often.load is not None
    assert often.load.running == 32
    assert often.notes == ()


@pytest.mark.parametrize("figure", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_baseline_that_cannot_be_is_refused(figure: float) -> None:
    for server in (field_case(), Running()):
        with pytest.raises(InputProblems, match="baseline"):
            diagnose(server, baseline_tok_s=figure)


def test_loads_leave_the_first_interval_out_and_prefer_pure_ones() -> None:
    """sglang#5502, #11948: a first log line of 0.39 tok/s."""
    samples = [Sample(tok_s=0.39, first=True)] + [Sample(tok_s=speed) for speed in (160.0, 170.0, 165.0)]
    samples += [Sample(tok_s=40.0, pure=False)] * 5
    (one,) = loads_of(samples)
    assert one.intervals == 8
    assert one.decode_speed == 165.0
    assert one.pure
    speculating = [Sample(tok_s=length / 0.02, accept_length=length) for length in (1.5, 2.0, 4.0)]
    (told,) = loads_of([*speculating, Sample(tok_s=40.0, accept_length=3.9, pure=False)])
    assert told.accept_length == 2.5, "of the lines that the speed is of"
    assert told.cycle_ms == pytest.approx(20.0), "which every such line shows"
    (mixed,) = loads_of([Sample(tok_s=100.0, pure=False)] * 4 + [Sample(tok_s=160.0)] * 2)
    assert not mixed.pure
    assert loads_of([Sample(first=True, accept_length=None), Sample(running=0)]) == ()


def test_a_baseline_of_one_request_says_nothing_of_eight() -> None:
    server = field_case(loads=(Load(8, 100, 2.0, 20.0, 1.0),))
    alone = diagnose(server, baseline_tok_s=82.0)
    assert alone.break_even is None
    assert alone.words[0].startswith("the baseline of 82 tok/s is that of 1 running request, and nothing like it was")
    assert "--concurrency 8" in alone.words[0]
    assert [cause.lost_tok_s for cause in alone.causes] == [None] * len(alone.causes)
    for near in (7, 8, 10):
        found = diagnose(server, baseline_tok_s=82.0, concurrency=near)
        assert found.break_even is not None
        assert not found.break_even.pays
    assert diagnose(server, baseline_tok_s=82.0, concurrency=12).break_even is None


def test_it_is_said_for_how_many_requests_a_baseline_is_taken() -> None:
    server = field_case(loads=(Load(1, 100, 2.0, 60.0, 1.0),))
    said = "taken as that of one request; one measured with N requests at once wants --concurrency N"
    assert any(said in note for note in diagnose(server, baseline_tok_s=82.0).notes)
    assert not any(said in note for note in diagnose(server, baseline_tok_s=82.0, concurrency=1).notes)
    assert not any(said in note for note in diagnose(server).notes)


def test_an_accept_length_of_one_is_not_said_to_pay_under_any_baseline() -> None:
    words = " ".join(diagnose(field_case(loads=(Load(1, 100, 1.02, 40.0, 1.0),))).words)
    assert words.startswith("speculation cannot pay at an accept length of 1.02")
    assert "pays if" not in words


def test_a_load_with_a_speed_is_judged_before_a_nearer_one_without() -> None:
    server = field_case(loads=(Load(1, 0, 2.0, None, None), Load(4, 100, 2.0, 50.0, 1.0)))
    judged = server.load_at(1)
    assert judged is not None
    assert judged.running == 4


def test_graphs_that_were_not_captured_are_told_without_a_decode_line() -> None:
    names = [cause.name for cause in diagnose(field_case(captured=0, loads=())).causes]
    assert names == ["eager"]
    off = diagnose(field_case(captured=0, graphs_off=True, loads=()))
    assert [cause.name for cause in off.causes] == ["graphs_off"]
    assert "--disable-cuda-graph" in off.actions[0].words
    assert diagnose(field_case(captured=0, graphs_possible=False, loads=())).causes == ()


@pytest.mark.parametrize(
    ("known", "advised"),
    [
        ({}, "with --attention-backend triton"),
        ({"backends": {"attention_backend": "fa3"}}, "with --attention-backend triton"),
        (
            {"backends": {"attention_backend": "triton", "decode_attention_backend": "fa3"}, "padded": False},
            "without --decode-attention-backend, without --disable-cuda-graph-padding",
        ),
        ({"backends": {"attention_backend": "triton", "prefill_attention_backend": "triton"}}, None),
        ({"backends": {"attention_backend": "fa3"}, "simulated": True}, None),
    ],
)
def test_steps_outside_graphs_are_blamed_on_arguments_that_the_launch_has(
    known: dict[str, Any], advised: str | None
) -> None:
    eager = next(c for c in diagnose(field_case(loads=(load(graph=0.0),), **known)).causes if c.name == "eager")
    flags = [action.words.partition(":")[0] for action in eager.actions if action.cost is Cost.FLAG]
    assert flags == ([] if advised is None else [f"launch {advised}"])
    assert bool(eager.actions) is not known.get("simulated", False)


def test_a_first_interval_gives_its_accept_length_and_never_its_speed() -> None:
    (alone,) = loads_of([Sample(tok_s=0.39, accept_length=1.04, in_graph=False, first=True)])
    assert (alone.intervals, alone.decode_speed, alone.cycle_ms) == (0, None, None)
    assert (alone.accept_length, alone.in_graph) == (1.04, 0.0)
    (both,) = loads_of([Sample(tok_s=0.39, accept_length=1.0, first=True), Sample(tok_s=60.0, accept_length=3.0)])
    assert (both.intervals, both.decode_speed, both.accept_length) == (1, 60.0, 3.0)


def test_cycle_and_acceptance_are_told_apart() -> None:
    """sglang#15307: the same accept length of 2.960, 129.26 against 113.59 tok/s: the cycle did it, not the drafter."""
    cycles = [loads_of([Sample(accept_length=2.96, tok_s=speed)] * 3)[0].cycle_ms for speed in (129.26, 113.59)]
    assert cycles == [pytest.approx(22.9, abs=0.05), pytest.approx(26.1, abs=0.05)]


LOADS = st.builds(
    Load,
    running=st.none() | st.integers(1, 256),
    intervals=st.integers(1, 1000),
    accept_length=st.none() | st.floats(1.0, 17.0),
    decode_speed=st.none() | st.floats(0.5, 5000.0),
    in_graph=st.none() | st.floats(0.0, 1.0),
)
SERVERS = st.builds(
    Running,
    algorithm=st.sampled_from([None, "EAGLE", "EAGLE3", "NGRAM", "STANDALONE", "DFLASH", "unnamed"]),
    num_steps=st.none() | st.integers(0, 16),
    eagle_topk=st.none() | st.integers(1, 10),
    num_draft_tokens=st.none() | st.integers(1, 64),
    draft_architecture=st.none() | st.sampled_from(["LlamaForCausalLMEagle3", "DeepseekV3ForCausalLMNextN"]),
    graphs_off=st.booleans(),
    captured=st.none() | st.integers(0, 256),
    max_running=st.none() | st.integers(1, 256),
    asked_running=st.none() | st.integers(1, 256),
    peak_usage=st.none() | st.floats(0.0, 1.0),
    most_running=st.integers(0, 256),
    most_queued=st.integers(0, 1000),
    retractions=st.integers(0, 9),
    cached_share=st.none() | st.floats(0.0, 1.0),
    prompt_tokens=st.integers(0, 10**6),
    first_tok_s=st.none() | st.floats(0.0, 5000.0),
    loads=st.lists(LOADS, max_size=3).map(tuple),
)


@given(SERVERS, st.none() | st.floats(1.0, 1000.0), st.none() | st.integers(1, 99), st.none() | st.floats(1.0, 99.0))
def test_whatever_is_known_is_judged_in_order(
    server: Running, baseline: float | None, concurrency: int | None, verify_ms: float | None
) -> None:
    found = diagnose(server, baseline_tok_s=baseline, concurrency=concurrency, verify_ms=verify_ms)
    assert len({action.words for action in found.actions if CHAIN in action.words}) <= 1
    prices = [-1.0 if cause.lost_tok_s is None else cause.lost_tok_s for cause in found.causes]
    assert prices == sorted(prices, reverse=True)
    assert all(price == -1.0 or price > 0.0 for price in prices)
    assert [action.cost.rank for action in found.actions] == sorted(action.cost.rank for action in found.actions)
    assert {action for cause in found.causes for action in cause.actions} == set(found.actions)
    assert found.words
    assert len(names(found)) == len(set(names(found)))
