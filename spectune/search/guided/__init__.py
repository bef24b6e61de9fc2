"""The guided search: physics first, a Gaussian process on the rest."""
