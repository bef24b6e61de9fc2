"""New candidates: legal, never launched before, from whichever sampler was asked for."""
