"""What a machine must have before SGLang can be launched on it."""

from __future__ import annotations

from collections.abc import Iterator

from spectune.counts import count
from spectune.engines.sglang.interpreter import Interpreter
from spectune.machine import count_gpus


def lacks(interpreter: Interpreter, version: str | None, gpus: int) -> Iterator[str]:
    """Yield what it lacks, a sentence each.

    Args:
        interpreter: The Python that has SGLang.
        version: Its SGLang's version; None when it is not there.
        gpus: GPUs a launch needs.
    """
    python = interpreter.python
    if interpreter.path() is None:
        yield f"there is no program {python} on this machine; name one that has sglang as engine.python"
    elif version is None:
        yield f"{python} has no sglang; install it there or name another engine.python"
    if gpus and (found := count_gpus()) < gpus:
        seen = f"engine.gpus asks for {count(gpus, 'GPU')}, but this machine shows {found}"
        yield f"{seen}; run it where they are, or lower engine.gpus"
