"""A launch of the simulated engine in virtual time: nothing is started, nothing sleeps, everything else is as ever."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from spectune.bench.canary import OUTPUT_TOKENS, Answer
from spectune.bench.course import GiveUp
from spectune.bench.level import LevelPlan, LevelRun, StopReason
from spectune.bench.prompts import TokenizedPrompt
from spectune.bench.records import RequestRecord
from spectune.engines.protocol import Effective, LaunchCommand
from spectune.engines.served import Served
from spectune.engines.simulated import tokens
from spectune.engines.simulated.failing import STARTING, last_words
from spectune.engines.simulated.fault_actions import SLOW_START_FACTOR
from spectune.engines.simulated.faults import POINTS, Failure
from spectune.engines.simulated.information import CONTEXT, Information
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.requests import Limits
from spectune.engines.simulated.scheduler_statistics import Statistics
from spectune.engines.simulated.start import open_launch
from spectune.engines.simulated.virtual import ClosedLoop, VirtualEngine
from spectune.engines.simulated.workers import worker_environment
from spectune.machine import Difference, Others
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.launched import EXCERPT_BYTES, Says
from spectune.search.launch.virtual_load import as_measured, loop_of, mean_length
from spectune.serving import EngineDied, StartupTimeout, Teardown

PROMPTS_READ = 96  # of the workload: the lengths and classes that stand for all of it
FEWEST_REQUESTS = 16
CRASHED, KILLED = 1, -9
CANARY_PATIENCE_S = 45.0
PROBE_TOKENS = 4  # of the generation that shows that an engine is ready
UNANSWERED = frozenset({"hang", "http_500"})  # of an engine that lives


class VirtualLaunch:
    """A launch in this process, on a clock of its own."""

    def __init__(self, profile: Profile, command: LaunchCommand, variables: Mapping[str, str]) -> None:
        """Resolve a launch.

        Args:
            profile: The machine.
            command: SGLang's launch command.
            variables: What tells the launch its place in the study.
        """
        self._words = command.argv
        env = command.environment(os.environ) | dict(variables)
        self._profile = profile
        self._command, self._launch, self._fired = open_launch(profile, command.argv, env)
        self._engine = VirtualEngine(self._launch)
        self._started_s = 0.0
        self._request_tokens = 0  # of the level served last
        self._passed: set[str] = set()
        self._died: EngineDied | None = None
        self._log = [
            f"SIMULATED in virtual time: profile {profile.name}, launch {self._launch.number}; no process was started",
            *self._command.notes,
            *self._launch.warnings(),
        ]

    def now(self) -> float:
        """Return simulated seconds since the launch."""
        return self._started_s + self._engine.clock_s

    async def start(self, timeout_s: float, says: Says) -> Mapping[str, Any]:
        """Take the time of the start, and meet the faults on the way."""
        says("starting in virtual time")
        startup = self._profile.file.startup
        slow = sum(fault.kind == "slow_start" and fault.at in STARTING for _, fault in self._launch.plan.due)
        wanted = startup.load_s * (1 + SLOW_START_FACTOR * slow)
        wanted += startup.capture_s_per_graph * len(self._launch.captured)
        failure = self._reach(POINTS[: POINTS.index("bench")])  # the first generation asked for is a part of warming up
        self._started_s = min(wanted, timeout_s)
        if (failure is not None and failure.kind in UNANSWERED) or wanted > timeout_s:
            self._started_s = timeout_s
            raise StartupTimeout(timeout_s, self.log_tail(1 << 16), "it does not answer")
        if failure is not None:
            raise self._dead_of(failure)
        self._engine.serve(ClosedLoop(1, 1, PROBE_TOKENS, PROBE_TOKENS), until="warmup")
        limits = Limits(CONTEXT, self._launch.kv_tokens)
        information = Information(self._command, self._launch, self._words, limits, {"total": self._started_s})
        return information.server(Statistics(1), host="", port=0)

    async def measure(
        self, plan: LevelPlan, prompts: PromptFeed, says: Says, give_up: GiveUp | None = None
    ) -> LevelRun:
        """Serve a closed loop, twice as long each time, until the live client would have ended it."""
        assert not plan.arrivals.open, "virtual time serves closed loops"
        says("serving in virtual time")
        failure = self._reach(("bench",))
        if failure is not None:
            return self._failed(failure, plan)
        sample = prompts.ahead(PROMPTS_READ)
        requests = max(FEWEST_REQUESTS, 3 * plan.arrivals.most_in_flight)
        while True:
            engine = copy.copy(self._engine)  # from the same moment on: a longer run only adds to a shorter one
            began_s = engine.clock_s
            loop = loop_of(plan, sample, requests)
            if (refused := self._refusal(loop)) is not None:
                return _nothing(plan, refused, "failures", 0.0)
            self._request_tokens = loop.tokens
            level = engine.serve(loop)
            run = as_measured(plan, level, give_up)
            if run is not None:
                self._engine = engine
                self._engine.clock_s = began_s + run.wall_s
                return run
            requests *= 2

    async def answers(
        self,
        prompts: Sequence[TokenizedPrompt],
        *,
        together: bool,
        temperature: float = 0.0,
    ) -> list[Answer]:
        """Answer as the served form would: the same to a prompt under every configuration, unless a fault says so."""
        failure = self._reach(("bench",))
        if failure is not None and failure.kind in UNANSWERED:
            self._engine.clock_s += CANARY_PATIENCE_S if failure.kind == "hang" else 0.0
            return [
                Answer(prompt.prompt.prompt_id, (), error=_error_of(failure, CANARY_PATIENCE_S)) for prompt in prompts
            ]
        if failure is not None:
            self._dead_of(failure)
            return []
        loop = ClosedLoop(
            concurrency=len(prompts) if together else 1,
            requests=len(prompts),
            prompt_tokens=mean_length(prompts),
            output_tokens=OUTPUT_TOKENS,
        )
        if (refused := self._refusal(loop)) is not None:
            return [Answer(prompt.prompt.prompt_id, (), error=refused) for prompt in prompts]
        level = self._engine.serve(loop)
        served = zip(range(level.first, level.first + len(prompts)), prompts, level.requests(), strict=True)
        return [self._answer(number, prompt, request, temperature) for number, prompt, request in served]

    def workers(self, title: str) -> list[Mapping[str, str]]:  # noqa: ARG002 (there are no others)
        """Return what each worker would have been given."""
        return [worker_environment(self._command.resolved, self._command.env)] * self._launch.setup.ranks

    def effective(self, server_info: Mapping[str, Any]) -> Effective:  # noqa: ARG002 (known without being told)
        """Return what the cost model counts with."""
        setup = self._launch.setup
        kind = "verify" if setup.speculative else "decode"
        return Effective(
            graph_batches={kind: self._launch.captured} if self._launch.captured else {},
            kv_tokens=self._launch.kv_tokens,
            max_running_requests=self._launch.most_running,
        )

    def served(self, begin_s: float, end_s: float, running: int | None) -> Served:  # noqa: ARG002 (always the same)
        """Return what the cost model counts with."""
        if running is None:
            return Served()
        fits = self._launch.running(running, self._request_tokens)
        return Served(self._launch.graph_used(running), running=fits, queued=running - fits)

    def died(self) -> EngineDied | None:
        """Return the death a fault brought about."""
        return self._died

    def machine_changes(self) -> tuple[Difference, ...]:
        """Return nothing: virtual time does not depend on the machine."""
        return ()

    def others(self) -> Others:
        """Return nothing, for the same reason."""
        return Others()

    async def stop(self, grace_s: float) -> Teardown:  # noqa: ARG002 (there is nothing to wait for)
        """End nothing."""
        return Teardown(left=0, forced=False, seconds=0.0)

    def log_tail(self, max_bytes: int = EXCERPT_BYTES) -> str:
        """Return the end of what a server would have said."""
        return "\n".join(self._log)[-max_bytes:]

    def _answer(self, number: int, prompt: TokenizedPrompt, request: RequestRecord, temperature: float) -> Answer:
        name = prompt.prompt.prompt_id
        if request.error is not None:
            return Answer(name, (), error=request.error)
        variant = self._launch.variant(number, temperature)
        sampled = self._launch.sampled_tokens(number)
        ids = tuple(islice(tokens.reply(prompt.input_ids, variant, sampled), OUTPUT_TOKENS))
        return Answer(name, ids, request.spec_verify_ct, request.spec_num_correct_drafts)

    def _reach(self, points: Iterable[str]) -> Failure | None:
        """Pass through points of the launch, counting their faults, up to the first that ends it."""
        decisive = self._engine.failure
        for point in points:
            for index, fault in self._launch.plan.due:
                if fault.at == point and point not in self._passed:
                    self._fired.note(index)
            self._passed.add(point)
            if decisive is not None and decisive.at == point:
                return decisive
        return None

    def _dead_of(self, failure: Failure) -> EngineDied:
        plan, setup = self._launch.plan, self._launch.setup
        self._log += last_words(failure, plan, self._command.doom, setup.mem_fraction).splitlines()
        refused = failure.kind == "port_in_use" or (failure.at, failure.kind) == ("startup", "unsupported")
        self._died = EngineDied(CRASHED if refused else KILLED, self.log_tail(1 << 16))
        return self._died

    def _failed(self, failure: Failure, plan: LevelPlan) -> LevelRun:
        """Return a level of which nothing comes."""
        if failure.kind not in UNANSWERED:
            self._dead_of(failure)
            return LevelRun((), None, "stopped", warmup_converged=False, client_cpu=0.0, wall_s=0.0)
        hangs = failure.kind == "hang"
        self._engine.clock_s += plan.hang_s if hangs else 0.0
        return _nothing(plan, _error_of(failure, plan.hang_s), "hang" if hangs else "failures", plan.hang_s)

    def _refusal(self, loop: ClosedLoop) -> str | None:
        """Return what is answered to requests that do not fit into the KV cache."""
        if loop.tokens <= self._launch.kv_tokens:
            return None
        return (
            f"HTTP 400: a request of {loop.tokens} tokens exceeds the KV cache of {self._launch.kv_tokens} tokens; "
            "shorter prompts, or more room for the cache (mem-fraction-static), would do"
        )


def _nothing(plan: LevelPlan, error: str, reason: StopReason, seconds: float) -> LevelRun:
    """Return a level of which every request failed."""
    record = RequestRecord("0", "unknown", 1, 0, 0, 0.0, None, seconds, (), 0, 0, (), None, error)
    records = (record,) * plan.arrivals.most_in_flight
    return LevelRun(records, None, reason, warmup_converged=False, client_cpu=0.0, wall_s=seconds)


def _error_of(failure: Failure, patience_s: float) -> str:
    if failure.kind == "hang":
        return f"no answer within {patience_s:g} s"
    return "HTTP 500: simulated internal error"
