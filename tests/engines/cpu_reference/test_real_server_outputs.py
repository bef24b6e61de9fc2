"""On the real server, greedy float32 output is the same with and without speculation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from engine_lives import OUTPUT_TOKENS, PROMPTS, Lives, Output, Running


@pytest.fixture
def baseline(real_lives: Lives) -> Sequence[Output]:
    """What the target says without speculation."""
    return real_lives.of("baseline").outputs


@pytest.mark.engine
def test_baseline_is_long_and_not_repetitive(baseline: Sequence[Output]) -> None:
    assert all(output.accept_length is None for output in baseline)
    assert {len(output.ids) for output in baseline} == {OUTPUT_TOKENS}
    assert min(len(set(output.ids)) for output in baseline) >= 8
    assert len({output.ids for output in baseline}) == len(baseline)


def check_same(speculated: Sequence[Output], baseline: Sequence[Output], least_accepted: float) -> None:
    differing = [
        (plain.prompt, plain.ids, other.ids)
        for plain, other in zip(baseline, speculated, strict=True)
        if plain.ids != other.ids
    ]
    assert not differing
    lengths = [output.accept_length for output in speculated if output.accept_length is not None]
    assert len(lengths) == len(speculated), "requests without a verify: the server did not speculate"
    assert sum(lengths) / len(lengths) > least_accepted


@pytest.mark.engine
@pytest.mark.parametrize("name", ["eagle3-chain", "eagle3-tree", "standalone"])
def test_speculation_does_not_change_greedy_output(real_lives: Lives, baseline: Sequence[Output], name: str) -> None:
    check_same(real_lives.of(name).outputs, baseline, 2.5)


@pytest.mark.engine
@pytest.mark.services  # compiles C++ when it starts
def test_ngram_does_not_change_greedy_output(real_lives: Lives) -> None:
    """Each token is what the target itself finds likeliest after all before it; no other launch is needed for that."""
    running = real_lives.serving("ngram")
    outputs = [running.output(prompt) for prompt in PROMPTS]
    lengths = [output.accept_length for output in outputs if output.accept_length is not None]
    assert len(lengths) == len(outputs), "requests without a verify: the server did not speculate"
    assert sum(lengths) / len(lengths) > 1.0
    for output in outputs:
        assert likeliest(running, output) == output.ids, output.prompt


def likeliest(running: Running, output: Output) -> tuple[int, ...]:
    """What one prefill of prompt and answer says the answer should have been."""
    sampling = {"sampling_params": {"max_new_tokens": 1, "temperature": 0}, "return_logprob": True}
    alone = running.post("/generate", {"text": output.prompt, "logprob_start_len": 0, **sampling}).json()
    prompt = [token for _, token, _ in alone["meta_info"]["input_token_logprobs"]]
    whole = {"input_ids": [*prompt, *output.ids], "logprob_start_len": len(prompt) - 1, "top_logprobs_num": 1}
    tops = running.post("/generate", {**whole, **sampling}).json()["meta_info"]["input_top_logprobs"]
    return tuple(top[0][1] for top in tops if top)
