"""Placeholder for torchvision: SGLang and transformers import it for vision models; a text model never calls it."""

from typing import Any

import placeholder_modules

__version__ = "0.0.0"


def _refuse(name: str, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"{name} is a placeholder: the cpu-reference runtime serves text models only")


__getattr__ = placeholder_modules.install(__name__, _refuse)
