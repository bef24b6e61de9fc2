"""The facts one server start left in its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spectune.engines.sglang.rules.names import reported_algorithm

GraphKind = Literal["decode", "verify", "draft", "draft_extend", "prefill"]


@dataclass(frozen=True, slots=True)
class Capture:
    """CUDA graphs of one kind; of several ranks the largest figures.

    Attributes:
        kind: What runs in them.
        batches: Numbers of requests captured, ascending; empty where the version does not log them.
        tokens_per_request: Width of one request, N for a verify.
        seconds: Time it took; None while unfinished, or unsaid.
        memory_gb: Memory the graphs hold.
        finished: Whether the end was logged.
    """

    kind: GraphKind
    batches: tuple[int, ...] = ()
    tokens_per_request: int | None = None
    seconds: float | None = None
    memory_gb: float | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """One model's weights on one rank; of several ranks the largest figures.

    Attributes:
        architecture: Class of the model, such as `LlamaForCausalLMEagle3`.
        seconds: Time of loading; None where neither a time nor two time stamps were logged.
        memory_gb: GPU memory they took.
    """

    architecture: str
    seconds: float | None
    memory_gb: float | None


@dataclass(frozen=True, slots=True)
class DecodeInterval:
    """One `Decode batch` line: `decode_log_interval` steps of one data-parallel rank.

    Attributes:
        time_s: Seconds since the epoch, in the reader's time zone; None without a time stamp.
        rank: Prefix of the process, such as `DP0 TP0`; empty for a single one.
        running: Requests in the batch at the end of the interval.
        accept_length: Mean tokens per verify, bonus token included; None without speculation. The accept rate of
            the line is not kept: up to about 0.5.10 it is another quantity.
        tok_s: Tokens per second of all requests of the rank, waiting and prefill in the interval included.
        in_graph: Whether the last step ran in a CUDA graph; None on a device without them.
        queued: Requests waiting.
        usage: Share of the KV cache in use.
        first: First of its rank: its speed counts the time since the start (sglang#5502).
        pure: No prefill of its rank since the interval before, so its speed is that of decoding alone.
    """

    time_s: float | None
    rank: str
    running: int
    accept_length: float | None
    tok_s: float
    in_graph: bool | None
    queued: int
    usage: float | None
    first: bool
    pure: bool


@dataclass(frozen=True, slots=True)
class Prefills:
    """All `Prefill batch` lines together.

    Attributes:
        batches: How many.
        requests: Sequences that began.
        new_tokens: Prompt tokens computed.
        cached_tokens: Prompt tokens taken from the prefix cache.
        most_queued: Longest queue seen.
    """

    batches: int = 0
    requests: int = 0
    new_tokens: int = 0
    cached_tokens: int = 0
    most_queued: int = 0

    @property
    def cached_share(self) -> float:
        """Share of the prompt tokens that came from the cache; 0 before the first."""
        total = self.new_tokens + self.cached_tokens
        return self.cached_tokens / total if total else 0.0


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """One start of a server.

    Attributes:
        arguments: Resolved arguments by SGLang's field names; empty when the log begins later.
        rewritten: SGLang's own sentences on what it chose or overrode.
        weights: The target's, then the drafters'.
        captures: CUDA graphs by kind.
        kv_tokens: Tokens the KV cache holds; of several ranks the fewest.
        max_running_requests: Requests that may run at once, per data-parallel rank, as the scheduler reduced it.
        context_length: Longest request.
        decode: Decode intervals in order; of a very long log an even sample that always has the first.
        decode_lines: How many there were.
        most_running: Largest batch seen.
        most_queued: Longest queue seen.
        peak_usage: Highest share of the KV cache in use.
        prefills: All prefill lines together.
        retractions: Requests thrown out of the KV cache and begun again.
        errors: The last lines that name an error.
        nccl: Variable → what NCCL says it was set to, a value for each that differs between ranks; empty unless the
            launch has NCCL_DEBUG=INFO.
        ready: Whether the server said it was.
        fatal: The errors that ended it, oldest first; empty where something was served after them.
        simulated: Whether spectune's simulated engine wrote it.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    rewritten: tuple[str, ...] = ()
    weights: tuple[Weights, ...] = ()
    captures: Mapping[GraphKind, Capture] = field(default_factory=dict)
    kv_tokens: int | None = None
    max_running_requests: int | None = None
    context_length: int | None = None
    decode: tuple[DecodeInterval, ...] = ()
    decode_lines: int = 0
    most_running: int = 0
    most_queued: int = 0
    peak_usage: float | None = None
    prefills: Prefills = field(default_factory=Prefills)
    retractions: int = 0
    errors: tuple[str, ...] = ()
    nccl: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ready: bool = False
    fatal: tuple[str, ...] = ()
    simulated: bool = False

    @property
    def tells_of_speculation(self) -> bool:
        """Whether the log says if it speculates; one that is cut within its arguments may not."""
        return "speculative_algorithm" in self.arguments or bool(self.decode)

    @property
    def speculative(self) -> bool:
        """Whether it speculates: by its arguments, or where they are not known by its decode lines."""
        if "speculative_algorithm" in self.arguments:
            return reported_algorithm(self.arguments) is not None
        return any(interval.accept_length is not None for interval in self.decode)
