"""How fast prompts are taken up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from spectune.calibration.observed import Observed
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.under_load import under_load
from spectune.search import TrialRecord

IF_UNKNOWN = 1.0
LEAST, MOST = 0.001, 1e6  # that a profile may say
FASTEST = 100.0  # times what the first tokens tell
TOLD = 0.002  # of a cycle: where the shortest prefill hides the speed, the slowest that does as well is taken


def by_first_tokens(ran: Sequence[TrialRecord]) -> float:
    """Return thousands of prompt tokens per second, from the time to the first token at the lightest load.

    The client, the tokenizer and the network have their share of that time, so prefills are no slower.
    """
    waits = [one.prompt_tokens / one.ttft_p50_ms for record in ran for one in record.levels[:1] if one.ttft_p50_ms > 0]
    return min(MOST, max(LEAST, median(waits))) if waits else IF_UNKNOWN


def by_standstills(profile: Profile, points: Sequence[Observed]) -> float:
    """Return the same from how long requests stood still while others' prompts were taken up; the profile's if unknown.

    Args:
        profile: With the prefill speed that the first tokens tell.
        points: Levels of launches.
    """
    known = [(one, one.standstill_ms) for one in points if one.standstill_ms is not None]
    slowest = profile.file.target.prefill_ktok_per_s

    def excess(speed: float) -> float:
        target = profile.file.target.model_copy(update={"prefill_ktok_per_s": speed})
        tried = Profile(profile.path, profile.file.model_copy(update={"target": target}))
        return fmean((standstill_ms(tried, one) - measured) / one.cycle_ms for one, measured in known)

    low, high = slowest, min(MOST, FASTEST * slowest)
    if not known or excess(low) <= TOLD:
        return slowest
    wanted = max(0.0, excess(high)) + TOLD
    for _ in range(20):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > wanted else (low, middle)
    return high


def standstill_ms(profile: Profile, one: Observed) -> float:
    """Return what a profile adds to a cycle of a level for others' prompts."""
    load = under_load(
        SimulatedLaunch(profile, one.setup), one.batch, prompt_tokens=one.prompt_tokens,
        output_tokens=one.output_tokens, accept_length=one.accept_length, cycle_ms=one.cycle_ms,
    )  # fmt: skip
    return load.cycle_ms - one.cycle_ms
