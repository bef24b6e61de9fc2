"""The HTTP form: endpoints, fields, streams, bad requests, logs, processes."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from simulated_server import Running, engine, speculating

from spectune.serving.readiness import PROBE, check_generation


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("served")
    words = ("--context-length", "4096", "--decode-log-interval", "5", *speculating())
    with engine(folder, *words, env={"NCCL_PROTO": "LL"}) as running:
        running.wait_ready()
        yield running


def events(data: bytes) -> list[bytes]:
    return [part.removeprefix(b"data: ") for part in data.split(b"\n\n") if part]


def test_spectune_takes_it_for_an_engine(served: Running) -> None:
    status, answer = served.post("/generate", dict(PROBE))
    complaint, parsed = check_generation(status, answer.decode())
    assert complaint == ""
    assert parsed is not None


def test_the_answer_s_fields(served: Running) -> None:
    answer = served.generate(40, text="Tell me")
    meta = answer["meta_info"]
    assert len(answer["output_ids"]) == meta["completion_tokens"] == 40
    assert meta["finish_reason"] == {"type": "length", "length": 40}
    assert meta["prompt_tokens"] == 2
    assert meta["spec_num_proposed_drafts"] == 3 * meta["spec_verify_ct"]
    histogram = meta["spec_correct_drafts_histogram"]
    assert sum(histogram) == meta["spec_verify_ct"]
    assert sum(i * n for i, n in enumerate(histogram)) == meta["spec_num_correct_drafts"]
    assert meta["spec_accept_length"] == pytest.approx(40 / meta["spec_verify_ct"])
    assert meta["spec_accept_rate"] == pytest.approx(meta["spec_num_correct_drafts"] / meta["spec_num_proposed_drafts"])


def test_what_is_no_http_is_told_in_a_line(served: Running) -> None:
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2]))) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nno header\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.0 400")
    assert "WARNING:  Invalid HTTP request received." in served.log
    assert "Traceback" not in served.log


def test_a_stream_has_one_chunk_per_cycle(served: Running) -> None:
    body = {"input_ids": [5, 6, 7], "sampling_params": {"max_new_tokens": 30}, "stream": True}
    status, data = served.post("/generate", body)
    *chunks, done = events(data)
    assert (status, done) == (200, b"[DONE]")
    parsed = [json.loads(chunk) for chunk in chunks]
    counts = [chunk["meta_info"]["completion_tokens"] for chunk in parsed]
    assert counts[0] == 1
    assert counts[-1] == 30
    assert parsed[-1]["meta_info"]["spec_verify_ct"] == len(parsed) - 1
    assert not any("spec_verify_ct" in chunk["meta_info"] for chunk in parsed[:-1])
    assert all(later["text"].startswith(earlier["text"]) for earlier, later in itertools.pairwise(parsed))
    assert parsed[0]["meta_info"]["finish_reason"] is None


def test_greedy_answers_are_the_prompt_s_alone(served: Running) -> None:
    first, second = (served.generate(20, input_ids=[9, 9, 9])["output_ids"] for _ in range(2))
    assert first == second
    assert first != served.generate(20, input_ids=[9, 9, 8])["output_ids"]


def test_lists_and_samples(served: Running) -> None:
    answers = served.generate(4, text=["one", "two"])
    assert [len(answer["output_ids"]) for answer in answers] == [4, 4]
    body = {"text": "x", "sampling_params": {"max_new_tokens": 2, "n": 3}}
    assert len(json.loads(served.post("/generate", body)[1])) == 3
    body = {"text": ["one", "two"], "sampling_params": {"max_new_tokens": 6}, "stream": True}
    *chunks, done = events(served.post("/generate", body)[1])
    assert done == b"[DONE]"
    assert {json.loads(chunk)["index"] for chunk in chunks} == {0, 1}


def test_what_it_says_of_itself(served: Running) -> None:
    info = json.loads(served.get("/server_info")[1])
    assert info["simulated"] is True
    assert info["version"] == "0.5.23"
    assert info["speculative_num_draft_tokens"] == 4
    assert info["cuda_graph_config"]["decode"]["bs"][0] == 1
    state = info["internal_states"][0]
    assert state["effective_max_running_requests_per_dp"] == 48
    assert max(state["decode_cuda_graph_bs"]) == 48
    assert state["memory_usage"]["token_capacity"] == info["max_total_num_tokens"] == 430_000
    assert json.loads(served.get("/get_server_info")[1]).keys() == info.keys()
    assert json.loads(served.get("/model_info")[1])["model_path"] == "org/target"
    assert served.get("/get_model_info")[0] == 200
    assert json.loads(served.get("/v1/models")[1])["data"][0]["id"] == "org/target"


def test_health_generates_a_token(served: Running) -> None:
    before = served.log.count("Prefill batch")
    assert served.get("/health")[0] == 200
    assert served.log.count("Prefill batch") == before + 1


def test_flush_empties_the_prefix_cache(served: Running) -> None:
    prompt = list(range(100, 200))
    assert served.generate(2, input_ids=prompt)["meta_info"]["cached_tokens"] == 0
    assert served.generate(2, input_ids=prompt)["meta_info"]["cached_tokens"] == 96
    assert served.post("/flush_cache", {})[0] == 200
    assert served.generate(2, input_ids=prompt)["meta_info"]["cached_tokens"] == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{nonsense", "JSON decode error"),
        (b"[1, 2]", "must be a JSON object"),
        ({"text": "x", "stream": "yes"}, "stream has the wrong type"),
        ({}, "Either text, input_ids or input_embeds should be provided."),
        ({"text": "x", "stream": None}, "stream has the wrong type"),
        ({"text": "x", "rid": 5}, "rid has the wrong type"),
        ({"text": ["x", "y"], "rid": ["one"]}, "rids length mismatch"),
        ({"text": ""}, "texts cannot be empty"),
        ({"text": [5]}, "text has an element of the wrong type: int"),
        ({"input_ids": []}, "input_ids cannot be empty."),
        ({"input_ids": ["a"]}, "input_ids has an element of the wrong type: str"),
        ({"input_ids": [-1]}, "list of token ids"),
        ({"input_ids": [[1], []]}, "list of token ids"),
        ({"input_ids": [1] * 5000}, "longer than the model's context length (4096 tokens)"),
        ({"text": "x", "sampling_params": {"max_new_tokens": 10**9}}, "exceeds the model's maximum context length"),
        ({"text": "x", "sampling_params": {"max_new_tokens": -1}}, "max_new_tokens must be at least 0"),
        ({"text": "x", "sampling_params": {"max_new_tokens": "many"}}, 'invalid type: string \\"many\\", expected i64'),
        ({"text": "x", "sampling_params": {"max_new_tokens": 2.5}}, "invalid type: floating point `2.5`"),
        ({"text": "x", "sampling_params": {"top_p": 7}}, "top_p must be in (0, 1], got 7."),
        ({"text": "x", "sampling_params": {"nonsense": 1}}, "unknown field `nonsense`"),
        ({"text": "x", "sampling_params": {"temperature": -1}}, "temperature must be a non-negative"),
        ({"text": ["x", "y"], "sampling_params": [{}]}, "as many sampling_params as prompts, 2, but got 1"),
    ],
)
def test_bad_requests_are_400_and_say_why(served: Running, body: object, message: str) -> None:
    status, answer = served.post("/generate", body)
    assert status == 400
    assert message in answer.decode()
    assert served.process.poll() is None


def test_a_refused_stream_says_so_inside(served: Running) -> None:
    status, data = served.post("/generate", {"stream": True})
    error, done = events(data)
    assert (status, done) == (200, b"[DONE]")
    assert "Either text" in json.loads(error)["error"]["message"]


def test_unknown_paths_are_404(served: Running) -> None:
    assert served.get("/nothing")[0] == 404
    assert served.get("/generate")[0] == 405


def test_a_dropped_connection_frees_the_batch(served: Running) -> None:
    address = served.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(address[0], int(address[1]))
    body = json.dumps({"text": "x", "stream": True, "sampling_params": {"max_new_tokens": 4000}})
    connection.request("POST", "/generate", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.read(10)
    assert isinstance(connection.sock, socket.socket)
    answer.close()
    connection.close()
    served.wait_for(lambda: served.post("/flush_cache", {})[0] == 200)  # 400 as long as something runs


def test_the_log_is_the_engine_s(served: Running) -> None:
    served.generate(60)
    served.wait_for(lambda: "Decode batch" in served.log)
    log = served.log
    stamp = r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d TP0\] "
    assert "SIMULATED ENGINE of spectune: profile small" in log.splitlines()[0]
    assert re.search(
        stamp + r"Decode batch, #running-req: 1, #token: \d+, token usage: 0\.\d\d, accept len: \d\.\d\d, "
        r"accept rate: \d\.\d\d, cuda graph: True, gen throughput \(token/s\): \d+\.\d\d, #queue-req: 0$",
        log,
        re.MULTILINE,
    )
    assert re.search(stamp + r"Load weight end\. elapsed=0\.20 s, type=Simulated, avail mem=", log, re.MULTILINE)
    assert re.search(
        stamp
        + r"Capture target verify CUDA graph end\. bs=\[1, 2, .*\], elapsed=.* s, mem usage=.* GB, avail mem=.* GB\.$",
        log,
        re.MULTILINE,
    )
    assert "The server is fired up and ready to roll!" in log
    assert "max_total_num_tokens=430000, " in log


def test_workers_are_processes_with_an_environment_of_their_own(served: Running) -> None:
    workers = psutil.Process(served.process.pid).children(recursive=True)
    titles = [worker.cmdline()[-2] for worker in workers]
    assert sorted(titles) == ["sglang::detokenizer", "sglang::scheduler_TP0", "sglang::scheduler_TP1"]
    environment = workers[0].environ()
    assert environment["NCCL_PROTO"] == "LL"
    assert (environment["NCCL_NVLS_ENABLE"], environment["NCCL_CUMEM_ENABLE"]) == ("0", "0")
    assert environment["CUDA_DEVICE_MAX_CONNECTIONS"] == "8"


def test_a_busy_engine_does_not_flush(tmp_path: Path) -> None:
    with engine(tmp_path, time_scale=1.0) as running:
        running.wait_ready()
        address = running.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(address[0], int(address[1]))
        body = json.dumps({"text": "x", "sampling_params": {"max_new_tokens": 1000}})
        connection.request("POST", "/generate", body, {"Content-Type": "application/json"})
        running.wait_for(lambda: running.log.count("Prefill batch") == 2)
        assert running.post("/flush_cache", {})[0] == 400
        assert "Cache not flushed because there are pending requests" in running.log
        connection.close()
