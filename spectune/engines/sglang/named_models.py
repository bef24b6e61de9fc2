"""What stands behind the names that a space gives models: folders, a runtime's own models, or a hub's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.engines.sglang.model_config import Model
from spectune.engines.sglang.rules.names import DRAFT_MODEL, MODEL

RUNTIME_PREFIX = "runtime:"
MODEL_ARGUMENTS = (MODEL, "tokenizer-path", DRAFT_MODEL, "speculative-draft-model")


@dataclass(frozen=True)
class NamedModels:
    """Finds models by what a space calls them.

    Attributes:
        runtime: Folder that `runtime:NAME` stands for; None without a runtime.
    """

    runtime: Path | None

    def place(self, reference: Any) -> str:
        """Return the folder or hub name that a launch is given."""
        text = str(reference)
        if self.runtime is not None and text.startswith(RUNTIME_PREFIX):
            return str(self.runtime / text.removeprefix(RUNTIME_PREFIX))
        return os.path.expanduser(text)  # noqa: PTH111 (Path would rewrite hub names such as "./org//name")

    def placed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with the places of the models that they name."""
        return {name: self.place(value) if name in MODEL_ARGUMENTS else value for name, value in arguments.items()}

    def model(self, reference: Any) -> Model:
        """Return what the config.json of a model folder tells; nothing is asked of a hub."""
        return Model.unknown() if reference is None else Model.from_folder(Path(self.place(reference)))

    def missing(self, reference: Any) -> str | None:
        """Say that a folder does not exist; names of a hub pass, they are the engine's to find."""
        text = self.place(reference)
        path = Path(text).expanduser()
        if not text.startswith(("/", "./", "../", "~")) or _is_folder(path):
            return None
        return f"there is no model folder {text}"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a circle of links, a name no file can have
        return False
