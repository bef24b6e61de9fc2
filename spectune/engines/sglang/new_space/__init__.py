"""A first search space for a model and its drafters: what their files and the GPUs say is worth searching."""

from spectune.engines.sglang.new_space.choices import new_space
from spectune.engines.sglang.new_space.written import NewSpace

__all__ = ["NewSpace", "new_space"]
