"""How well a profile predicts launches it was not fitted on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from spectune.calibration.acceptance import expected_length
from spectune.calibration.calibrate import calibrate
from spectune.calibration.observed import Observed, observed
from spectune.counts import count
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.under_load import under_load
from spectune.errors import SpectuneError
from spectune.search import TrialRecord
from spectune.space import SearchSpace

FOLDS = 10
UNFIT = 0.1
"""Median error of a speed beyond which a profile ranks candidates by its own mistakes."""


@dataclass(frozen=True)
class Checked:
    """Relative errors of one figure at one level, over candidates that were left out of the fit.

    Attributes:
        figure: `accept_length`; `cycle_ms`, a cycle between prefills; or `decode_speed`, which has them in it.
        batch: Running requests.
        candidates: How many.
        median: Of the absolute errors.
        p90: 90th percentile of them.
        bias: Mean error; positive predicts too much.
    """

    figure: str
    batch: int
    candidates: int
    median: float
    p90: float
    bias: float

    def to_json(self) -> dict[str, Any]:
        """Return the object `--json` prints."""
        return asdict(self)


def check(
    records: Sequence[TrialRecord], space: SearchSpace, environment: Mapping[str, Any]
) -> tuple[list[Checked], list[str]]:
    """Fit again without some candidates, all their launches left out, and predict those.

    Cross-validation with as many folds as there are candidates, ten at most; the speed of one request is what the study
    measured and the simulated engine would give under its load, standstills for other requests' prompts included. Fits
    that are left with too little are passed over.

    Returns:
        The errors, and the drafters that could not be left out since no other candidate has them.
    """
    points = observed(records, space)
    ids = list(dict.fromkeys(one.candidate_id for one in points))
    folds = min(FOLDS, len(ids))
    unknown: dict[str, None] = {}
    errors: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for fold in range(folds):
        left_out = set(ids[fold::folds])
        rest = [record for record in records if record.candidate.candidate_id not in left_out]
        try:
            profile = calibrate(rest, space, environment, name="fold", study="fold").profile()
        except SpectuneError:
            continue
        for one in (one for one in points if one.candidate_id in left_out):
            drafter = one.setup.drafter
            if drafter is not None and drafter not in profile.file.acceptance.drafters:
                unknown[drafter] = None
                continue
            for figure, error in errors_of(profile, one):
                errors[figure, one.batch][one.candidate_id].append(error)
    return [_summed(figure, batch, found) for (figure, batch), found in sorted(errors.items())], list(unknown)


def errors_of(profile: Profile, one: Observed) -> Iterator[tuple[str, float]]:
    """Yield the figures of a level and ln(predicted / measured) of each; the profile knows its drafter."""
    length = expected_length(profile.file.acceptance, one)
    launch = SimulatedLaunch(profile, one.setup)
    cycle = launch.cycle_ms(one.batch, one.kv_ktokens * 1000)
    load = under_load(
        launch, one.batch, prompt_tokens=one.prompt_tokens, output_tokens=one.output_tokens, accept_length=length,
        cycle_ms=cycle,
    )  # fmt: skip
    if one.setup.speculative:
        yield "accept_length", math.log(length / one.accept_length)
    yield "cycle_ms", math.log(cycle / one.cycle_ms)
    yield "decode_speed", math.log(load.decode_speed / one.decode_speed)


def unfit(errors: Sequence[Checked]) -> str | None:
    """Say why a profile is not to be predicted with; None where nothing speaks against it."""
    known = [one for one in errors if one.figure == "decode_speed"]
    if not known:
        return "how well it predicts is not known"
    worst = max(known, key=lambda one: one.median)
    if worst.median <= UNFIT:
        return None
    return (
        f"with {count(worst.batch, 'request')} it predicts speeds {worst.median:.0%} off (median), and beyond "
        f"{UNFIT:.0%} it ranks candidates by its own mistakes"
    )


def _summed(figure: str, batch: int, by_candidate: Mapping[str, list[float]]) -> Checked:
    means = np.array([np.mean(found) for found in by_candidate.values()])
    sizes = np.abs(np.expm1(means))
    return Checked(
        figure, batch, len(means), float(np.median(sizes)), float(np.quantile(sizes, 0.9)),
        float(np.expm1(means.mean())),
    )  # fmt: skip
