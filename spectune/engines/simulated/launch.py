"""One launch of the simulated machine: what its cycles cost and how often its drafts are right."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from spectune.counts import count
from spectune.engines.simulated import acceptance, cost_model, memory
from spectune.engines.simulated.faults import Failure, FaultPlan
from spectune.engines.simulated.forced_acceptance import forced_survival
from spectune.engines.simulated.profile import Profile
from spectune.engines.simulated.profile_schema import Fault, Kind
from spectune.engines.simulated.randomness import Pace, acceptance_draws
from spectune.engines.simulated.setup import Setup

PROFILE_VARIABLE = "SPECTUNE_SIM_PROFILE"
LAUNCH_VARIABLE = "SPECTUNE_SIM_LAUNCH"
HOURS_VARIABLE = "SPECTUNE_SIM_HOURS"
FIRED_VARIABLE = "SPECTUNE_SIM_FIRED"
"""File in which the launches of a study count their faults; without it every launch counts for itself."""

_REQUESTS_APART = 1_000_003  # between the sampled answers of two launches

WARMUP_REQUESTS = 4
"""Requests of clients that make up the point `warmup`; `bench` begins with the next one."""


class SimulatedLaunch:
    """The model of one launch, shared by the HTTP form and the one in virtual time.

    Attributes:
        profile: The machine.
        setup: The launch as resolved.
        number: Its number in the study.
        plan: Its faults.
        pace: Its noise.
    """

    def __init__(
        self,
        profile: Profile,
        setup: Setup,
        *,
        number: int = 0,
        hours: float = 0.0,
        fired: Mapping[int, int] | None = None,
        doom: Failure | None = None,
    ) -> None:
        """Set up a launch.

        Args:
            profile: The machine.
            setup: The launch as resolved.
            number: Its number in the study.
            hours: Study clock at the launch.
            fired: How often each fault has fired in the study, by index.
            doom: How SGLang's rules let it end.
        """
        self.profile, self.setup, self.number = profile, setup, number
        self.plan = FaultPlan.of(profile, setup, fired or {}, doom)
        self.pace = Pace(profile.file.noise, profile.file.seed, number, hours)
        self._survivals = lru_cache(maxsize=4096)(self._computed_survivals)
        self._forced = forced_survival(setup.algorithm, setup.depth, setup.environment)

    @cached_property
    def effects(self) -> float:
        """The product of the effects that hold for this launch."""
        return self.profile.factor(self.setup.values)

    @cached_property
    def kv_tokens(self) -> int:
        """Capacity of the KV cache."""
        return memory.kv_tokens(self.profile.file, self.setup)

    @property
    def most_running(self) -> int:
        """Requests that run at once at most, as the engine bounds them (facts, section 1.1)."""
        return max(1, min(self.setup.max_running, self.kv_tokens // 2))

    def running(self, concurrency: int, tokens: int) -> int:
        """Return how many of `concurrency` requests of `tokens` tokens each run at once."""
        return max(1, min(concurrency, self.most_running, self.kv_tokens // max(1, tokens)))

    def cycle_ms(self, batch: int, kv_tokens: float) -> float:
        """Return the noiseless time of one cycle of `batch` requests that hold `kv_tokens` tokens together."""
        return cost_model.cycle_ms(self.profile.file, self.setup, batch, kv_tokens / 1000, self.effects)

    @property
    def kv_ms_per_token(self) -> float:
        """What one KV token adds to a cycle."""
        return self.effects * self.profile.file.target.kv_ms_per_ktoken / 1000

    def prefill_ms(self, tokens: float) -> float:
        """Return the time to take up `tokens` tokens of prompts; no forward takes less than a replayed one of one."""
        file = self.profile.file
        return max(file.host_ms + file.target.step_ms.graph, self.prefill_ms_by_tokens(tokens))

    def prefill_ms_by_tokens(self, tokens: float) -> float:
        """Return what the tokens of prompts take where there are many of them."""
        return tokens / self.profile.file.target.prefill_ktok_per_s

    @cached_property
    def captured(self) -> tuple[int, ...]:
        """Batch sizes with a graph of the target."""
        return cost_model.target_captured(self.setup, verify_graph=self.profile.file.target.verify_graph)

    def graph_used(self, batch: int) -> bool:
        """Whether the target replays a graph for `batch` requests."""
        return cost_model.graph_used(self.setup, batch, verify_graph=self.profile.file.target.verify_graph)

    def survivals(self, prompt_class: str | None, context_tokens: float) -> tuple[float, ...]:
        """Return P(at least d drafts right) for d = 1 … depth; empty without speculation."""
        if not self.setup.speculative:
            return ()
        if self._forced is not None:
            return self._forced
        varies = self.profile.file.acceptance.context_halving_ktokens > 0
        return self._survivals(prompt_class, context_tokens if varies else 0.0)

    def accept_length(self, prompt_class: str | None, context_tokens: float) -> float:
        """Return the mean tokens per cycle."""
        if prompt_class == "builtin:mixed":
            lengths = [self.accept_length(name, context_tokens) for name in acceptance.MIXED_CLASSES]
            return sum(lengths) / len(lengths)
        return acceptance.accept_length(self.survivals(prompt_class, context_tokens))

    def warnings(self, prompt_class: str | None = None) -> list[str]:
        """Return what the profile does not know of this launch."""
        if not self.setup.speculative:
            return []
        named = None if prompt_class == "builtin:mixed" else prompt_class
        return acceptance.unknown_names(self.profile.file.acceptance, self.setup.drafter, named)

    def unlike_profile(self) -> list[str]:
        """Return what the figures stand for where the launch asks for fewer GPUs than the profile describes."""
        ranks, there = self.setup.ranks, self.profile.file.gpu.count
        if ranks >= there:
            return []
        asked = f"the launch asks for {count(ranks, 'GPU')}"
        return [f"{asked}, but memory and speed are those of all {there} GPUs of the profile"]

    def fault(self, kind: Kind, request: int) -> Fault | None:
        """Return the fault of a kind that is in force for a request, by its number within the launch."""
        for _, fault in self.plan.due:
            past = fault.at != "shutdown" and (fault.at != "bench" or request >= WARMUP_REQUESTS)
            if fault.kind == kind and past:
                return fault
        return None

    def variant(self, request: int, temperature: float) -> int | None:
        """Return which answer a request gets: None for the greedy one, otherwise a number that stands for another.

        Garbage differs from launch to launch, sampled answers from request to request.
        """
        if self.fault("garbage_output", request) is not None:
            return self.number
        return None if temperature <= 0 else (self.number + 1) * _REQUESTS_APART + request

    def sampled_tokens(self, request: int) -> int | None:
        """Return how many first tokens of an answer are sampled where one is; None for all.

        A greedy verify leaves the first one, which comes from the prefill (facts: sglang#31214).
        """
        return None if self.fault("ignores_temperature", request) is None else 1

    def aborts(self, request: int) -> bool:
        """Whether a request is one of those a `partial_failure` gives up after its first cycle."""
        fault = self.fault("partial_failure", request)
        if fault is None or fault.share is None:
            return False
        draws = acceptance_draws(self.profile.file.seed, self.number, _ABORT_BLOCK, request, 1)
        return bool(draws[0, 0] < fault.share)

    def slow_requests(self) -> tuple[int, float]:
        """Return how many first requests are slow, and the factor on the cycles they take part in."""
        slow = self.profile.file.noise.first_requests_slow
        return slow.requests, slow.factor

    def _computed_survivals(self, prompt_class: str | None, context_tokens: float) -> tuple[float, ...]:
        table, setup = self.profile.file.acceptance, self.setup
        probabilities = acceptance.position_probabilities(
            table, setup.drafter, prompt_class, context_tokens, setup.depth
        )
        return acceptance.survival(setup, probabilities, acceptance.branching_of(table, setup.drafter))


_ABORT_BLOCK = 1 << 32  # a block of draws that no request verifies often enough to reach
