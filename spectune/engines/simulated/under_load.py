"""What a closed loop measures beyond its cycles: requests stand still while others' prompts are taken up."""

from __future__ import annotations

from dataclasses import dataclass

from spectune.engines.simulated.launch import SimulatedLaunch


@dataclass(frozen=True)
class UnderLoad:
    """The figures that a search measures, as the mean over requests.

    Attributes:
        prompt_tokens: Of each request.
        output_tokens: Of each answer.
        cycle_ms: Time of a cycle with what a request stands still for others' prompts before it.
        decode_speed: tok/s that one request sees after its first token.
        output_throughput: tok/s of all requests together, the time of their own prefills included.
    """

    prompt_tokens: float
    output_tokens: float
    cycle_ms: float
    decode_speed: float
    output_throughput: float


def under_load(
    launch: SimulatedLaunch,
    running: int,
    *,
    prompt_tokens: float,
    output_tokens: float,
    accept_length: float,
    cycle_ms: float,
) -> UnderLoad:
    """Return what a fixed number of requests in flight gives when each is followed by the next.

    A request decodes for C = (output − 1) / accept length cycles. Before every one but its first, each of the others
    has ended with a chance of 1/C, and the prompts that follow are taken up in one prefill.

    Args:
        launch: What serves them.
        running: Requests that run at once.
        prompt_tokens: Of each, none of them cached.
        output_tokens: Of each answer; the first token comes from the prefill.
        accept_length: Tokens per cycle.
        cycle_ms: Time of a cycle without standstills.
    """
    cycles = max(1.0, (output_tokens - 1) / accept_length)
    standstill_ms = _expected_prefill_ms(launch, running - 1, 1 / cycles, prompt_tokens)
    seen_ms = cycle_ms + standstill_ms * (cycles - 1) / cycles
    round_ms = cycles * (cycle_ms + standstill_ms) + launch.prefill_ms(prompt_tokens)
    return UnderLoad(
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cycle_ms=seen_ms,
        decode_speed=1000 * accept_length / seen_ms,
        output_throughput=1000 * running * output_tokens / round_ms,
    )


def _expected_prefill_ms(launch: SimulatedLaunch, others: int, chance: float, prompt_tokens: float) -> float:
    """Return the mean time of the prefill before a cycle, nothing where no request joins.

    As many join as a binomial distribution has; beyond the first few each adds its tokens' time, and those few take
    no less than the shortest prefill.

    Args:
        launch: Its prefills.
        others: Requests any of which may be followed by a new one.
        chance: Of each.
        prompt_tokens: Of the new one.
    """
    per_prompt = launch.prefill_ms_by_tokens(prompt_tokens)
    expected = others * chance * per_prompt
    share = (1.0 - chance) ** others
    for joining in range(1, others + 1):
        short = launch.prefill_ms(joining * prompt_tokens) - joining * per_prompt
        if short <= 0.0 or chance >= 1.0:
            break
        share *= (others - joining + 1) / joining * chance / (1.0 - chance)
        expected += share * short
    return expected
