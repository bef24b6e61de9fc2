"""`spectune diagnose` on logs and on whatever answers at an address."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sglang_log_lines as sg
from forked import spectune
from readme_commands import SPECTUNE

from spectune.cli.diagnosing import run_diagnose
from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang import server_answers
from spectune.engines.simulated.profile import load_profile
from spectune.errors import SpectuneError
from spectune.search.launch.virtual import VirtualLaunch

KEY = "very-secret-key"
FIELD = sg.server(sg.prefill(), sg.decode(0.4, accept=2.0), *[sg.decode(60.0, accept=2.0)] * 4, captured=[1, 2],
                  **sg.speculation("EAGLE3", 2))  # fmt: skip


def diagnosed(*arguments: str, text: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return spectune("diagnose", *arguments, text=text, **env)


def refused(*words: str, **options: Any) -> None:
    """The command refuses these options with a message of one line that has these words and no secret."""
    given = {
        "log": None, "url": None, "baseline": None, "concurrency": None, "verify_ms": None, "probing": False,
        "api_key_env": None, "as_json": False, **options,
    }  # fmt: skip
    with pytest.raises(SpectuneError) as error:
        run_diagnose(**given)
    message = str(error.value)
    assert len(message.splitlines()) == 1
    assert KEY not in message
    for word in words:
        assert word in message


@contextmanager
def answering(routes: dict[str, tuple[int, str]], **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A web server with fixed answers; gives its address and the requests it got."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Authorization', '-')}")
            status, body = routes.get(self.path.partition("?")[0], (404, "{}"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def test_a_log_is_diagnosed_with_its_arithmetic(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("[2026-11-29 17:00:00] crashed before\n" + FIELD)
    done = diagnosed("--log", str(tmp_path / "server.log"), "--baseline", "82")
    assert done.returncode == 0, done.stderr
    assert "EAGLE3, 2 steps, 1 branch, 3 draft tokens" in done.stdout
    assert "break-even: 82 tok/s × 33.33 ms = accept length 2.73" in done.stdout
    assert "weak_drafter (22.0 tok/s lost)" in done.stdout
    assert "another drafter: try a drafter that reaches more than 2.73 of 3 possible" in done.stdout


def test_json_for_scripts(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(FIELD + FIELD.replace("60.00", "70.00"))
    done = diagnosed("--log", str(tmp_path / "server.log"), "--json")
    found = json.loads(done.stdout)
    assert found["source"]["starts"] == 2
    assert found["server"]["loads"][0]["cycle_ms"] == pytest.approx(28.57, abs=0.01)
    assert found["causes"] == []
    assert found["server"]["captured"] == 2


def test_secrets_and_escapes_of_a_log_are_not_repeated(tmp_path: Path) -> None:
    values = {**sg.speculation(), "speculative_draft_model_path": "org/\x1b[31mred", "api_key": KEY}
    (tmp_path / "server.log").write_text(sg.server(sg.decode(9.0, accept=2.0), captured=[1], **values))
    for form in ([], ["--json"]):
        done = diagnosed("--log", str(tmp_path / "server.log"), *form)
        assert done.returncode == 0, done.stderr
        assert KEY not in done.stdout
        assert "\x1b" not in done.stdout


def test_bad_logs_and_options(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(FIELD)
    refused("either --log FILE or --url")
    refused("either --log FILE or --url", log=log, url="http://localhost:1")
    refused("for --url", log=log, probing=True)
    refused("baseline", "positive", log=log, baseline=0.0)
    refused("cycle", "positive", log=log, verify_ms=-3.0)
    refused("is a folder", log=tmp_path)
    refused("No such file", log=tmp_path / "none.log")


def test_a_refusal_is_one_message_and_exit_code_2(tmp_path: Path) -> None:
    done = diagnosed("--log", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"spectune: {tmp_path} is a folder, not the log of a server\n"


def test_a_server_that_never_served_is_classified(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        sg.arguments(**sg.speculation()) + sg.line("Scheduler hit an exception: Traceback (most recent call last):")
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )  # fmt: skip
    refused("never served (memory)", "CUDA out of memory", log=log)


def test_a_log_that_ends_out_of_memory_says_that_it_died(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    ending = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    log.write_text(sg.arguments(max_running_requests=8) + sg.READY + ending)
    done = diagnosed("--log", str(log))
    assert "1. died_of_memory (the server ended): it died of memory" in done.stdout
    assert "8 were asked to run at once" in done.stdout
    assert "nothing that slows it down" not in done.stdout
    log.write_text(FIELD + ending)
    ended = json.loads(diagnosed("--log", str(log), "--baseline", "82", "--json").stdout)
    assert [cause["name"] for cause in ended["causes"]] == ["died_of_memory", "weak_drafter"]
    assert "--mem-fraction-static" in ended["causes"][0]["actions"][0]["words"]
    log.write_text(FIELD + ending + sg.decode(60.0, accept=2.0))
    survived = json.loads(diagnosed("--log", str(log), "--json").stdout)
    assert survived["server"]["died_of"] is None
    log.write_text(ending)
    refused("no log of an SGLang server", "died of memory", log=log)


def test_where_nothing_was_measured_nothing_is_ruled_out(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(sg.server(captured=[48]))
    done = diagnosed("--log", str(tmp_path / "server.log"))
    assert "no cause was found, but nothing was measured either" in done.stdout
    assert "--url and --probe" in done.stdout
    assert "nothing that slows it down" not in done.stdout
    assert json.loads(diagnosed("--log", str(tmp_path / "server.log"), "--json").stdout)["measured"] is False


def test_a_log_without_its_beginning_says_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("".join(FIELD.splitlines(keepends=True)[-3:]))
    lines = diagnosed("--log", str(tmp_path / "server.log")).stdout.splitlines()
    assert "speculation of a kind that the log no longer names" in lines
    assert any(line.startswith("requests: how many may run at once is not known, ") for line in lines)


def test_a_log_is_read_from_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(FIELD)
    named = json.loads(diagnosed("--log", str(tmp_path / "server.log"), "--json").stdout)
    piped = diagnosed("--log", "-", "--json", text=FIELD)
    assert piped.returncode == 0, piped.stderr
    told = json.loads(piped.stdout)
    assert told["source"]["log"] == "standard input"
    assert {**told, "source": None} == {**named, "source": None}
    for text, words in (("", "it is empty"), ("vllm serve\n", "one of vLLM"), ("\0\1", "it is binary")):
        done = diagnosed("--log", "-", text=text)
        assert (done.returncode, done.stdout) == (2, "")
        assert "standard input is no log of an SGLang server" in done.stderr
        assert words in done.stderr
    failed = sg.arguments() + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert "standard input: its last server never served (memory)" in diagnosed("--log", "-", text=failed).stderr


def test_a_terminal_is_no_pipe() -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run([SPECTUNE, "diagnose", "--log", "-"], stdin=theirs, capture_output=True, text=True,
                              timeout=240, check=False)  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert "docker logs NAME 2>&1 | spectune diagnose --log -" in done.stderr


def test_a_log_of_a_simulated_server_says_so(tmp_path: Path) -> None:
    simulated = "SIMULATED ENGINE of spectune: profile kimi-k2.5-pcie, launch 0, real time. Nothing here is measured."
    log = tmp_path / "server.log"
    log.write_text(FIELD + sg.line(simulated) + FIELD)
    done = diagnosed("--log", str(log))
    assert done.stdout.splitlines()[1].startswith("SIMULATED: spectune's own engine")
    told = json.loads(diagnosed("--log", str(log), "--json").stdout)
    assert (told["source"]["starts"], told["server"]["simulated"]) == (2, True)
    log.write_text(sg.line(simulated) + FIELD + FIELD)
    told = json.loads(diagnosed("--log", str(log), "--json").stdout)
    assert (told["source"]["starts"], told["server"]["simulated"]) == (2, False)


def test_a_virtual_trial_has_no_log(tmp_path: Path) -> None:
    command = LaunchCommand(argv=("sglang", "serve", "--model-path", "m"), env={}, unset=())
    launch = VirtualLaunch(load_profile("kimi-k2.5-pcie"), command, {})
    (tmp_path / "server.log").write_text(launch.log_tail(1 << 20))
    refused("is of a virtual trial", "there is no log", "result.json", log=tmp_path / "server.log")


def test_a_server_is_asked_and_its_secrets_kept() -> None:
    state = {"avg_spec_accept_length": 1.0, "decode_cuda_graph_bs": [1, 48], "last_gen_throughput": 50.0}
    info = {**sg.speculation("EAGLE"), "version": "0.5.23", "model_path": "org/model", "api_key": KEY,
            "internal_states": [state], "max_total_num_tokens": 500000}  # fmt: skip
    routes = {
        "/server_info": (200, json.dumps(info)),
        "/v1/loads": (200, json.dumps({"loads": [{"num_running_reqs": 1, "num_waiting_reqs": 0}]})),
    }
    with answering(routes) as (url, asked):
        done = diagnosed("--url", url, "--baseline", "82", SGLANG_API_KEY=KEY)
        named = diagnosed("--url", url, "--api-key-env", "MINE", "--json", MINE="another")
    assert done.returncode == 0, done.stderr
    assert "SGLang 0.5.23 with org/model" in done.stdout
    assert "wrong_algorithm (32.0 tok/s lost)" in done.stdout
    assert KEY not in done.stdout + done.stderr + named.stdout
    assert f"/server_info Bearer {KEY}" in asked
    assert "/server_info Bearer another" in asked
    assert len(asked) <= 2 * 5
    assert json.loads(named.stdout)["causes"][0]["name"] == "wrong_algorithm"


def test_an_older_server_is_asked_by_its_older_names() -> None:
    routes = {
        "/get_server_info": (200, json.dumps({"model_path": "org/model", "internal_states": [{}]})),
        "/v1/loads": (403, "for administrators"),
    }
    with answering(routes) as (url, _):
        done = diagnosed("--url", url)
    assert done.returncode == 0, done.stderr
    assert "no speculation" in done.stdout


@pytest.mark.parametrize(
    ("routes", "headers", "words"),
    [
        ({"/server_info": (200, "<!doctype html><title>Sign in</title>")}, {}, ["a web page", "no SGLang server"]),
        ({"/server_info": (200, "[1]")}, {}, ["no object"]),
        ({"/server_info": (200, "{}")}, {}, ["is no SGLang server"]),
        ({"/server_info": (401, "no")}, {}, ["wants an API key", "SGLANG_API_KEY", "--api-key-env"]),
        ({"/server_info": (302, "")}, {"Location": "http://127.0.0.1:1/"}, ["redirects elsewhere", "302"]),
        ({"/server_info": (500, "boom")}, {}, ["HTTP 500", "boom"]),
        ({"/v1/models": (200, '{"data": [{"id": "m", "owned_by": "vllm"}]}')}, {}, ["owned by 'vllm'"]),
        ({"/v1/models": (200, "{}")}, {}, ["has no /server_info"]),
        ({}, {}, ["has no /server_info"]),
    ],
)
def test_what_is_no_sglang_is_named(
    routes: dict[str, tuple[int, str]], headers: dict[str, str], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_API_KEY", KEY)
    with answering(routes, **headers) as (url, _):
        refused(*words, url=url)


def test_what_speaks_no_http_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def talk() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"\0\xff\x1b[31m" * 1000)

        speaking = threading.Thread(target=talk)
        speaking.start()
        done = diagnosed("--url", f"http://127.0.0.1:{listener.getsockname()[1]}")
        speaking.join()
    assert done.returncode == 2
    assert "cannot be asked" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 400
    assert "\x1b" not in done.stderr


def test_addresses_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    refused("cannot be asked", url="http://127.0.0.1:1")
    refused("cannot be asked", url=f"http://{'a' * 300}:1")
    refused("http://HOST:PORT", url=f"ftp://me:{KEY}@host")
    refused("http://HOST:PORT", url="http://host:port")
    refused("not set", url="http://127.0.0.1:1", api_key_env="NOT_THERE")
    monkeypatch.setenv("SGLANG_API_KEY", f"{KEY}\nb")
    refused("API key", url="http://127.0.0.1:1")


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_answers, "_PATIENCE", aiohttp.ClientTimeout(total=0.2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refused("did not answer within 0.2 s", url=f"http://127.0.0.1:{silent.getsockname()[1]}")


def test_a_probe_that_is_refused_says_so() -> None:
    info = json.dumps({"model_path": "org/model", "internal_states": [{}]})
    with answering({"/server_info": (200, info)}) as (url, _):
        refused("a probe failed", "HTTP 501", url=url, probing=True)


def test_a_pipe_with_a_name_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    failed = sg.arguments() + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    writer = threading.Thread(target=pipe.write_text, args=(failed,))
    writer.start()
    refused("never served (memory)", log=pipe)
    writer.join()


def test_quantities_that_cannot_be_are_not_told() -> None:
    info = {**sg.speculation("EAGLE"), "model_path": "m", "internal_states": [{}], "enable_metrics": True,
            "speculative_draft_model_path": {"a": "\x1b[31m"}}  # fmt: skip
    samples = 'sglang:num_running_reqs{tp_rank="0"} +Inf\nsglang:num_queue_reqs 1e999\nsglang:token_usage -1\n'
    routes = {"/server_info": (200, json.dumps(info)), "/metrics": (200, samples)}
    with answering(routes) as (url, _):
        done = diagnosed("--url", url)
    assert done.returncode == 0, done.stderr
    assert "up to 0 ran and 0 waited" in done.stdout
    assert "\x1b" not in done.stdout
    loads = {"/v1/loads": (200, '{"loads": [{"num_running_reqs": 1e308}, {"num_running_reqs": 3}]}')}
    with answering(routes | loads) as (url, _):
        assert json.loads(diagnosed("--url", url, "--json").stdout)["server"]["most_running"] == 3


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("log", ["-", "server.log"])
def test_streams_may_be_closed(tmp_path: Path, closed: str, log: str) -> None:
    (tmp_path / "server.log").write_text(FIELD)
    done = subprocess.run(
        ["sh", "-c", f"{SPECTUNE} diagnose --json --log {log} {closed}"], cwd=tmp_path, text=True, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == (2 if log == "-" else 0)
    assert "Traceback" not in done.stderr
    assert done.stderr == "" if log != "-" or "2" in closed else "it is empty" in done.stderr


def test_names_of_files_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = diagnosed("--log", str(tmp_path / "a\x1b[31mb"))
    assert (done.returncode, "\x1b" in done.stderr) == (2, False)
    assert "a\\x1b[31mb cannot be read" in done.stderr
