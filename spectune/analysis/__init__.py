"""Pure functions on measurements: no files, no clock, and no randomness without a seed.

Import from the modules: `estimate`, `acceptance`, `break_even`, `measurement`, `pareto`, `verdict`. This file stays
empty, so that the arithmetic of `break_even` loads no numerical library.
"""
