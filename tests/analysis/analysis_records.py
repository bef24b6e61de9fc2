"""Request records as a server of known speed and acceptance would give them."""

from __future__ import annotations

import random

from spectune.bench.records import RequestRecord


def made_record(
    *,
    prompt_class: str = "code",
    verifies: int = 0,
    correct: int = 0,
    error: str | None = None,
    chunks: tuple[tuple[float, int], ...] = ((0.1, 1), (0.2, 3)),
    histogram: tuple[int, ...] = (),
    sent_s: float = 0.0,
    finish_reason: str | None = "length",
    prompt_tokens: int = 20,
    cached_tokens: int = 0,
) -> RequestRecord:
    return RequestRecord(
        prompt_id="p",
        prompt_class=prompt_class,
        prompt_tokens=prompt_tokens,
        output_tokens=chunks[-1][1] if chunks else 0,
        cached_tokens=cached_tokens,
        sent_s=sent_s,
        first_token_s=chunks[0][0] if chunks else None,
        end_s=chunks[-1][0] if chunks else sent_s,
        chunks=chunks,
        spec_verify_ct=verifies,
        spec_num_correct_drafts=correct,
        spec_correct_drafts_histogram=histogram,
        finish_reason=finish_reason,
        error=error,
    )


def simulated_level(
    rng: random.Random,
    *,
    concurrency: int,
    cycle_s: float,
    acceptance: dict[str, float],
    steps: int,
    length_s: float,
    prefill_s: float = 0.05,
    cycles: int = 60,
) -> list[RequestRecord]:
    """A closed loop: every slot answers one request after the other; classes take turns."""
    records = []
    for slot in range(concurrency):
        now, turn = 0.0, slot
        while now < length_s:
            name = sorted(acceptance)[turn % len(acceptance)]
            turn += 1
            sent, time, tokens = now, now + prefill_s, 1
            chunks, histogram = [(time, 1)], [0] * (steps + 1)
            for _ in range(cycles):
                accepted = next((i for i in range(steps) if rng.random() > acceptance[name]), steps)
                histogram[accepted] += 1
                time, tokens = time + cycle_s * rng.uniform(0.9, 1.1), tokens + accepted + 1
                chunks.append((time, tokens))
            correct = sum(i * count for i, count in enumerate(histogram))
            records.append(
                made_record(
                    prompt_class=name,
                    verifies=cycles if steps else 0,
                    correct=correct,
                    chunks=tuple(chunks),
                    histogram=tuple(histogram) if steps else (),
                    sent_s=sent,
                )
            )
            now = time
    return records
