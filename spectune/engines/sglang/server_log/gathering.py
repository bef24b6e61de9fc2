"""Collects the facts of one start, message by message, in SGLang's formats of 0.5.6 to 0.5.23."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import Any

from spectune.engines.sglang.server_log.arguments import parse_server_args
from spectune.engines.sglang.server_log.batches import Batches
from spectune.engines.sglang.server_log.facts import ServerFacts, Weights
from spectune.engines.sglang.server_log.graphs import Graphs
from spectune.engines.sglang.server_log.lines import MEMORY, NUMBER, WHOLE, Message

MOST_SENTENCES, MOST_ERRORS, MOST_LOADS, MOST_VARIABLES = 40, 20, 4096, 128
SENTENCE_CHARS, MESSAGE_CHARS = 400, 4000

_ARGUMENTS = "server_args="
_SIMULATED = "SIMULATED ENGINE of spectune"
_READY = "The server is fired up and ready to roll!"
_LIMITS = re.compile(
    rf"\bmax_total_num_tokens=({WHOLE}), .*?max_running_requests=({WHOLE}),(?: context_len=({WHOLE}),)?"
)
_WEIGHTS_END = re.compile(r"^Load weight end\. .*?type=(\w{1,200}),")
_SECONDS = re.compile(rf"elapsed=({NUMBER})")
_RETRACTED = re.compile(rf"KV cache pool is full\. Retract requests\. #retracted_reqs: ({WHOLE})\b")
_ERROR = re.compile(
    r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b(?:: |$)|^Scheduler hit an exception|CUDA out of memory|"
    r"^Received sigquit|crashed with exit code|watchdog timeout|Capture (?:cuda|CUDA) graph failed"
)
_FATAL = re.compile(
    r"OutOfMemory|out of memory|^Scheduler hit an exception|^Received sigquit|crashed with|watchdog timeout"
)
_NCCL = re.compile(r"\bNCCL INFO (NCCL_[A-Z0-9_]{1,60}) set by environment to (.{0,200}?)\.?$")
_REWRITTEN = re.compile(
    r"(?:is|are) set to|reset to|overrid|(?:is|are) (?:forcibly )?disabled|^Disabl(?:e|ing) |adjusted|"
    r"chang(?:e|ing) page_size|[Ff]all(?:ing|s)? back|attention backend|backend by default|is forced|runner backend"
)


class Gathering:
    """What is known so far."""

    def __init__(self, rewritten: list[str] | None = None) -> None:
        self._arguments: dict[str, Any] = {}
        self._rewritten = rewritten or []
        self._afterwards: list[str] = []  # sentences of the launcher that belong to a start to come
        self._weights: dict[tuple[str, int], Weights] = {}
        self._loading: dict[str, float | None] = {}
        self._limits: dict[str, int] = {}
        self._graphs = Graphs()
        self._batches = Batches()
        self._errors: deque[str] = deque(maxlen=MOST_ERRORS)
        self._since_served: deque[str] = deque(maxlen=MOST_ERRORS)  # errors after which nothing was served
        self._retractions = 0
        self._nccl: dict[str, list[str]] = {}
        self._ready = self._simulated = False

    @property
    def says_something(self) -> bool:
        """Whether a server has been heard of at all."""
        return bool(self._arguments or self._limits or self._weights or self._batches.seen)

    def begins_anew(self, message: Message) -> bool:
        """Whether a message begins another start than the one being gathered."""
        return message.text.startswith((_ARGUMENTS, _SIMULATED)) and bool(
            self._errors or self._limits or self._weights or self._batches.seen
        )

    def successor(self) -> Gathering:
        """Return the gathering of the next start, with what its launcher said before its arguments."""
        return Gathering(self._afterwards)

    def note(self, message: Message) -> None:
        """Take up a line."""
        if message.text.startswith(_ARGUMENTS):
            self._arguments = parse_server_args(message.text.removeprefix(_ARGUMENTS))
        elif len(message.text) > MESSAGE_CHARS:
            self._note_short(replace(message, text=message.text[:MESSAGE_CHARS]))
        else:
            self._note_short(message)

    def _note_short(self, message: Message) -> None:
        text = message.text
        if text.startswith(("Decode batch", "Prefill batch")):
            self._batches.note(message)
            self._since_served.clear()
        elif text.startswith("Load weight "):
            self._note_weights(message)
        elif (limits := _LIMITS.search(text)) is not None:
            self._note_limits(*limits.groups())
        elif (retracted := _RETRACTED.search(text)) is not None:
            self._retractions += int(retracted.group(1))
        elif self._graphs.note(message):
            pass
        elif _ERROR.search(text):
            self._errors.append(text[:SENTENCE_CHARS])
            self._since_served.append(text[:SENTENCE_CHARS])
        elif (said := _NCCL.search(text)) is not None:
            self._note_variable(*said.groups())
        elif text.startswith(_READY):
            self._ready = True
        elif text.startswith(_SIMULATED):
            self._simulated = True
        elif message.stamp and _REWRITTEN.search(text):
            self._note_sentence(text[:SENTENCE_CHARS])

    def facts(self) -> ServerFacts:
        """Return what was gathered."""
        facts = ServerFacts(
            arguments=self._arguments,
            rewritten=tuple(self._rewritten),
            weights=self._models(),
            kv_tokens=self._limits.get("kv_tokens"),
            max_running_requests=self._limits.get("max_running_requests"),
            context_length=self._limits.get("context_length"),
            retractions=self._retractions,
            errors=tuple(self._errors),
            nccl={name: tuple(values) for name, values in self._nccl.items()},
            ready=self._ready,
            fatal=tuple(self._since_served) if any(map(_FATAL.search, self._since_served)) else (),
            simulated=self._simulated,
            **self._batches.facts(),
        )
        return replace(facts, captures=self._graphs.captures(speculative=facts.speculative))

    def _note_weights(self, message: Message) -> None:
        if len(self._weights) + len(self._loading) >= MOST_LOADS:
            return
        if message.text.startswith("Load weight begin"):
            self._loading[message.rank] = message.time_s
        elif (end := _WEIGHTS_END.match(message.text)) is not None:
            began, ended = self._loading.pop(message.rank, None), message.time_s
            counted = None if began is None or ended is None else ended - began
            said, memory = _SECONDS.search(message.text), MEMORY.search(message.text)
            index = sum(rank == message.rank for rank, _ in self._weights)
            self._weights[message.rank, index] = Weights(
                end.group(1), float(said.group(1)) if said else counted, float(memory.group(1)) if memory else None
            )

    def _note_sentence(self, text: str) -> None:
        sentences = self._afterwards if self._ready or self._errors else self._rewritten
        if text not in sentences and len(sentences) < MOST_SENTENCES:
            sentences.append(text)

    def _note_variable(self, name: str, value: str) -> None:
        values = self._nccl.setdefault(name, []) if len(self._nccl) < MOST_VARIABLES else self._nccl.get(name, [])
        if value not in values and len(values) < MOST_VARIABLES:
            values.append(value)

    def _note_limits(self, kv_tokens: str, running: str, context: str | None) -> None:
        given = {"kv_tokens": int(kv_tokens), "max_running_requests": int(running)}
        if context is not None:
            given["context_length"] = int(context)
        for name, value in given.items():
            self._limits[name] = min(self._limits.get(name, value), value)

    def _models(self) -> tuple[Weights, ...]:
        """One entry a model: what the slowest and fullest rank says."""
        models: dict[int, list[Weights]] = {}
        for (_, index), weights in self._weights.items():
            models.setdefault(index, []).append(weights)
        return tuple(
            Weights(
                every[0].architecture,
                max((w.seconds for w in every if w.seconds is not None), default=None),
                max((w.memory_gb for w in every if w.memory_gb is not None), default=None),
            )
            for _, every in sorted(models.items())
        )
