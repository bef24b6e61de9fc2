"""The few values that are read beside headers: the fusion weight and the vocabulary maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectune.engines.sglang.preflight.safetensors_header import Tensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 2**22  # bytes
SAMPLED_ROWS = 128  # of the fusion weight: 21504 inputs in bfloat16 are 5 MiB
LARGEST_FUSION = 2**31  # bytes; a larger weight is no fusion layer, and reading it all would take minutes
LARGEST_MAP = 64 * 2**20  # bytes
FLOATS = frozenset({"BF16", "F16", "F32", "F64"})
_PLAIN = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BOOL": "?", "U8": "u1", "I8": "i1"}


@dataclass(frozen=True)
class Magnitude:
    """How large the values of a weight are.

    Attributes:
        blocks: Root mean square of each block of columns, over rows spread evenly; not finite where a value is not.
        zero: Whether every value of the whole weight is zero.
    """

    blocks: tuple[float, ...]
    zero: bool


def magnitude(weight: Tensor, blocks: int) -> Magnitude | None:
    """Measure a matrix in equal blocks of columns.

    Args:
        weight: Of shape (outputs, inputs).
        blocks: How many equal parts the inputs have.

    Returns:
        None for a type of which no values are known, a shape that does not divide, or a file that is gone.
    """
    import numpy as np

    if weight.dtype not in FLOATS or len(weight.shape) != 2 or 0 in weight.shape or weight.shape[1] % blocks:
        return None
    if weight.end - weight.begin > LARGEST_FUSION:
        return None
    height, width = weight.shape
    row_bytes = (weight.end - weight.begin) // height
    rows = np.unique(np.linspace(0, height - 1, min(height, SAMPLED_ROWS)).astype(int))
    squares = np.zeros(blocks)
    try:
        with weight.file.open("rb") as opened, np.errstate(over="ignore", invalid="ignore"):
            for row in rows:
                opened.seek(weight.begin + int(row) * row_bytes)
                values = as_floats(opened.read(row_bytes), weight.dtype).astype(np.float64)
                squares += (values.reshape(blocks, -1) ** 2).sum(axis=1)
        means = np.sqrt(squares / (len(rows) * (width // blocks)))
        return Magnitude(tuple(float(mean) for mean in means), zero=not squares.any() and _all_zero(weight))
    except (OSError, ValueError):
        return None


def integers(tensor: Tensor) -> NDArray[np.int64] | None:
    """Return a whole vocabulary map; None for one that is no list of whole numbers, or too large to be one."""
    import numpy as np

    if tensor.dtype not in {"I64", "I32", "BOOL", "U8", "I8"} or tensor.end - tensor.begin > LARGEST_MAP:
        return None
    try:
        with tensor.file.open("rb") as opened:
            opened.seek(tensor.begin)
            read = opened.read(tensor.end - tensor.begin)
        return np.frombuffer(read, dtype=_PLAIN[tensor.dtype]).astype(np.int64)
    except (OSError, ValueError):
        return None


def as_floats(values: bytes, dtype: str) -> NDArray[Any]:
    """Return values of one of the `FLOATS` types; bfloat16 is the upper half of a float32."""
    import numpy as np

    if dtype == "BF16":
        return (np.frombuffer(values, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(values, dtype=_PLAIN[dtype])


def _all_zero(weight: Tensor) -> bool:
    return not any(as_floats(chunk, weight.dtype).any() for chunk in _chunks(weight))


def _chunks(tensor: Tensor) -> Iterator[bytes]:
    with tensor.file.open("rb") as opened:
        opened.seek(tensor.begin)
        for begin in range(tensor.begin, tensor.end, CHUNK):
            yield opened.read(min(CHUNK, tensor.end - begin))
