"""What the launches of a study say of its machine, level by level, in the cost model's own terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spectune.analysis.estimate import NORMAL_95
from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.sglang.hardware import MACHINES, Machine
from spectune.engines.sglang.launch_line.command_line import read_launch
from spectune.engines.sglang.resolution import Model, resolve
from spectune.engines.simulated.cost_model import graph_used, target_tokens
from spectune.engines.simulated.profile_schema import LEAST_CYCLE_MS
from spectune.engines.simulated.setup import Setup
from spectune.search import Status, TrialRecord
from spectune.space import DRAFTER, SearchSpace

MOST_CYCLE_MS = 1e6
MOST_TOKENS = 1e8  # of one request


@dataclass(frozen=True)
class Observed:
    """One level of one launch.

    Attributes:
        trial: Of the launch.
        candidate_id: Of what was launched.
        setup: The launch as SGLang resolves it, the drafter under the space's name for it.
        batch: Requests that ran at once.
        kv_ktokens: Thousands of KV tokens they held together, on average.
        prompt_tokens: Of a request, on average.
        output_tokens: Of its answer.
        cycle_ms: Time of a cycle, standstills for other requests' prompts left out where that is known.
        spread: Relative standard deviation of it within the launch.
        accept_length: Tokens per cycle.
        per_position: P(at least i drafts right), i from 1.
        by_class: Prompt class → accept length.
        requests_by_class: Prompt class → requests.
        verifies: Cycles the counters rest on.
        standstill_ms: What a cycle takes longer for other requests' prompts, on average; None where that is not known.
        decode_speed: tok/s of one request, its standstills for other requests' prompts included.
        output_throughput: tok/s of all requests.
        graph_used: Whether the target's forwards were replayed, as the log says; None if it does not.
    """

    trial: int
    candidate_id: str
    setup: Setup
    batch: int
    kv_ktokens: float
    prompt_tokens: float
    output_tokens: float
    cycle_ms: float
    spread: float
    accept_length: float
    per_position: tuple[float, ...]
    by_class: Mapping[str, float]
    requests_by_class: Mapping[str, int]
    verifies: float
    standstill_ms: float | None
    decode_speed: float
    output_throughput: float
    graph_used: bool | None

    def graph(self, *, verify_graph: bool) -> bool:
        """Whether the cost model replays a graph for it."""
        return graph_used(self.setup, self.batch, verify_graph=verify_graph)

    def tokens(self, *, verify_graph: bool) -> int:
        """Return the tokens of one forward of the target, padding included."""
        return target_tokens(self.setup, self.batch, verify_graph=verify_graph)


def observed(records: Sequence[TrialRecord], space: SearchSpace) -> list[Observed]:
    """Return every closed-loop level of every launch that ran as asked."""
    machine = _machine(records)
    return [one for record in records if record.status is Status.OK for one in _levels(record, space, machine)]


def setup_of(record: TrialRecord, machine: Machine) -> Setup:
    """Return a launch as SGLang resolves it."""
    line = read_launch(record.command.argv)
    env = {**record.command.env, **line.env}
    resolved = resolve(line.arguments, model=Model.unknown(), draft=None, machine=machine, env=env).resolved
    drafter = record.candidate.values.get(DRAFTER)
    setup = Setup.of(resolved, env, record.launch_index)
    return setup if drafter is None else replace(setup, drafter=str(drafter))


def _levels(record: TrialRecord, space: SearchSpace, machine: Machine) -> Iterator[Observed]:
    concurrency = {level.name: level.concurrency for level in space.workload.levels}
    setup = setup_of(record, machine)
    for level in record.levels:
        requests = concurrency.get(level.level)
        cycle = level.decode_cycle_ms or level.cycle_ms
        held = level.prompt_tokens + level.output_tokens / 2.0
        if requests is None:
            continue  # an open loop has no one batch
        sound = LEAST_CYCLE_MS <= cycle.est <= MOST_CYCLE_MS and 0.0 <= held <= MOST_TOKENS
        if not sound or not min(level.decode_speed.est, level.output_throughput.est) > 0.0:
            continue  # a damaged record, and no fit bears it
        batch = min(requests, setup.max_running)
        yield Observed(
            trial=record.trial,
            candidate_id=record.candidate.candidate_id,
            setup=setup,
            batch=batch,
            kv_ktokens=batch * held / 1000.0,
            prompt_tokens=level.prompt_tokens,
            output_tokens=level.output_tokens,
            cycle_ms=cycle.est,
            spread=min(1.0, cycle.relative_half_width / NORMAL_95),
            accept_length=max(1.0, level.accept_length.est),
            per_position=tuple(level.per_position),
            by_class={name: found.est for name, found in level.accept_length_by_class.items()},
            requests_by_class=level.requests_by_class,
            verifies=level.n_requests * max(1.0, level.output_tokens - 1.0) / max(1.0, level.accept_length.est),
            standstill_ms=_standstill_ms(level) if batch > 1 else None,
            decode_speed=level.decode_speed.est,
            output_throughput=level.output_throughput.est,
            graph_used=level.graph_used,
        )


def _standstill_ms(level: LevelMeasurement) -> float | None:
    return None if level.decode_cycle_ms is None else level.cycle_ms.est - level.decode_cycle_ms.est


def _machine(records: Sequence[TrialRecord]) -> Machine:
    """Return the machine whose defaults the launches take; their commands leave little to them."""
    on_cpu = any("cpu" in record.command.argv for record in records)
    return MACHINES["cpu" if on_cpu else "h200"]
