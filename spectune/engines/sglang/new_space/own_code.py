"""Whether a model brings code of its own, which SGLang runs under `--trust-remote-code` only."""

from __future__ import annotations

import json
from collections.abc import Sequence

from spectune.engines.sglang.preflight import Checkpoint

FILES = ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")
MAKERS = ("kimi",)
"""Families whose tokenizer is code in every one of their checkpoints."""


def own_code(target: Checkpoint, drafters: Sequence[Checkpoint]) -> str:
    """Say which of the models brings code of its own; empty where none does, as far as they were seen."""
    for checkpoint in (target, *drafters):
        if (file := next((name for name in FILES if "auto_map" in _read(checkpoint, name)), None)) is not None:
            return f"{file} of {checkpoint.name} names code of its own"
    kinds = (target.architecture, target.model.config.get("model_type"), target.model.text("model_type"))
    named = [str(one).lower() for one in (*kinds, target.name if target.folder is None else None) if one]
    maker = next((maker for maker in MAKERS if any(maker in one for one in named)), None)
    return "" if maker is None else f"{target.name} is a {maker.title()}, whose tokenizer is code of its own"


def _read(checkpoint: Checkpoint, name: str) -> dict[str, object]:
    if checkpoint.folder is None:
        return {}
    file = checkpoint.folder / name
    try:
        found = json.loads(file.read_text(encoding="utf-8-sig")) if file.is_file() else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
