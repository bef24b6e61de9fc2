"""The tokenizer and chat template of a served model, as the engine's own interpreter has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectune.engines.sglang.asked_script import AskedScript
from spectune.engines.sglang.interpreter import Interpreter

LOADING_S, RENDERING_S = 600.0, 120.0  # one that takes longer hangs


class Tokenizer:
    """Both in a process of their own, for as long as a study needs it."""

    def __init__(self, interpreter: Interpreter, model: str, *, trust_remote_code: bool) -> None:
        self._script = AskedScript(
            interpreter, "render.py", model, "1" if trust_remote_code else "0",
            complaint=f"the tokenizer of {model} cannot be used", env={"CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        self._loaded = False

    def render(
        self,
        prompts: Sequence[Any],
        *,
        classes: Sequence[str],  # noqa: ARG002 (of no concern to a real model)
        chat_template: bool,
    ) -> list[list[int]]:
        """Return the token ids of each text or message list.

        Raises:
            SpectuneError: When the tokenizer cannot be loaded or refuses a prompt.
        """
        if not self._loaded:
            self._script.answer(LOADING_S)
            self._loaded = True
        ids: list[list[int]] = self._script.ask({"chat": chat_template, "prompts": list(prompts)}, RENDERING_S)["ids"]
        return ids

    def close(self) -> None:
        """End the process."""
        self._script.close()
