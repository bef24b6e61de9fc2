"""What the cost model has to know of a resolved launch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectune.engines.sglang.effective import captured
from spectune.engines.sglang.rules.names import BLOCK_ALGORITHMS, reported_algorithm
from spectune.engines.simulated.profile_conditions import LAUNCH, SPECULATION
from spectune.space.names import ENV_PREFIX
from spectune.space.values import Value, canonical

# Look tokens up instead of running a drafter.
DRAFTLESS_ALGORITHMS = frozenset({"NGRAM"})
MOST_RUNNING = 4096  # what SGLang allows at most when nobody says


@dataclass(frozen=True)
class Setup:
    """A launch as the engine resolved it.

    Attributes:
        algorithm: In capitals; None without speculation.
        num_steps: Draft forwards per cycle, S; 0 without speculation.
        eagle_topk: Branches per draft forward, K; 1 without speculation.
        num_draft_tokens: Tokens verified per request and cycle, N; 1 without speculation.
        drafter: Path or name of the drafter, if one was named.
        captured: Batch sizes asked to have a decode graph, ascending; empty when decode graphs are off.
        mem_fraction: Share of GPU memory for weights and KV cache.
        max_running: Requests that may run at once.
        max_tokens: Tokens the KV cache may hold at most, None without a limit.
        ranks: GPUs it asks for.
        values: What conditions look at: argument names, `env.NAME`, `speculation`, `launch`.
    """

    algorithm: str | None
    num_steps: int
    eagle_topk: int
    num_draft_tokens: int
    drafter: str | None
    captured: tuple[int, ...]
    mem_fraction: float
    max_running: int
    max_tokens: int | None
    ranks: int
    values: Mapping[str, Value]

    @property
    def speculative(self) -> bool:
        """Whether it speculates."""
        return self.algorithm is not None

    @property
    def verifying(self) -> str:
        """What SGLang calls the forwards of the target after the prefill."""
        return "target_verify" if self.speculative else "decode"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the launch."""
        size = len(ENV_PREFIX)
        return {name[size:]: str(value) for name, value in self.values.items() if name.startswith(ENV_PREFIX)}

    @property
    def depth(self) -> int:
        """Drafted tokens that can be right in one cycle."""
        # One forward, or one lookup, drafts all N - 1 tokens that are verified, whatever S says: NGRAM's S is N // K, 0
        # of few tokens.
        at_once = BLOCK_ALGORITHMS | DRAFTLESS_ALGORITHMS
        return self.num_draft_tokens - 1 if self.algorithm in at_once else self.num_steps

    @property
    def draft_forwards(self) -> int:
        """Forwards of the drafter in one cycle."""
        return 0 if self.algorithm in DRAFTLESS_ALGORITHMS else self.num_steps

    @classmethod
    def of(cls, resolved: Mapping[str, Any], env: Mapping[str, str], launch: int) -> Setup:
        """Read the engine's resolved fields.

        Args:
            resolved: SGLang's field names → values, as `sglang.resolution` gives them.
            env: The whole environment of the launch.
            launch: Its number in the study.
        """
        name = reported_algorithm(resolved)
        decode = resolved.get("decode_cuda_graph") or {}
        graphs = decode.get("backend") != "disabled"
        asked = resolved.get("max_running_requests")
        running = MOST_RUNNING if asked is None else max(1, int(asked))  # less than 1 is taken for 1, as SGLang does
        steps, topk, tokens = (
            int(resolved.get(f"speculative_{field}") or 0) if name else default
            for field, default in (("num_steps", 0), ("eagle_topk", 1), ("num_draft_tokens", 1))
        )
        return cls(
            algorithm=name,
            num_steps=steps,
            eagle_topk=topk,
            num_draft_tokens=tokens,
            drafter=resolved.get("speculative_draft_model_path") if name else None,
            captured=captured([size for size in decode.get("bs") or () if size > 0], running) if graphs else (),
            mem_fraction=float(resolved["mem_fraction_static"]),
            max_running=running,
            max_tokens=int(resolved["max_total_tokens"]) if resolved.get("max_total_tokens") else None,
            ranks=math.prod(max(1, int(resolved.get(f"{kind}_size") or 1)) for kind in ("tp", "pp", "dp")),
            values=_values(resolved, decode if graphs else {}, env, name is not None, launch),
        )


def _values(
    resolved: Mapping[str, Any], decode: Mapping[str, Any], env: Mapping[str, str], speculation: bool, launch: int
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, value in resolved.items():
        if isinstance(value, str | int | float) or (isinstance(value, list | tuple) and value):
            values[name.replace("_", "-")] = canonical(value)
    # The graph settings have names of their own, whichever of them the command line used.
    for key, name in (("max_bs", "cuda-graph-max-bs-decode"), ("bs", "cuda-graph-bs-decode")):
        if decode.get(key):
            values[name] = canonical(decode[key])
    values |= {f"{ENV_PREFIX}{name}": value for name, value in env.items()}
    return {**values, SPECULATION: speculation, LAUNCH: launch}
