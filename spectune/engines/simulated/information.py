"""What the engine says of itself: `/server_info`, `/model_info`, `/v1/models`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.engines.simulated import memory
from spectune.engines.simulated.command import Command
from spectune.engines.simulated.launch import SimulatedLaunch
from spectune.engines.simulated.requests import Limits
from spectune.engines.simulated.scheduler_statistics import Lateness, Statistics

CONTEXT = 262_144  # tokens, of a model whose config nobody has
_GRAPHS = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")


@dataclass
class Information:
    """The engine's view of its launch.

    Attributes:
        command: The launch as resolved.
        launch: Its model.
        words: The command line as given.
        limits: How long requests may be.
        startup_s: What took how long: `load_weight`, and the graphs by what they are captured for.
    """

    command: Command
    launch: SimulatedLaunch
    words: Sequence[str]
    limits: Limits
    startup_s: dict[str, float] = field(default_factory=dict)

    def server(
        self, statistics: Statistics, lateness: Lateness | None = None, *, host: str, port: int
    ) -> dict[str, Any]:
        """Return `/server_info`: everything resolved, what was asked for, and the scheduler's state.

        Args:
            statistics: What it has counted.
            lateness: How well it keeps to the clock; None in virtual time, which is never late.
            host: Where it listens.
            port: Where it listens.
        """
        late = lateness or Lateness(0.0)
        resolved = {**self._resolved(), "host": host, "port": port}
        return {
            **resolved,
            "simulated": True,
            "simulated_profile": self.launch.profile.name,
            "simulated_late": {"deliveries": late.late, "worst_ms": round(1000 * late.worst_s, 3)},
            "launch_command": shlex.join(self.words),
            "status": "ready",
            "max_total_num_tokens": self.launch.kv_tokens,
            "max_req_input_len": self.limits.prompt,
            "kv_events": None,
            "startup_time": self.startup_times(),
            "internal_states": [{**resolved, **self._state(statistics)}],
            "version": SHIPPED_VERSION,
            "frontend": "python",
        }

    def model(self) -> dict[str, Any]:
        """Return `/model_info`."""
        path = self.command.arguments["model-path"]
        return {
            "model_path": path,
            "served_model_name": self.name,
            "tokenizer_path": self.command.arguments.get("tokenizer-path", path),
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": "default",
            "load_format": self.command.arguments.get("load-format", "auto"),
            "simulated": True,
        }

    def models(self) -> dict[str, Any]:
        """Return `/v1/models`."""
        card = {
            "id": self.name,
            "object": "model",
            "created": 0,
            "owned_by": "sglang",
            "root": self.name,
            "parent": None,
            "max_model_len": self.limits.context,
        }
        return {"object": "list", "data": [card]}

    def startup_times(self) -> dict[str, Any]:
        """Return how long the start took, in SGLang's parts; those a profile says nothing of take no time."""
        seconds = self.startup_s
        return {
            "load_weight": seconds.get("load_weight", 0.0),
            "kv_cache_allocation": 0.0,
            "scheduler_e2e": sum(seconds.values()),
            "cuda_graph": {phase: seconds.get(phase, 0.0) for phase in _GRAPHS},
            "tokenizer_e2e": sum(seconds.values()),
        }

    @property
    def name(self) -> str:
        """The name the model is served under."""
        return str(self.command.arguments.get("served-model-name", self.command.arguments["model-path"]))

    def _resolved(self) -> dict[str, Any]:
        fields: Mapping[str, Any] = self.command.resolved
        graphs = {
            phase: {key: value for key, value in fields.get(f"{phase}_cuda_graph", {}).items() if key != "n_bs"}
            for phase in ("decode", "prefill")
        }
        plain = {name: value for name, value in fields.items() if not name.endswith("_cuda_graph")}
        plain.setdefault("speculative_algorithm", None)
        return {**plain, "cuda_graph_config": graphs}

    def _state(self, statistics: Statistics) -> dict[str, Any]:
        setup, file = self.launch.setup, self.launch.profile.file
        graphs_gb = memory.graphs_gb(file, setup)
        kv_gb = self.launch.kv_tokens * file.target.kv_mb_per_token / memory.MB_PER_GB
        state: dict[str, Any] = {
            "world_size": int(self.command.resolved.get("tp_size") or 1),
            "startup_time": self.startup_times(),
            "effective_max_running_requests_per_dp": self.launch.most_running,
            "last_gen_throughput": statistics.last_throughput,
            "memory_usage": {
                "weight": round(memory.weights_gb(file, setup), 3),
                "kvcache": round(kv_gb, 3),
                "startup_available": file.gpu.memory_gb,
                "token_capacity": self.launch.kv_tokens,
                "token_capacity_swa": None,
                "graph": {phase: round(graphs_gb, 3) if phase == setup.verifying else 0.0 for phase in _GRAPHS},
            },
            "decode_cuda_graph_bs": list(self.launch.captured),
            "decode_cuda_graph_memory_gb": round(graphs_gb, 3),
        }
        lifetime = statistics.lifetime_accept_length
        if setup.speculative and lifetime is not None:
            state["avg_spec_accept_length"] = lifetime
        return state
