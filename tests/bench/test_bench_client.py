import asyncio
import json
import re
import time

import orjson
import pytest
import virtual_time
from aiohttp import web
from bench_server import FakeEngine, chunk, counters, open_stream, serving, tokenized

from spectune.bench.client import GenerateClient, Sampling
from spectune.bench.exchange import Exchange
from spectune.bench.prompts import Prompt, TokenizedPrompt

SAMPLING = Sampling(output_tokens=64)


def ask(engine, *, prompt=None, sampling=SAMPLING, on_tokens=None, **client):
    async def once():
        async with serving(engine, **client) as connected:
            exchange = Exchange(prompt or tokenized(1), time.monotonic())
            await connected.generate(exchange, sampling, on_tokens=on_tokens)
            return exchange.record()

    return virtual_time.run(once())


def answering(*pieces):
    """An answer of exactly these bytes."""

    async def answer(_engine, request, _body):
        response = await open_stream(request)
        for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    return FakeEngine(answer=answer)


def test_a_good_answer_becomes_a_complete_record():
    told = []
    record = ask(FakeEngine(cycles=5), on_tokens=lambda _time, new: told.append(new))
    assert record.error is None
    assert record.completed
    assert record.finish_reason == "length"
    assert (record.prompt_id, record.prompt_class) == ("p1", "code")
    assert (record.prompt_tokens, record.cached_tokens, record.output_tokens) == (3, 1, 16)
    assert [tokens for _, tokens in record.chunks] == [1, 4, 7, 10, 13, 16]
    assert told == [1, 3, 3, 3, 3, 3]
    assert (record.spec_verify_ct, record.spec_num_correct_drafts) == (5, 10)
    assert record.spec_correct_drafts_histogram == (0, 0, 5)
    assert record.sent_s <= record.first_token_s == record.chunks[0][0] <= record.chunks[-1][0] <= record.end_s


def test_the_request_carries_ids_and_sampling():
    engine = FakeEngine(cycles=1)
    own = TokenizedPrompt(Prompt("own", "chat", text="x", output_tokens=9), [5, 6])
    ask(engine, prompt=own, sampling=Sampling(output_tokens=64, temperature=0.5, ignore_eos=True))
    assert engine.bodies == [
        {
            "input_ids": [5, 6],
            "sampling_params": {"temperature": 0.5, "max_new_tokens": 9, "ignore_eos": True},
            "stream": True,
        }
    ]


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (counters(4, 3), (4, 12, (0, 0, 0, 4))),
        ({"spec_verify_ct": 4, "spec_accept_token_num": 6, "spec_accept_histogram": [1, 0, 3]}, (4, 6, (1, 0, 3))),
        ({"spec_verify_ct": 4, "spec_accepted_drafts": 6}, (4, 6, ())),
        ({"spec_verify_ct": 4}, (4, 5, ())),
        ({}, (0, 0, ())),
    ],
)
def test_counters_under_the_names_of_every_engine_version(meta, expected):
    finish = {"type": "stop", "matched": 2}
    record = ask(answering(chunk(1), chunk(10, finish=finish, **meta), b"data: [DONE]\n\n"))
    assert record.completed
    found = (record.spec_verify_ct, record.spec_num_correct_drafts, record.spec_correct_drafts_histogram)
    assert found == expected


def test_counts_that_cannot_be_are_not_believed():
    odd = {"spec_correct_drafts_histogram": [-5, 12], "spec_verify_ct": 4, "spec_num_correct_drafts": 1e300}
    record = ask(answering(chunk(1), chunk(10, finish={"type": "stop"}, cached_tokens=100, **odd)))
    assert record.completed
    assert (record.cached_tokens, record.spec_correct_drafts_histogram) == (record.prompt_tokens, ())
    assert orjson.loads(record.to_json())["spec_num_correct_drafts"] == record.spec_num_correct_drafts


def test_an_engine_that_sends_only_new_ids_counts_right():
    last = chunk(5, finish={"type": "stop"}, completion_tokens=15)
    assert ask(answering(chunk(1), chunk(10), last, b"data: [DONE]\n\n")).completed


def test_generated_text_that_looks_like_counters_is_not_counted():
    text = 'say "completion_tokens": 99, "finish_reason": null'
    record = ask(answering(chunk(1, text=text), chunk(2, text=text, finish={"type": "stop"}), b"data: [DONE]\n\n"))
    assert record.completed
    assert record.output_tokens == 2


@pytest.mark.parametrize(
    ("pieces", "complaint"),
    [
        ([], "closed the stream after 0 tokens"),
        ([chunk(1), chunk(4)], "after 4 tokens, without a finish reason"),
        ([chunk(1), chunk(4)[:-40]], "in the middle of a chunk"),
        ([chunk(1), b"data: {broken\n\n", chunk(4)], "malformed chunk: {broken"),
        ([chunk(1), b"data: \xff\xfe\n\n"], "malformed chunk"),
        ([chunk(1), b"data: [1, 2]\n\n"], "unexpected chunk"),
        ([b'data: {"error": {"message": "out of cache"}}\n\n', b"data: [DONE]\n\n"], "reported: out of cache"),
        ([b'data: {"error": "plain words"}\n\n'], "reported: plain words"),
        ([chunk(5), chunk(3)], "fell from 5 to 3"),
        ([chunk(1), b'data: {"completion_tokens": 3}\n\n', b"data: [DONE]\n\n"], "last chunk is malformed"),
        ([chunk(1, finish={"type": "abort", "message": "killed"}), b"data: [DONE]\n\n"], "aborted the request: killed"),
        ([chunk(1, finish={"type": "stop"}, prompt_tokens=5), b"data: [DONE]\n\n"], "counted 5 prompt tokens, but 3"),
        ([b"hello\n\n"], "no stream of events: b'hello"),
        ([chunk(0, finish={"type": "stop"}), b"data: [DONE]\n\n"], "ended the answer without a token"),
        ([chunk(1), chunk(200)], "counted 200 tokens, but was asked for at most 64"),
        ([b'data: {"completion_tokens": ' + b"9" * 5000 + b"}\n\n"], "tokens, but was asked for at most 64"),
        ([chunk(10), chunk(20, finish={"type": "stop"}, completion_tokens=40)], "40 tokens, but sent the ids of 20"),
        ([b'data: {"error": "\\u001b[31mred\\n\\nline"}\n\n'], r"the server reported: \x1b[31mred line"),
    ],
)
def test_bad_answers_become_records_with_words(pieces, complaint):
    record = ask(answering(*pieces))
    assert record.failed
    assert complaint in record.error


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_http_errors_become_records(status):
    async def refuse(_engine, _request, _body):
        return web.Response(status=status, text=json.dumps({"error": {"message": "too long"}}))

    record = ask(FakeEngine(answer=refuse))
    assert record.error.startswith(f"HTTP {status}: ")
    assert "too long" in record.error


def test_a_stream_that_hangs_fails_by_the_tokens_it_does_not_give():
    async def hang(_engine, request, _body):
        response = await open_stream(request)
        await response.write(chunk(1))
        while True:  # alive, but without a new token
            await response.write(chunk(1))
            await asyncio.sleep(0.02)

    record = ask(FakeEngine(answer=hang), inactivity_s=0.3)
    assert record.error == "no new token for 0.3 s"
    assert record.output_tokens == 1


def test_a_server_that_never_answers_fails():
    async def silent(_engine, _request, _body):
        await asyncio.sleep(60)

    assert ask(FakeEngine(answer=silent), inactivity_s=0.2).error == "no new token for 0.2 s"


def test_a_slow_stream_with_progress_does_not_hang():
    engine = FakeEngine(cycles=8, cycle_s=0.1)
    assert ask(engine, inactivity_s=0.6).completed


def test_a_closed_connection_becomes_a_record():
    async def close(_engine, request, _body):
        response = await open_stream(request)
        await response.write(chunk(1))
        request.transport.abort()
        return response

    record = ask(FakeEngine(answer=close))
    assert record.failed
    assert record.output_tokens == 1


def test_no_server_becomes_a_record():
    async def once():
        server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        async with GenerateClient(f"http://127.0.0.1:{port}") as client:
            exchange = Exchange(tokenized(1), time.monotonic())
            await client.generate(exchange, SAMPLING)
            return exchange.record(), await client.flush_cache(timeout_s=0.1)

    record, flushed = virtual_time.run(once())
    assert "ConnectionRefusedError" in record.error
    assert not flushed


def test_a_connection_serves_one_request_after_another():
    seen = []

    async def noting(engine, request, body):
        seen.append(request.transport.get_extra_info("peername"))
        return await FakeEngine.stream(engine, request, body)

    async def thrice():
        async with serving(FakeEngine(answer=noting, cycles=2)) as client:
            for number in range(3):
                exchange = Exchange(tokenized(number), time.monotonic())
                await client.generate(exchange, SAMPLING)
                assert exchange.record().completed

    virtual_time.run(thrice())
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_a_request_that_crosses_the_end_of_an_idle_connection_is_sent_once_more():
    answer = chunk(1) + chunk(4, finish={"type": "stop"})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(answer)

    async def once(reader, writer):
        length = re.search(rb"Content-Length: (\d+)", await reader.readuntil(b"\r\n\r\n"))
        await reader.readexactly(int(length[1]))
        writer.write(head + answer)
        writer.close()  # without having said so

    async def five_times():
        server = await asyncio.start_server(once, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, GenerateClient(f"http://127.0.0.1:{port}") as client:
            for number in range(5):
                exchange = Exchange(tokenized(number), time.monotonic())
                await client.generate(exchange, SAMPLING)
                assert exchange.record().error is None

    virtual_time.run(five_times())


def test_what_is_not_http_becomes_a_record():
    async def once():
        async def babble(_reader, writer):
            writer.write(b"+OK POP3 ready\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(babble, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, GenerateClient(f"http://127.0.0.1:{port}") as client:
            exchange = Exchange(tokenized(1), time.monotonic())
            await client.generate(exchange, SAMPLING)
            return exchange.record()

    assert "the answer is not HTTP" in virtual_time.run(once()).error


def test_a_fault_of_this_client_is_no_failure_of_the_request():
    def broken(_time, _new):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask(FakeEngine(cycles=2), on_tokens=broken)


def test_proxies_of_the_environment_are_bypassed(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(FakeEngine(cycles=1)).completed


def test_the_cache_is_flushed_once_the_engine_is_idle():
    engine = FakeEngine(busy_flushes=3)

    async def flush(timeout_s):
        async with serving(engine) as client:
            return await client.flush_cache(timeout_s=timeout_s, pause_s=0.01)

    assert virtual_time.run(flush(10.0))
    assert engine.flushes == 4
    engine.busy_flushes = 10**6
    assert not virtual_time.run(flush(0.1))
