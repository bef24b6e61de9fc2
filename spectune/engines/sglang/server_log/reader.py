"""Reads a log from start to end once, and keeps what one start of the server says."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from spectune.engines.sglang.server_log.facts import ServerFacts
from spectune.engines.sglang.server_log.gathering import Gathering
from spectune.engines.sglang.server_log.lines import messages, raw_lines
from spectune.errors import SpectuneError

MOST_STARTS = 32
"""Starts that are kept of a log that has more: the last ones."""

_TELLING = re.compile(
    rb"server_args=|Load weight |apture |max_total_num_tokens=|fired up|Retract|rror|xception|OutOfMemory|"
    rb"disabl|Disabl|overrid|verrid|set to|changing|change page_size|adjusted|fall|Fall|ackend|forc|instead|"
    rb"NCCL INFO NCCL_|SIMULATED "
)
_OUT_OF_MEMORY = re.compile(rb"OutOfMemoryError|CUDA out of memory")
_VIRTUAL = b"SIMULATED in virtual time"
_OTHER_ENGINES = {
    "vLLM": re.compile(rb"\bv(?:llm|LLM)\b|\bVLLM_"),
    "llama.cpp": re.compile(rb"llama_model_loader|llama_context|llama_init|\bggml_"),
    "TensorRT-LLM": re.compile(rb"TensorRT-LLM|tensorrt_llm"),
    "Text Generation Inference": re.compile(rb"text_generation_(?:launcher|router)"),
}


def read_server_log(path: Path) -> ServerFacts:
    """Return the facts of the last start in a log, see `read_server_logs`."""
    return read_server_logs(path)[-1]


def read_server_logs(path: Path) -> tuple[ServerFacts, ...]:
    """Return the facts of every start in a log, of at most the last `MOST_STARTS`, in order.

    Time is linear in the size of the log, memory bounded whatever it holds.

    Raises:
        SpectuneError: When it cannot be read, or is no log of an SGLang server.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_fifo():
            raise SpectuneError(f"{path} is {'a folder' if path.is_dir() else 'no file'}, not the log of a server")
        with path.open("rb") as file:
            return read_open_log(file, str(path))
    except OSError as error:
        raise SpectuneError(f"{path} cannot be read: {error.strerror or error}") from error


def read_open_log(file: BufferedReader, name: str) -> tuple[ServerFacts, ...]:
    """Return the facts of every start in an open file, such as a pipe, see `read_server_logs`.

    Args:
        file: Read to its end.
        name: What messages call it.

    Raises:
        SpectuneError: When it is no log of an SGLang server.
    """
    head = file.peek()
    found = tuple(starts(file))
    if not found and head.startswith(_VIRTUAL):
        raise SpectuneError(
            f"{name} is of a virtual trial: nothing was launched, so there is no log of a server; what was simulated "
            "stands in result.json beside it"
        )
    if not found:
        raise SpectuneError(f"{name} is no log of an SGLang server: {_what_it_is(head)}")
    return found


def starts(file: BinaryIO) -> Iterator[ServerFacts]:
    """Yield the facts of every start in an open log that says anything about a server."""
    kept: deque[ServerFacts] = deque(maxlen=MOST_STARTS)
    gathering = Gathering()
    for raw in raw_lines(file):
        if b" batch" not in raw and (b" HTTP/1." in raw or not _TELLING.search(raw)):
            continue  # most lines of most logs
        for message in messages(raw):
            if gathering.begins_anew(message):
                kept.append(gathering.facts())
                gathering = gathering.successor()
            gathering.note(message)
    if gathering.says_something:
        kept.append(gathering.facts())
    yield from (facts for facts in kept if facts != ServerFacts())


def _what_it_is(head: bytes) -> str:
    if not head.strip():
        return "it is empty"
    for name, pattern in _OTHER_ENGINES.items():
        if pattern.search(head):
            return f"it looks like one of {name}"
    if _OUT_OF_MEMORY.search(head):
        return "a process died of memory in it, but no line says that it was a server's"
    if b"\0" in head:
        return "it is binary"
    if b"sglang" in head:
        return "it ends before the server's arguments were known"
    return "it has neither a server_args= line nor a decode or prefill line"
