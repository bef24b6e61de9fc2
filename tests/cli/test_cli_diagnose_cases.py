"""Field cases that a log shows: each ends in its cause and its advice."""

from __future__ import annotations

import io
from typing import Any

import pytest
import sglang_log_lines as sg
from readme_commands import ROOT

from spectune.analysis.diagnosis import Diagnosis, diagnose
from spectune.cli.known_server import known_from_answers, known_from_log
from spectune.engines.sglang.server_answers import ServerAnswers, parse_metrics
from spectune.engines.sglang.server_log.reader import starts

LOGS = ROOT / "tests/engines/sglang/logs"
SLOW = 0.39
"""What a first interval claims (sglang#11948)."""


def diagnosed(log: str, baseline: float | None = None, concurrency: int | None = None) -> Diagnosis:
    facts = list(starts(io.BytesIO(log.encode())))[-1]
    return diagnose(known_from_log(facts), baseline_tok_s=baseline, concurrency=concurrency)


def steady(speed: float, **line: Any) -> tuple[str, ...]:
    return (sg.prefill(), sg.decode(SLOW, **line), *(sg.decode(speed, **line) for _ in range(4)))


def only(found: Diagnosis) -> tuple[str, str]:
    (cause,) = found.causes
    return cause.name, " ".join(action.words for action in cause.actions)


def test_eagle3_drafter_under_eagle() -> None:
    """sglang#21272: Kimi-K2.5 with an EAGLE-3 drafter under EAGLE: accept length exactly 1.00, no error."""
    log = sg.server(*steady(50.0, accept=1.0), captured=[1, 2, 4, 8], **sg.speculation("EAGLE"))
    assert only(diagnosed(log, 82.0)) == ("wrong_algorithm", "launch with --speculative-algorithm EAGLE3")


def test_eagle3_drafter_under_eagle_on_the_real_engine() -> None:
    """sglang#21272 as SGLang 0.5.23 logs it: no error, an accept length of 1.03."""
    found = diagnosed((LOGS / "sglang-0.5.23-cpu-wrong-algorithm.log").read_text(), 400.0)
    assert found.load is not None
    assert found.load.accept_length == pytest.approx(1.03, abs=0.02)
    assert only(found) == ("wrong_algorithm", "launch with --speculative-algorithm EAGLE3")


@pytest.mark.parametrize(
    ("known", "newest"),
    [
        ({"enable_return_aux_hidden_states": False}, True),
        ({"cuda_graph_max_bs": 160}, False),
        ({}, None),  # a log that was cut may be of any version
    ],
)
def test_the_version_is_known_by_arguments_that_only_some_have(known: dict[str, Any], newest: bool | None) -> None:
    log = sg.server(*steady(60.0, accept=2.0, graph=False), captured=[1, 8], **known, **sg.speculation())
    facts = list(starts(io.BytesIO(log.encode())))[-1]
    assert known_from_log(facts).newest is newest
    advised = [action.words for action in diagnosed(log).actions if "restart with" in action.words]
    assert len(advised) == (newest is not True)


@pytest.mark.parametrize("log", ["sglang-0.5.23-cpu-eagle3.log", "sglang-0.5.23-cpu-wrong-algorithm.log"])
def test_a_log_of_the_newest_version_is_known_as_one(log: str) -> None:
    facts = list(starts(io.BytesIO((LOGS / log).read_bytes())))[-1]
    assert known_from_log(facts).newest is True


@pytest.mark.parametrize(
    ("version", "newest"), [("0.5.23", True), ("0.5.23.post1", True), ("0.5.9", False), (None, None)]
)
def test_a_server_tells_its_version(version: str | None, newest: bool | None) -> None:
    assert known_from_answers(ServerAnswers({"version": version}), None).newest is newest


def test_graphs_captured_to_two_requests_of_twenty() -> None:
    """sglang#5274: --cuda-graph-max-bs 2 and 20 parallel requests; an older version's flag is named."""
    log = sg.server(
        *steady(400.0, running=20, accept=2.5, graph=False), captured=[1, 2], cuda_graph_max_bs=2, **sg.speculation()
    )
    name, advice = only(diagnosed(log))
    assert name == "graphs_too_small"
    assert "--cuda-graph-max-bs 20" in advice


def test_a_tree_of_32_and_no_graphs_at_20_requests() -> None:
    """EAGLE#298: Qwen3-8B, 6 steps, 10 branches, 32 tokens, --cuda-graph-max-bs 2, parallel > 1."""
    log = sg.server(
        *steady(300.0, running=20, accept=3.0, graph=False), captured=[1, 2], **sg.speculation("EAGLE3", 6, 10, 32)
    )
    found = diagnosed(log, 30.0, 20)
    assert [cause.name for cause in found.causes] == ["graphs_too_small", "weak_drafter", "tree_in_a_batch"]
    assert any("--speculative-eagle-topk 1" in action.words for action in found.actions)


def test_the_first_log_line_is_not_the_speed() -> None:
    """sglang#5502, sglang#11948: 0.39 tok/s in the first line, 165 in the next; accept length 1.57."""
    found = diagnosed(sg.server(*steady(165.0, accept=1.57), captured=[1], **sg.speculation()))
    assert found.load is not None
    assert found.load.decode_speed == pytest.approx(165.0)
    assert found.load.accept_length == pytest.approx(1.57)
    assert any("first interval (0.39 tok/s)" in note for note in found.notes)
    alone = diagnosed(sg.server(sg.prefill(), sg.decode(SLOW, accept=1.57), captured=[48], **sg.speculation()))
    assert alone.load is not None
    assert (alone.load.accept_length, alone.load.decode_speed, alone.measured) == (1.57, None, False)
    assert [cause.name for cause in alone.causes] == ["too_many_steps", "only_the_first_interval"]


def test_the_first_log_line_is_enough_for_the_wrong_algorithm() -> None:
    """sglang#21272 in a log of 40 decode steps: its only interval tells the accept length, not the speed."""
    log = sg.server(sg.prefill(), sg.decode(50.55, accept=1.04), captured=[48], **sg.speculation("EAGLE"))
    found = diagnosed(log, 82.0)
    assert [cause.name for cause in found.causes] == ["wrong_algorithm", "only_the_first_interval"]
    assert "accept length 1.04" in found.causes[0].evidence
    assert found.words[0].startswith("speculation cannot pay at an accept length of 1.04")
    assert found.actions[-1].words == "launch with --speculative-algorithm EAGLE3"


def test_a_thousand_requests_at_a_server_that_runs_48() -> None:
    """GPUStack's DeepSeek MTP figures: TTFT up, TPOT down at 1000 requests; SGLang had lowered the limit to 48."""
    lowered = "Max running requests is reset to 48 for speculative decoding."
    log = sg.line(lowered) + sg.server(
        sg.prefill(queued=952),
        *steady(1060.0, running=48, accept=1.8, queued=952),
        captured=[1, 48],
        **sg.speculation("EAGLE", 1, 1, 2),
        draft="DeepseekV3ForCausalLMNextN",
    )
    found = diagnosed(log)
    name, advice = only(found)
    assert name == "queueing"
    assert "--max-running-requests 1000" in advice
    assert "reset to 48" in found.causes[0].evidence


def test_a_queue_behind_a_full_kv_cache_is_about_memory() -> None:
    full = sg.line("KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 900")
    log = sg.server(*steady(900.0, running=48, accept=2.0, queued=9, usage=0.98), full, captured=[48])
    name, advice = only(diagnosed(log))
    assert name == "memory_full"
    assert "--mem-fraction-static" in advice


def test_fewer_requests_may_run_than_were_asked_for() -> None:
    """vllm#55533: speculation shrinks what a hybrid model can schedule: 256 asked for, 3 run."""
    log = sg.server(
        *steady(90.0, running=3, accept=1.9), running=3, kv_tokens=9000, captured=[1, 2, 3],
        max_running_requests=256, **sg.speculation("NEXTN", 1, 1, 2), draft="Qwen3NextForCausalLMMTP",
    )  # fmt: skip
    name, advice = only(diagnosed(log))
    assert name == "fewer_than_asked"
    assert "without speculation" in advice


def test_attention_data_parallel_ranks_share_the_running_requests() -> None:
    log = sg.server(*steady(90.0, accept=1.9), running=6, captured=[6], max_running_requests=48, attn_dp_size=8,
                    **sg.speculation())  # fmt: skip
    assert diagnosed(log).causes == ()


def test_a_second_run_that_hits_the_prefix_cache() -> None:
    """sglang#39651, sglang#40014: 20701 against 313 prompt tok/s, because the prompts were known."""
    log = sg.server(*(sg.prefill(new=1, cached=499) for _ in range(9)), *steady(60.0, accept=2.0), captured=[1])
    name, advice = only(diagnosed(log))
    assert name == "warm_cache"
    assert "/flush_cache" in advice


def test_plain_decoding_without_graphs_above_a_threshold() -> None:
    """fastrl#4: speculation is turned off above a batch size, and the plain steps there have no graph."""
    log = sg.server(
        *steady(900.0, running=8, accept=2.5),
        *(sg.decode(5452.0, running=48, accept=1.0, graph=False) for _ in range(3)),
        captured=[8],
    )
    name, advice = only(diagnosed(log))
    assert name == "graphs_too_small"
    assert "48 or more" in advice


def test_the_same_acceptance_at_two_speeds_is_two_cycles() -> None:
    """sglang#15307: accept length 2.960 with both, 129.26 and 113.59 tok/s: 22.9 and 26.1 ms."""
    found = [diagnosed(sg.server(*steady(speed, accept=2.96), captured=[1])) for speed in (129.26, 113.59)]
    cycles = [one.load.cycle_ms for one in found if one.load is not None]
    assert cycles == [pytest.approx(22.9, abs=0.05), pytest.approx(26.1, abs=0.05)]


def test_the_accept_rate_of_an_old_engine_is_not_looked_at() -> None:
    """Up to about 0.5.10 the rate is τ/N: 0.16 at 16 draft tokens is an accept length of 2.56."""
    text = (
        "Decode batch, #running-req: 1, #token: 99, token usage: 0.00, accept len: 2.56, accept rate: 0.16, "
        "cuda graph: True, gen throughput (token/s): 70.00, #queue-req: 0, "
    )
    found = diagnosed(sg.server(*[sg.line(text)] * 5, captured=[1], **sg.speculation("EAGLE3", 15, 1, 16)))
    assert found.load is not None
    assert found.load.accept_length == pytest.approx(2.56)
    assert only(found)[0] == "too_many_steps"


def test_graphs_turned_off_by_a_flag() -> None:
    log = sg.server(*steady(60.0, accept=2.0, graph=False), disable_cuda_graph=True, **sg.speculation())
    name, advice = only(diagnosed(log))
    assert name == "graphs_off"
    assert "--disable-cuda-graph" in advice


def test_a_healthy_server_has_no_causes() -> None:
    log = sg.server(*steady(150.0, accept=3.2), captured=[1, 2, 4, 8], **sg.speculation())
    found = diagnosed(log, 82.0)
    assert found.causes == ()
    assert found.break_even is not None
    assert found.break_even.pays


def test_a_log_that_begins_after_the_arguments() -> None:
    found = diagnosed("".join(steady(60.0, accept=1.4)), 82.0)
    assert [cause.name for cause in found.causes] == ["weak_drafter"]


def test_a_server_that_only_prefills_lacks_no_graphs() -> None:
    """Its target never verifies, and SGLang captures nothing for it."""
    info = {**sg.speculation(), "max_running_requests": 48, "internal_states": [{"decode_cuda_graph_bs": []}]}
    assert diagnose(known_from_answers(ServerAnswers({**info, "disaggregation_mode": "prefill"}), None)).causes == ()
    assert only(diagnose(known_from_answers(ServerAnswers(info), None)))[0] == "eager"


def test_accept_length_of_a_server_is_the_mean_of_the_ranks_that_have_one() -> None:
    """sglang#34743: [null, null, 2.90, 3.67, null, 4.64]: the first rank alone says nothing."""
    states = [{"avg_spec_accept_length": told} for told in (None, None, 2.90, 3.67, None, 4.64)]
    answers = ServerAnswers({**sg.speculation("EAGLE3", 5), "internal_states": states})
    found = diagnose(known_from_answers(answers, None))
    assert found.load is not None
    assert found.load.accept_length == pytest.approx((2.90 + 3.67 + 4.64) / 3)
    assert any("no accept length: 3" in note for note in found.notes)


def test_a_servers_graphs_that_end_below_its_running_requests() -> None:
    """sglang#5274, told by a server instead of its log."""
    state = {"decode_cuda_graph_bs": [1, 2], "effective_max_running_requests_per_dp": 48}
    answers = ServerAnswers({**sg.speculation(), "max_running_requests": 48, "internal_states": [state]})
    assert only(diagnose(known_from_answers(answers, None)))[0] == "graphs_too_small"


def test_a_servers_load_of_this_moment_shares_its_last_throughput() -> None:
    state = {"avg_spec_accept_length": 2.0, "last_gen_throughput": 240.0, "decode_cuda_graph_bs": [8]}
    text = 'sglang:is_cuda_graph{tp_rank="0"} 1.0\nsglang:is_cuda_graph{tp_rank="1"} NaN\n# TYPE x\nother 1\n'
    answers = ServerAnswers(
        {**sg.speculation(), "internal_states": [state]},
        loads=({"num_running_reqs": 4, "num_waiting_reqs": 0, "token_usage": 0.2},),
        metrics=parse_metrics(text),
    )
    found = diagnose(known_from_answers(answers, None))
    assert found.load is not None
    assert (found.load.running, found.load.decode_speed, found.load.in_graph) == (4, 60.0, 1.0)


def test_32_steps_lose_where_one_wins() -> None:
    """vllm#24343: 32 steps give 48.3 tok/s at an accept length of 2.18, one step 108.5 at 1.63; without, 82."""
    many = sg.server(*steady(48.3, accept=2.18), captured=[1], **sg.speculation("EAGLE", 32, 1, 33))
    found = diagnosed(many, 82.0)
    assert [cause.name for cause in found.causes] == ["weak_drafter", "too_many_steps"]
    assert any("--speculative-num-steps 3" in action.words for action in found.actions)
    one = diagnosed(sg.server(*steady(108.5, accept=1.63), captured=[1], **sg.speculation("EAGLE", 1, 1, 2)), 82.0)
    assert one.break_even is not None
    assert one.break_even.pays
    assert "too_many_steps" not in [cause.name for cause in one.causes]


def test_a_log_that_is_cut_within_its_arguments_claims_nothing() -> None:
    whole = (LOGS / "sglang-0.5.23-cpu-wrong-algorithm.log").read_text()
    begin = whole.index("server_args=")
    cut = known_from_log(list(starts(io.BytesIO(whole[: begin + 700].encode())))[-1])
    assert not cut.speculation_known
    assert known_from_log(list(starts(io.BytesIO(whole.encode())))[-1]).speculation_known
