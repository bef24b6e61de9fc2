"""The HTTP form handled roughly: slow readers, old clients, crowds, signals under load, a clock it cannot keep."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import psutil
import pytest
from simulated_server import Running, engine, speculating


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with engine(tmp_path_factory.mktemp("rough"), *speculating(), time_scale=0.001) as running:
        running.wait_ready()
        yield running


def address(running: Running) -> tuple[str, int]:
    host, port = running.url.removeprefix("http://").split(":")
    return host, int(port)


def sent(running: Running, version: str, **body: object) -> socket.socket:
    """A raw connection on which a request has been sent."""
    data = json.dumps({"text": "x", **body}).encode()
    connection = socket.create_connection(address(running), timeout=240)
    head = f"POST /generate {version}\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
    connection.sendall(head.encode() + data)
    return connection


def everything(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(1 << 20), b""))


def idle(running: Running) -> bool:
    return running.post("/flush_cache", {})[0] == 200


def test_a_client_of_http_1_0_gets_a_stream_without_chunks(served: Running) -> None:
    head, _, body = everything(sent(served, "HTTP/1.0", stream=True, sampling_params={"max_new_tokens": 6})).partition(
        b"\r\n\r\n"
    )
    assert b"Transfer-Encoding" not in head
    *chunks, done, rest = body.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    assert json.loads(chunks[-1].removeprefix(b"data: "))["meta_info"]["completion_tokens"] == 6


def test_a_client_that_does_not_read_costs_little_memory_and_misses_nothing(served: Running) -> None:
    connection = sent(served, "HTTP/1.1", stream=True, sampling_params={"max_new_tokens": 20_000})
    served.wait_for(lambda: "#running-req: 1" in served.log)
    served.wait_for(lambda: idle(served))
    assert psutil.Process(served.process.pid).memory_info().rss < 400e6  # all chunks together are a gigabyte
    body = everything(connection)
    assert body.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    last = body[body.rindex(b"data: {") :].split(b"\n\n")[0]
    assert json.loads(last.removeprefix(b"data: "))["meta_info"]["completion_tokens"] == 20_000


def test_a_crowd_is_answered(served: Running) -> None:
    async def crowd() -> list[bytes]:
        async def one(session: aiohttp.ClientSession, number: int) -> bytes:
            body = {"input_ids": [number + 1], "stream": True, "sampling_params": {"max_new_tokens": 3}}
            async with session.post(f"{served.url}/generate", json=body) as answer:
                return await answer.read()

        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, trust_env=False) as session:
            return await asyncio.gather(*(one(session, number) for number in range(400)))

    assert all(answer.endswith(b"[DONE]\n\n") for answer in asyncio.run(crowd()))


def test_silence_and_noise_on_connections_disturb_nobody(served: Running) -> None:
    connections = [socket.create_connection(address(served)) for _ in range(50)]
    for connection in connections[:25]:
        connection.sendall(b"\x00\xff noise\r\n\r\n")
    assert served.generate(4)["meta_info"]["completion_tokens"] == 4
    for connection in connections:
        connection.close()


@pytest.mark.parametrize(
    "body", [{"text": "x" * 10_000_000}, {"input_ids": [7] * 1_000_000}, b"[" * 1_000_000], ids=["text", "ids", "depth"]
)
def test_requests_of_megabytes_are_refused(served: Running, body: object) -> None:
    status, answer = served.post("/generate", body)
    assert status == 400
    assert b"longer than the model's context length" in answer or b"depth limit exceeded" in answer


def test_the_profile_is_not_needed_any_more(tmp_path: Path) -> None:
    with engine(tmp_path) as running:
        running.wait_ready()
        (tmp_path / "profile.yaml").unlink()
        assert running.generate(4)["meta_info"]["completion_tokens"] == 4


def test_sigterm_under_load_answers_everybody(tmp_path: Path) -> None:
    with engine(tmp_path, *speculating(), time_scale=0.02) as running:
        running.wait_ready()
        connections = [
            sent(running, "HTTP/1.1", stream=True, sampling_params={"max_new_tokens": 1500}) for _ in range(8)
        ]
        running.wait_for(lambda: "#running-req: 8" in running.log)
        running.process.send_signal(signal.SIGTERM)
        answers = [everything(connection) for connection in connections]
        assert all(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for answer in answers)
        assert running.ended() == 0


def test_it_says_when_it_is_behind_its_clock(tmp_path: Path) -> None:
    with engine(tmp_path, time_scale=1e-6) as running:  # a cycle in 10 ns, which no machine keeps to
        running.wait_ready()
        running.generate(3000)
        assert "simulated engine behind its clock: " in running.log
        late = json.loads(running.get("/server_info")[1])["simulated_late"]
        assert late["deliveries"] > 0
        assert late["worst_ms"] > 2


def test_a_slow_clock_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with engine(tmp_path, startup={"load_s": 0, "capture_s_per_graph": 0}, time_scale=1e9) as running:
        running.wait_for(lambda: "Uvicorn running" in running.log)
        connection = http.client.HTTPConnection(*address(running))
        connection.request("GET", "/ready")
        assert connection.getresponse().status == 503
        connection.close()
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == -signal.SIGTERM
