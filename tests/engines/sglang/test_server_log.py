"""What is read from logs: real ones, formats of older versions, and anything else somebody may hand in."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
import sglang_log_lines as sg
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.engines.sglang.server_log import ServerFacts, read_server_log, read_server_logs
from spectune.engines.sglang.server_log.arguments import parse_server_args
from spectune.engines.sglang.server_log.batches import MOST_INTERVALS, MOST_RANKS
from spectune.engines.sglang.server_log.lines import LONGEST_LINE
from spectune.engines.sglang.server_log.reader import MOST_STARTS, starts
from spectune.errors import SpectuneError

REAL = Path(__file__).parent / "logs/sglang-0.5.23-cpu-eagle3.log"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def read(text: str | bytes) -> ServerFacts:
    return list(starts(io.BytesIO(text.encode() if isinstance(text, str) else text)))[-1]


def every_start(text: str) -> list[ServerFacts]:
    return list(starts(io.BytesIO(text.encode())))


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "server.log"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_real_log_of_the_cpu() -> None:
    facts = read_server_log(REAL)
    assert len(facts.arguments) == 546
    assert facts.arguments["speculative_num_draft_tokens"] == 4
    assert facts.arguments["cuda_graph_config"]["decode"]["max_bs"] == 32
    assert [one.architecture for one in facts.weights] == ["LlamaForCausalLM", "LlamaForCausalLMEagle3"]
    assert facts.weights[0].seconds == 0.01
    assert (facts.kv_tokens, facts.max_running_requests, facts.context_length) == (16384, 16, 2048)
    assert facts.ready
    assert facts.captures == {}
    assert facts.errors == ()
    assert facts.decode_lines == 8
    first, second, *_ = facts.decode
    assert (first.first, first.accept_length, first.tok_s) == (True, 1.75, 46.42)
    assert (second.first, second.pure, second.in_graph) == (False, False, None)  # "cpu graph" is no CUDA graph
    assert [one.pure for one in facts.decode] == [False, False, True, False, True, False, False, True]
    assert any("prefill CUDA graph" in sentence for sentence in facts.rewritten)


def test_captures_of_0_5_23_with_eight_ranks() -> None:
    ranks = [f"TP{number}" for number in range(8)]
    log = sg.arguments(**sg.speculation()) + "".join(sg.weights("DeepseekV3ForCausalLM", rank=rank) for rank in ranks)
    log += "".join(sg.weights("LlamaForCausalLMEagle3", rank=rank) for rank in ranks)
    for what in ("target verify", "draft decode", "draft extend", "target prefill"):
        log += "".join(sg.capture(what, [1, 2, 4, 48], rank=rank) for rank in ranks)
    log += "".join(sg.limits(400_000 + number, rank=rank) for number, rank in enumerate(ranks))
    facts = read(log)
    assert [one.architecture for one in facts.weights] == ["DeepseekV3ForCausalLM", "LlamaForCausalLMEagle3"]
    assert facts.weights[0].memory_gb == 70.2
    assert set(facts.captures) == {"verify", "draft", "draft_extend", "prefill"}
    verify = facts.captures["verify"]
    assert (verify.kind, verify.batches, verify.tokens_per_request) == ("verify", (1, 2, 4, 48), 4)
    assert (verify.seconds, verify.memory_gb, verify.finished) == (12.11, 1.2, True)
    assert facts.kv_tokens == 400_000


def test_captures_of_0_5_6_are_a_verify_when_it_speculates() -> None:
    log = sg.arguments(dict_form=False, **sg.speculation())
    log += sg.line("Load weight begin. avail mem=78.00 GB", stamp="2026-11-29 18:00:00")
    end = "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=62.00 GB, mem usage=15.00 GB."
    log += sg.line(end, stamp="2026-11-29 18:00:31")
    log += sg.line("Capture cuda graph begin. This can take up to several minutes. avail mem=8.00 GB")
    log += sg.line("Capture cuda graph bs [1, 2, 4, 8]")
    log += sg.line("Capture cuda graph end. Time elapsed: 6.51 s. mem usage=1.10 GB. avail mem=6.90 GB.")
    log += sg.line("Capture draft cuda graph begin. This can take up to several minutes. avail mem=6.90 GB")
    log += sg.line("Capture draft cuda graph end. Time elapsed: 3.00 s. mem usage=0.30 GB. avail mem=6.60 GB.")
    facts = read(log)
    assert facts.arguments["speculative_algorithm"] == "EAGLE3"
    assert facts.weights[0].seconds == 31.0
    assert facts.captures["verify"].batches == (1, 2, 4, 8)
    assert facts.captures["verify"].seconds == 6.51
    assert facts.captures["draft"].batches == ()
    assert facts.captures["draft"].finished


def test_a_capture_that_never_ended_is_not_finished() -> None:
    log = sg.arguments(tp_size=1) + sg.line("Capture target decode CUDA graph begin. backend=full, avail mem=1.00 GB")
    log += "Exception: Capture cuda graph failed: CUDA out of memory.\n"
    facts = read(log)
    assert not facts.captures["decode"].finished
    assert "Capture cuda graph failed" in facts.errors[-1]
    assert not facts.ready


def test_decode_lines_of_older_versions() -> None:
    old = sg.line(
        "Decode batch. #running-req: 1, #token: 56, token usage: 0.00, accept len: 1.57, cuda graph: True, "
        "gen throughput (token/s): 165.39, #queue-req: 0, "
    )
    swa = sg.line(
        "Decode batch [77], #running-req: 3, #full token: 12, full token usage: 0.20, #swa token: 4, "
        "swa token usage: 0.10, accept len: 2.00, accept rate: 0.50, cap len: 3.00, cuda graph: False, "
        "gen throughput (token/s): 90.00, #queue-req: 2, est. decode TFLOPS/s (per GPU): 1.00"
    )
    one, two = read(old + swa).decode
    assert (one.accept_length, one.tok_s, one.in_graph) == (1.57, 165.39, True)
    assert (two.running, two.usage, two.accept_length, two.in_graph, two.queued) == (3, 0.2, 2.0, False, 2)


@pytest.mark.parametrize("length", ["-2.00", "0.00", "0.99"])
def test_an_accept_length_below_its_bonus_token_is_none(length: str) -> None:
    log = sg.line(
        f"Decode batch. #running-req: 1, #token: 56, token usage: 0.00, accept len: {length}, cuda graph: True, "
        "gen throughput (token/s): 165.39, #queue-req: 0, "
    )
    assert [(one.accept_length, one.tok_s) for one in read(log).decode] == [(None, 165.39)]


def test_data_parallel_ranks_each_have_a_first_interval() -> None:
    """sglang#5502, sglang#11948: a first interval counts the time since the start; each rank has its own."""
    log = "".join(sg.decode(speed, rank=rank) for speed in (0.39, 165.0) for rank in ("DP0 TP0", "DP1 TP2"))
    assert [(one.rank, one.first) for one in read(log).decode] == [
        ("DP0 TP0", True), ("DP1 TP2", True), ("DP0 TP0", False), ("DP1 TP2", False),
    ]  # fmt: skip


def wrapped_in_json(text: str) -> str:
    return "".join(
        json.dumps({"log": one, "stream": "stderr", "time": "2026-11-29T18:00:00Z"}) + "\n"
        for one in text.splitlines(keepends=True)
    )


def coloured(text: str) -> str:
    return "".join(f"\x1b[36msglang-1  |\x1b[0m {one}" for one in text.splitlines(keepends=True))


def behind_progress_bars(text: str) -> str:
    bar = "Capturing batches (bs=4):  50%|#####     | 1/2\rCapturing batches (bs=2): 100%|##########| 2/2\r"
    return "".join(bar + one for one in text.splitlines(keepends=True))


def with_carriage_returns(text: str) -> str:
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize("wrap", [wrapped_in_json, coloured, behind_progress_bars, with_carriage_returns])
def test_containers_and_terminals_wrap_it_without_changing_it(wrap: Any) -> None:
    log = sg.server(sg.prefill(), sg.decode(9.0, accept=2.0), sg.decode(60.0, accept=2.0), captured=[1, 2])
    assert read(wrap(log)) == read(log)


def test_a_long_sentence_is_kept_once(tmp_path: Path) -> None:
    said = "The page size is set to 1" + " and so on" * 100
    log = sg.line(said) * 3 + sg.server(sg.decode(9.0))
    assert read_server_log(written(tmp_path, log)).rewritten == (said[:400],)


def test_of_several_starts_each_is_read_and_the_last_speaks(tmp_path: Path) -> None:
    lowered = "Max running requests is reset to 48 for speculative decoding."
    log = (
        sg.server(sg.decode(50.0), sg.decode(50.0), tp_size=4) + sg.line(lowered) + sg.server(sg.decode(9.0, accept=2))
    )
    one, two = read_server_logs(written(tmp_path, log))
    assert one.arguments["tp_size"] == 4
    assert one.decode_lines == 2
    assert one.rewritten == ()
    assert two.rewritten == (lowered,)  # said before the arguments, and meant for them
    assert two.decode[0].first
    assert read_server_log(tmp_path / "server.log") == two


def test_a_server_that_restarts_for_ever_costs_no_memory(tmp_path: Path) -> None:
    found = read_server_logs(written(tmp_path, sg.server(sg.decode(50.0)) * 100))
    assert len(found) == MOST_STARTS


def test_ranks_without_number_cost_no_memory() -> None:
    log = "".join(sg.decode(60.0, rank=f"DP{number}") for number in range(3 * MOST_RANKS))
    facts = read(log)
    assert facts.decode_lines == 3 * MOST_RANKS
    assert len({one.rank for one in facts.decode}) <= MOST_RANKS + 1


def test_retractions_and_errors() -> None:
    full = "KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 812, #new_token_ratio: 0.2"
    log = sg.server(sg.decode(60.0, usage=0.99), sg.line(full), sg.line(full))
    log += "Traceback (most recent call last):\n  File x\ntorch.OutOfMemoryError: CUDA out of memory.\n"
    facts = read(log)
    assert facts.retractions == 6
    assert facts.peak_usage == 0.99
    assert facts.errors == ("torch.OutOfMemoryError: CUDA out of memory.",)


def test_very_many_decode_lines_are_sampled_and_all_counted() -> None:
    lines = 5 * MOST_INTERVALS
    log = "".join(sg.decode(60.0, running=1 + number % 3, graph=number % 2 == 0) for number in range(lines))
    facts = read(log)
    assert facts.decode_lines == lines
    assert MOST_INTERVALS <= len(facts.decode) <= 2 * MOST_INTERVALS
    assert facts.decode[0].first
    assert {one.running for one in facts.decode} == {1, 2, 3}


def test_a_line_without_end_is_passed_over() -> None:
    rubbish = b"Decode batch" + b"x" * (3 * LONGEST_LINE) + b"\n"
    assert read(rubbish + sg.decode(60.0).encode()).decode_lines == 1


@given(st.integers(0, 40_000))
@settings(max_examples=40, deadline=None)
def test_a_log_cut_anywhere_never_says_more_than_the_whole(size: int) -> None:
    whole, cut = read_server_log(REAL), list(starts(io.BytesIO(REAL.read_bytes()[:size])))
    for facts in cut:
        assert facts.decode_lines <= whole.decode_lines
        assert facts.arguments.items() <= whole.arguments.items()
        assert set(facts.decode) <= set(whole.decode) | {facts.decode[-1] if facts.decode else None}


@given(
    st.lists(st.binary(max_size=200) | st.sampled_from([sg.decode(60.0).encode(), sg.limits().encode()]), max_size=9)
)
@settings(deadline=None)
def test_rubbish_between_lines_does_no_harm(parts: list[bytes]) -> None:
    for facts in starts(io.BytesIO(b"\n".join(parts))):
        assert facts.decode_lines <= len(parts)


DAMAGE = st.sampled_from(["", "9" * 5000, "..", "-", "nan", "\x00", "٣", ", ", "[", "DP1 ", "\r", "{"])


@given(st.lists(st.tuples(st.floats(0, 1), DAMAGE), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_damaged_lines_are_passed_over(damages: list[tuple[float, str]]) -> None:
    text = sg.server(sg.prefill(), sg.decode(9.0, accept=2.0), sg.decode(60.0, accept=2.0), captured=[1, 2])
    for where, what in damages:
        index = int(where * len(text))
        text = text[:index] + what + text[index + 1 :]
    for facts in starts(io.BytesIO(text.encode())):
        assert facts.decode_lines <= 2


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), VALUES, max_size=6))
@settings(deadline=None)
def test_arguments_are_read_as_python_prints_them(values: dict[str, Any]) -> None:
    assert parse_server_args(repr(values)) == values
    assert parse_server_args(f"ServerArgs({', '.join(f'{k}={v!r}' for k, v in values.items())})") == values


@given(st.integers(0, 400))
def test_cut_arguments_are_those_before_the_cut(size: int) -> None:
    values = {"model_path": "org/m, (x)", "bs": [1, 2, {"a": "]"}], "port": 30000, "note": "it's", "last": None}
    assert parse_server_args(repr(values)[:size]).items() <= values.items()


def test_arguments_that_are_no_literals_stay_text_and_run_nothing() -> None:
    text = "{'mode': <Mode.A: 1>, 'call': __import__('os').getpid(), 'port': 1}"
    assert parse_server_args(text) == {"mode": "<Mode.A: 1>", "call": "__import__('os').getpid()", "port": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"\n \n", "it is empty"),
        (bytes(range(256)) * 40, "it is binary"),
        (b"INFO 11-29 18:00:00 [api_server.py:1] vLLM API server version 0.11\nvllm serve\n", "vLLM"),
        (b"INFO 11-29 18:00:00 [metrics.py:96] engine of vLLM: Mean acceptance length: 1.87\n", "vLLM"),
        (b"llama_model_loader: loaded meta data\nllama_context: n_ctx = 4096\n", "llama.cpp"),
        ("сервер запущен\n服务器已启动\n".encode(), "neither a server_args= line nor"),
        (b"sglang serve: error: unrecognized arguments: --foo\n", "ends before the server's arguments"),
    ],
)
def test_what_is_no_log_of_a_server_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(SpectuneError, match="is no log of an SGLang server") as refused:
        read_server_log(written(tmp_path, content))
    assert words in str(refused.value)


def test_folders_missing_files_and_devices(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, words in (
        (tmp_path, "is a folder"),
        (tmp_path / "none", "No such file"),
        (Path(os.devnull), "is no file"),
        (tmp_path / "loop", "symbolic links"),
    ):
        with pytest.raises(SpectuneError, match=words):
            read_server_log(path)


@pytest.mark.parametrize(
    ("ending", "lines"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", 1),
        (sg.line("Scheduler hit an exception: Traceback (most recent call last):") + "RuntimeError: boom\n", 2),
        ("ValueError: a request that was refused\n", 0),
        ("torch.OutOfMemoryError: CUDA out of memory.\n" + sg.decode(60.0, accept=2.0), 0),
        ("", 0),
    ],
)
def test_errors_that_ended_a_server_are_those_after_which_nothing_was_served(ending: str, lines: int) -> None:
    (facts,) = every_start(sg.server(sg.decode(60.0, accept=2.0)) + ending)
    assert len(facts.fatal) == lines


def test_each_start_says_for_itself_whether_it_is_simulated() -> None:
    simulated = sg.line("SIMULATED ENGINE of spectune: profile p, launch 0, real time. Nothing here is measured.")
    server = sg.server(sg.decode(60.0, accept=2.0))
    assert [one.simulated for one in every_start(server + simulated + server + server)] == [False, True, False]
    assert [one.simulated for one in every_start(simulated + simulated + server)] == [True]
