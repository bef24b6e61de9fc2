"""The canary's questions to servers that answer badly: every answer is read, or says why there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import virtual_time
from aiohttp import web
from bench_server import FakeEngine, serving, tokenized

from spectune.bench.canary import OUTPUT_TOKENS, Answer, ask

GOOD = {"text": " a", "output_ids": [5, 6], "meta_info": {"completion_tokens": 2, "spec_verify_ct": 1}}


def asked(engine: FakeEngine, *, together: bool = True, patience_s: float = 20.0, temperature: float = 0.0) -> Any:
    async def once() -> list[Answer]:
        async with serving(engine) as client:
            prompts = [tokenized(number) for number in range(3)]
            return await ask(
                client.base_url, prompts, together=together, patience_s=patience_s, temperature=temperature
            )

    return virtual_time.run(once())


def replying(*, status: int = 200, body: bytes = b"", json: Any = None) -> FakeEngine:
    async def answer(_engine: FakeEngine, _request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response(json) if json is not None else web.Response(status=status, body=body)

    return FakeEngine(answer=answer)


@pytest.mark.parametrize("together", [True, False])
def test_answers_come_in_the_order_of_the_prompts(*, together: bool) -> None:
    engine = replying(json=GOOD)
    answers = asked(engine, together=together, temperature=0.7)
    assert [answer.prompt_id for answer in answers] == ["p0", "p1", "p2"]
    assert {answer.output_ids for answer in answers} == {(5, 6)}
    assert engine.bodies[0]["sampling_params"] == {"temperature": 0.7, "max_new_tokens": OUTPUT_TOKENS}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (replying(status=500, body=b"boom"), "HTTP 500: boom"),
        (replying(status=503), "HTTP 503"),
        (replying(body=b""), "JSONDecodeError"),
        (replying(body=b"<html>sign in</html>"), "JSONDecodeError"),
        (replying(body=b"\xff\x00" * 5000), "JSONDecodeError"),
        (replying(body=b"[" * 100_000), "JSONDecodeError"),
        (replying(body=b"null"), "no meta_info"),
        (replying(json=[GOOD]), "no meta_info"),
        (replying(json={"error": {"message": "no"}}), "no meta_info"),
        (replying(json={"meta_info": []}), "no meta_info"),
    ],
)
def test_what_is_no_answer_says_why(engine: FakeEngine, words: str) -> None:
    answers = asked(engine)
    assert answers
    for answer in answers:
        assert words in (answer.error or "")
        assert len(answer.error or "") < 700
        assert answer.output_ids == ()


@pytest.mark.parametrize(
    "told",
    [{}, {"output_ids": None}, {"output_ids": ["a"]}, {"output_ids": []}, {"text": None}, {"text": 5},
     {"meta_info": {"spec_verify_ct": -3, "spec_num_correct_drafts": "x", "spec_correct_drafts_histogram": {}}}],
)  # fmt: skip
def test_odd_fields_are_no_failure(told: dict[str, Any]) -> None:
    answers = asked(replying(json={**GOOD, **told}))
    assert len(answers) == 3
    for answer in answers:
        assert answer.error is None
        assert answer.verifies >= 0
        assert Answer.from_json(answer.to_json()) == answer


def test_a_server_that_never_answers_is_given_up() -> None:
    async def silent(_engine: FakeEngine, _request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    assert [answer.error for answer in asked(FakeEngine(answer=silent), patience_s=0.2)] == [
        "no answer within 0.2 s"
    ] * 3


def test_a_server_that_dies_of_the_second_question() -> None:
    async def dying(engine: FakeEngine, request: web.Request, _body: dict[str, Any]) -> web.StreamResponse:
        if len(engine.seen) > 1:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(GOOD)

    first, *others = asked(FakeEngine(answer=dying), together=False)
    assert first.error is None
    assert all(answer.error for answer in others)
