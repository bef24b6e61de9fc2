"""What fits into the memory of one GPU. Units are decimal: 1 GB is 1,000 MB."""

from __future__ import annotations

from spectune.engines.simulated.cost_model import target_captured
from spectune.engines.simulated.profile_schema import ProfileFile
from spectune.engines.simulated.setup import Setup

MB_PER_GB = 1000.0


def weights_gb(profile: ProfileFile, setup: Setup) -> float:
    """Return the weights on one GPU; the drafter's only where it is loaded."""
    drafter = profile.draft.weights_gb if setup.draft_forwards else 0.0
    return (profile.target.weights_gb + drafter) / profile.gpu.count


def static_gb(profile: ProfileFile, setup: Setup) -> float:
    """Return what a GPU has for weights and KV cache."""
    return setup.mem_fraction * profile.gpu.memory_gb


def weights_fit(profile: ProfileFile, setup: Setup) -> bool:
    """Whether the weights leave room at all; where not, the engine says "Not enough memory"."""
    return static_gb(profile, setup) >= weights_gb(profile, setup)


def kv_tokens(profile: ProfileFile, setup: Setup) -> int:
    """Return the capacity of the KV cache in tokens; 0 when the weights do not fit."""
    rest_mb = MB_PER_GB * (static_gb(profile, setup) - weights_gb(profile, setup))
    fitting = max(0, int(rest_mb / profile.target.kv_mb_per_token + 1e-9))
    return fitting if setup.max_tokens is None else min(fitting, setup.max_tokens)


def graphs_gb(profile: ProfileFile, setup: Setup) -> float:
    """Return what the target's captured graphs take, each for its batch size × the tokens per request of a forward."""
    return profile.graphs.mb_per_token * sum(_captured(profile, setup)) * setup.num_draft_tokens / MB_PER_GB


def graph_room_gb(profile: ProfileFile, setup: Setup) -> float:
    """Return what a GPU has for captured graphs."""
    return (1.0 - setup.mem_fraction) * profile.gpu.memory_gb - profile.graphs.reserve_gb


def graphs_fit(profile: ProfileFile, setup: Setup) -> bool:
    """Whether all graphs can be captured; without any there is nothing to fit."""
    return not _captured(profile, setup) or graphs_gb(profile, setup) <= graph_room_gb(profile, setup)


def _captured(profile: ProfileFile, setup: Setup) -> tuple[int, ...]:
    return target_captured(setup, verify_graph=profile.target.verify_graph)
