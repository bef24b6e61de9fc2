"""Machines whose true speeds are known: what a search is measured against."""

import os

# The matrices of a search are small: on a machine with other work, BLAS threads mostly wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
