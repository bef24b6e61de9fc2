"""What both the real SGLang and the simulated engine do, seen from outside: endpoints, answers, log lines, endings."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import signal
from collections.abc import Mapping
from typing import Any

import pytest
from contract_tables import (
    CAPTURE,
    FINISHED,
    LINES,
    MESSAGE,
    META,
    MODEL_INFO,
    OBJECT,
    REFUSALS,
    SERVER_INFO,
    SPECULATED,
    STAMP,
    STAMPED_BY_SOME,
    STATE,
    WORDS,
    Kinds,
)
from engine_lives import Answer, Life, Lives, Running

from benchmarks.services.daemon import eventually


@pytest.fixture
def served(lives: Lives) -> Running:
    return lives.serving("eagle3-chain")


def check(answer: Mapping[str, Any], *tables: Kinds) -> None:
    for name, kinds in itertools.chain.from_iterable(table.items() for table in tables):
        assert name in answer, name
        assert type(answer[name]) in kinds, (name, answer[name])


def check_meta(meta: Mapping[str, Any], *tables: Kinds) -> None:
    check(meta, META, *tables)
    assert meta.keys() - STAMPED_BY_SOME == {name for table in (META, *tables) for name in table}


def body(tokens: int, **more: Any) -> dict[str, Any]:
    prompt = {} if "text" in more or "input_ids" in more else {"input_ids": [5, 6, 7]}
    return prompt | more | {"sampling_params": {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}}


def text(answer: Answer, form: str) -> str:
    """The complaint, once its form has been checked."""
    content = answer.json()
    if form == OBJECT:
        assert content.keys() == {"object", "message", "type", "param", "code"}
        assert (content["object"], content["code"]) == ("error", 400)
        return str(content["message"])
    assert content.keys() == {"error"}
    if form == WORDS:
        assert isinstance(content["error"], str)
        return content["error"]
    assert content["error"].keys() == {"message"}
    return str(content["error"]["message"])


def begin(served: Running, tokens: int, *, stream: bool) -> http.client.HTTPConnection:
    """Send a request on a connection of its own, without waiting for the answer."""
    connection = http.client.HTTPConnection(*served.address, timeout=240)
    connection.request(
        "POST", "/generate", json.dumps(body(tokens, stream=stream)), {"Content-Type": "application/json"}
    )
    return connection


def until_idle(served: Running) -> None:
    assert eventually(lambda: served.post("/flush_cache", b"").status == 200)  # 400 as long as something runs


def held_tokens(log: str) -> list[int]:
    return [int(count) for count in re.findall(r"Decode batch.*?#token: (\d+)", log)]


class TestEngineServer:
    @pytest.mark.parametrize("path", ["/ready", "/health", "/health_generate"])
    def test_it_is_well(self, served: Running, path: str) -> None:
        answer = served.get(path)
        assert (answer.status, answer.body) == (200, b"")

    def test_an_answer(self, served: Running) -> None:
        answer = served.post("/generate", body(40))
        assert (answer.status, answer.kind) == (200, "application/json")
        content = answer.json()
        assert content.keys() == {"text", "output_ids", "meta_info"}
        meta = content["meta_info"]
        check_meta(meta, FINISHED, SPECULATED)
        assert len(content["output_ids"]) == meta["completion_tokens"] == 40
        assert meta["finish_reason"] == {"type": "length", "length": 40}
        assert meta["prompt_tokens"] == 3
        assert meta["weight_versions"] == [{"version": "default", "start": 0, "end": 40}]
        assert meta["spec_num_proposed_drafts"] == 3 * meta["spec_verify_ct"]
        assert meta["spec_accept_length"] == pytest.approx(40 / meta["spec_verify_ct"])
        assert meta["spec_accept_rate"] == pytest.approx(
            meta["spec_num_correct_drafts"] / meta["spec_num_proposed_drafts"]
        )
        histogram = meta["spec_correct_drafts_histogram"]
        assert histogram[-1] > 0
        assert sum(histogram) == meta["spec_verify_ct"]
        assert sum(i * n for i, n in enumerate(histogram)) == meta["spec_num_correct_drafts"]

    def test_a_stream_has_one_chunk_per_verify(self, served: Running) -> None:
        answer = served.post("/generate", body(40, stream=True))
        assert (answer.status, answer.kind) == (200, "text/event-stream")
        *events, done = answer.events()
        chunks = [json.loads(event) for event in events]
        assert done == b"[DONE]"
        for chunk in chunks[:-1]:
            check_meta(chunk["meta_info"])
            assert chunk["meta_info"]["finish_reason"] is None
        last = chunks[-1]["meta_info"]
        check_meta(last, FINISHED, SPECULATED)
        assert len(chunks) == 1 + last["spec_verify_ct"]
        assert [len(chunk["output_ids"]) for chunk in chunks] == [c["meta_info"]["completion_tokens"] for c in chunks]
        assert chunks[0]["meta_info"]["completion_tokens"] == 1
        assert last["completion_tokens"] == 40
        assert all(b["text"].startswith(a["text"]) for a, b in itertools.pairwise(chunks))
        assert chunks[-1]["output_ids"] == served.post("/generate", body(40)).json()["output_ids"]

    def test_lists(self, served: Running) -> None:
        answers = served.post("/generate", body(6, text=["one", "two"], rid="mine")).json()
        assert [answer["meta_info"]["id"] for answer in answers] == ["mine_0", "mine_1"]
        *events, done = served.post("/generate", body(6, text=["one", "two"], stream=True)).events()
        assert done == b"[DONE]"
        assert {json.loads(event)["index"] for event in events} == {0, 1}
        assert served.post("/generate", {"text": []}).json() == []
        assert (
            len(served.post("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 2, "n": 2}}).json()) == 2
        )

    def test_no_tokens_at_all(self, served: Running) -> None:
        answer = served.post("/generate", body(0)).json()
        assert (answer["text"], answer["output_ids"]) == ("", [])
        assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 0}

    def test_the_prefix_cache(self, served: Running) -> None:
        until_idle(served)
        prompt = list(range(20, 120))
        answers = [served.post("/generate", body(2, input_ids=prompt)).json()["meta_info"] for _ in range(2)]
        assert (answers[0]["cached_tokens"], answers[0]["cached_tokens_details"]) == (0, None)
        assert 0 < answers[1]["cached_tokens"] < len(prompt)
        assert answers[1]["cached_tokens_details"] == {"device": answers[1]["cached_tokens"], "host": 0}
        # Just after an answer the engine may still count its request; from the first flush on it is idle.
        for flush in (served.get("/flush_cache?timeout=60"), served.post("/flush_cache", b"")):
            assert flush.status == 200
            assert flush.body.startswith(b"Cache flushed.\n")
        assert served.post("/generate", body(2, input_ids=prompt)).json()["meta_info"]["cached_tokens"] == 0
        assert served.post("/flush_cache?timeout=soon", b"").status == 400

    def test_what_it_says_of_itself(self, served: Running) -> None:
        served.post("/generate", body(100))  # for a decode line, with which the lifetime means move
        info, old = (served.get(path).json() for path in ("/server_info", "/get_server_info"))
        check(info, SERVER_INFO)
        assert info.keys() == old.keys()
        (state,) = info["internal_states"]
        check(state, STATE)
        assert info["version"] == "0.5.23"
        assert info["max_total_num_tokens"] == state["memory_usage"]["token_capacity"] == 16384
        assert info["max_req_input_len"] == 2042
        assert state["effective_max_running_requests_per_dp"] == 48
        assert 1 <= state["avg_spec_accept_length"] <= 4
        assert {"load_weight", "cuda_graph"} <= info["startup_time"].keys()
        assert info["startup_time"]["cuda_graph"].keys() == state["memory_usage"]["graph"].keys()
        assert {"backend", "max_bs", "bs"} <= info["cuda_graph_config"]["decode"].keys()
        assert shown(info["launch_command"]) >= {"--speculative-num-steps", "--context-length"}

    def test_its_model(self, served: Running) -> None:
        model, old = (served.get(path).json() for path in ("/model_info", "/get_model_info"))
        check(model, MODEL_INFO)
        assert model == old
        (card,) = served.get("/v1/models").json()["data"]
        assert (card["id"], card["object"], card["max_model_len"]) == (model["served_model_name"], "model", 2048)

    def test_it_does_not_flush_while_it_works(self, served: Running) -> None:
        for _ in range(10):  # on a busy machine it may be done before it is asked
            connection = begin(served, 1900, stream=True)
            answer = connection.getresponse()
            assert answer.read(10)
            refused = served.post("/flush_cache", b"")
            answer.close()
            connection.close()
            if refused.status != 200:
                break
        assert (refused.status, refused.body) == (400, b"Flush cache failed.\n")
        until_idle(served)

    @pytest.mark.parametrize("streamed", [True, False])
    def test_a_dropped_connection_ends_the_request(self, served: Running, streamed: bool) -> None:
        for _ in range(10):  # on a busy machine it may be as good as done before the connection is dropped
            until_idle(served)
            before = len(served.log)
            connection = begin(served, 1900, stream=streamed)
            assert eventually(lambda: bool(held_tokens(served.log[before:])))  # noqa: B023 (asked before it changes)
            at_the_end = held_tokens(served.log[before:])[-1]
            connection.close()
            until_idle(served)
            if at_the_end < 1000:
                break
        assert max(held_tokens(served.log[before:])) < 1500
        assert served.post("/generate", body(4)).status == 200

    @pytest.mark.parametrize(("asked", "form", "words"), REFUSALS)
    def test_what_it_refuses(self, served: Running, asked: Any, form: str, words: str) -> None:
        answer = served.post("/generate", asked)
        assert (answer.status, answer.kind) == (400, "application/json")
        assert words in text(answer, form)

    @pytest.mark.parametrize(("asked", "form", "words"), [one for one in REFUSALS if isinstance(one[0], dict)])
    def test_what_it_refuses_in_a_stream(self, served: Running, asked: Any, form: str, words: str) -> None:
        answer = served.post("/generate", {"stream": True, **asked})
        if form == MESSAGE:
            refusal, done = answer.events()
            assert (answer.status, answer.kind, done) == (200, "text/event-stream", b"[DONE]")
            error = json.loads(refusal)["error"]
            assert words in error.pop("message")
            assert error == {"type": "invalid_request_error", "code": 400, "retryable": False}
        else:
            assert (answer.status, answer.kind) == (400, "application/json")
            assert words in text(answer, form)

    @pytest.mark.parametrize(("path", "status", "detail"), [
        ("/nothing", 404, "Not Found"), ("/generate", 405, "Method Not Allowed"),
    ])  # fmt: skip
    def test_what_does_not_exist(self, served: Running, path: str, status: int, detail: str) -> None:
        answer = served.get(path)
        assert (answer.status, answer.json()) == (status, {"detail": detail})

    def test_its_processes_carry_their_environment(self, served: Running) -> None:
        processes = served.processes()
        titles = [" ".join(process.cmdline()) for process in processes]
        for kind in ("sglang::scheduler", "sglang::detokenizer"):
            assert sum(kind in title for title in titles) == 1
        assert [process.environ().get("CONTRACT_MARK") for process in processes] == ["visible"] * len(processes)

    def test_its_log(self, served: Running) -> None:
        served.post("/generate", body(100))
        for what, line in LINES.items():  # some of which it writes when it has answered
            assert eventually(lambda line=line: re.search(STAMP + line, served.log, re.MULTILINE)), what
        captures = [line for line in served.log.splitlines() if "] Capture target" in line]
        assert [line for line in captures if not re.match(STAMP + CAPTURE, line)] == []

    def test_sigterm_drains(self, lives: Lives) -> None:
        life = lives.of("baseline")
        assert (life.code, life.left_over) == (0, False)
        check_order(
            life,
            r"SIGTERM received\. signum=None frame=None\. Draining requests and shutting down\.\.\.$",
            r"Gracefully exiting\.\.\. Remaining number of requests 0\. Remaining requests remaining_rids=\[\]\.$",
            r"INFO:     Shutting down$",
            r"INFO:     Finished server process \[\d+\]$",
        )

    def test_sigint_kills(self, lives: Lives) -> None:
        life = lives.of("eagle3-tree")
        assert (life.code, life.left_over) == (-signal.SIGINT, False)
        check_order(life, r"INFO:     Shutting down$", r"INFO:     Finished server process \[\d+\]$")
        assert "KeyboardInterrupt" in life.log

    def test_a_killed_worker_kills_all(self, lives: Lives) -> None:
        life = lives.of("standalone")
        assert (life.code, life.left_over) == (-signal.SIGKILL, False)
        check_order(
            life,
            r"Subprocess scheduler_0 \(pid=\d+\) crashed with exit code -9\. Triggering SIGQUIT for cleanup\.\.\.$",
            r"SIGQUIT received\. signum=None, frame=None\. It usually means one child failed\.$",
            r"kill_process_tree called: parent_pid=(\d+), include_parent=True, pid=\1$",
        )

    def test_an_argument_nobody_knows(self, lives: Lives) -> None:
        code, log = lives.refused("argparse", {}, ["--no-such-option", "3"])
        assert code == 2
        assert "usage: sglang serve " in log
        assert log.rstrip().endswith("sglang serve: error: unrecognized arguments: --no-such-option 3")

    def test_arguments_that_contradict_each_other(self, lives: Lives) -> None:
        code, log = lives.refused("resolver", {"chunked-prefill-size": 100, "page-size": 3})
        assert code == 1
        assert "Traceback (most recent call last):" in log
        assert "\nAssertionError: chunked_prefill_size must be divisible by page_size" in log


def check_order(life: Life, *lines: str) -> None:
    at = 0
    for line in lines:
        found = re.compile(STAMP + line, re.MULTILINE).search(life.log, at)
        assert found, line
        at = found.end()


def shown(command: str) -> set[str]:
    return {word for word in command.split() if word.startswith("--")}
