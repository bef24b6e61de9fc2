"""Whether a drafter can work with a target, from their config.json and tensor headers, before anything is launched."""

from spectune.engines.sglang.preflight.checkpoint import Checkpoint
from spectune.engines.sglang.preflight.table import CHECKS, preflight

__all__ = ["CHECKS", "Checkpoint", "preflight"]
