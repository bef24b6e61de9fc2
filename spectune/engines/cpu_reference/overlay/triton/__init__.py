"""Placeholder for triton, a gigabyte that only GPUs need: SGLang decorates kernels with it, none is launched."""

from typing import Any

import placeholder_modules

__version__ = "3.9.0"  # at least what torch and SGLang ask for at import


def _decorate(name: str, *args: Any, **kwargs: Any) -> Any:
    """`@triton.jit` and `@triton.jit(...)` leave the function as it is."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


__getattr__ = placeholder_modules.install(__name__, _decorate)
