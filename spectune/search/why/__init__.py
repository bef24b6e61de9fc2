"""Why speculation pays in a study or not: its records against the arithmetic of `analysis/why`."""

from spectune.search.why.of_study import break_even_of

__all__ = ["break_even_of"]
