"""Why speculation pays in a study or not: its records against the arithmetic of `analysis/why`."""

from spectune.search.why.engine_cycles import engine_cycles
from spectune.search.why.generating import training_of
from spectune.search.why.graphs import outside_graphs
from spectune.search.why.of_study import break_even_of

__all__ = ["break_even_of", "engine_cycles", "outside_graphs", "training_of"]
