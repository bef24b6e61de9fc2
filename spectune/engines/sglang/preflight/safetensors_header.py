"""The header of a safetensors file: names, types, shapes and places of its tensors, without the tensors.

Read here and not by the `safetensors` library, which stops at the first thing wrong with a file and only says what it
was: a broken download is to be told from a lying header, with the numbers. What the library refuses is refused here.
"""

from __future__ import annotations

import json
import math
import stat
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

LARGEST_HEADER = 100_000_000  # bytes; the library's own bound
MOST_DIMENSIONS = 64  # of a tensor; torch has none with more
_LENGTH = 8  # bytes of the little-endian number in front of the header
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64,
    "C64": 64,
}  # fmt: skip


class BrokenFile(Exception):
    """What is wrong with a file of weights, in one sentence without its name."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies.

    Attributes:
        dtype: The format's own name, such as `BF16`.
        begin: First byte, counted from the start of the file.
        end: Byte behind the last one.
    """

    file: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name.

    Raises:
        BrokenFile: It cannot be read, or is no safetensors file that the library would load.
    """
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would never end
            raise BrokenFile("is no file")
        with file.open("rb") as opened:
            text = _header(opened.read(_LENGTH), status.st_size, opened)
    except OSError as error:
        raise BrokenFile(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a name no path can have
        raise BrokenFile(f"cannot be read: {error}") from None
    entries = _parsed(text)
    entries.pop("__metadata__", None)
    start = _LENGTH + len(text)
    tensors = {name: _tensor(file, name, entry, start) for name, entry in entries.items()}
    _check_places(tensors, start, status.st_size)
    return tensors


def _header(length_bytes: bytes, size: int, opened: Any) -> bytes:
    if len(length_bytes) < _LENGTH:
        raise BrokenFile(f"has {size} bytes, too few for a header")
    length = int.from_bytes(length_bytes, "little")
    if length > LARGEST_HEADER:
        raise BrokenFile(f"says its header has {length} bytes, more than the {LARGEST_HEADER} that are allowed")
    if _LENGTH + length > size:
        raise BrokenFile(f"says its header has {length} bytes, but the whole file has {size}")
    text = opened.read(length)
    assert isinstance(text, bytes)
    return text


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, nested without end
        raise BrokenFile("has a header that is not JSON") from None
    if not isinstance(entries, dict):
        raise BrokenFile(f"has a header that holds no object, but {type(entries).__name__}")
    return entries


def _tensor(file: Path, name: str, entry: Any, start: int) -> Tensor:
    try:
        dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise BrokenFile(f"describes {name[:80]!r} without dtype, shape and two offsets") from None
    counts = (*shape, begin, end)
    possible = isinstance(dtype, str) and len(shape) <= MOST_DIMENSIONS
    if not possible or not all(type(count) is int and count >= 0 for count in counts) or end < begin:
        raise BrokenFile(f"describes {name[:80]!r} with dtype, shape or offsets that cannot be")
    bits = BITS.get(dtype)
    if bits is not None and (wanted := math.prod(shape) * bits) != (end - begin) * 8:
        raise BrokenFile(
            f"gives {name[:80]!r} {end - begin} bytes, but {dtype} {list(shape)} takes {-(-wanted // 8)}"
        )  # fmt: skip
    return Tensor(file, dtype, shape, start + begin, start + end)


def _check_places(tensors: dict[str, Tensor], start: int, size: int) -> None:
    """Refuse gaps, overlaps (a name that stands twice leaves a gap) and a file cut short or continued."""
    places = sorted((tensor.begin, tensor.end) for tensor in tensors.values())
    end = places[-1][1] if places else start
    if end > size:
        raise BrokenFile(f"is cut short: it has {size} bytes of {end}")
    if (places and places[0][0] != start) or any(before[1] != after[0] for before, after in pairwise(places)):
        raise BrokenFile("has tensors that overlap or leave gaps")
    if end != size:
        raise BrokenFile(f"has {size} bytes, {size - end} more than its tensors take")
