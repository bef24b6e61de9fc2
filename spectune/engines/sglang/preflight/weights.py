"""The weights of a model folder: tensors by name from the headers of its files, and what is wrong with those."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spectune.engines.sglang.preflight.safetensors_header import BrokenFile, Tensor, read_header

INDEX = "model.safetensors.index.json"
LARGEST_INDEX = 256 * 2**20  # bytes
NATIVE = "consolidated"  # Mistral's own copy of the same weights, which SGLang leaves out beside others
OTHER_FORMATS = (".bin", ".pt", ".pth", ".gguf")


@dataclass(frozen=True)
class Weights:
    """What the headers say.

    Attributes:
        tensors: By name; of all files that could be read.
        broken: A sentence for each file that SGLang would not load.
        unread: Files of other formats, which are never opened: unpickling runs code.
    """

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def named(self, *endings: str) -> Tensor | None:
        """Return the first tensor with one of these names, or a name that ends in `.` and one of them."""
        for ending in endings:
            for name, tensor in self.tensors.items():
                if name == ending or name.endswith(f".{ending}"):
                    return tensor
        return None


def read_weights(folder: Path) -> Weights:
    """Read every header in a folder; nothing that is wrong there raises."""
    try:
        present = sorted(folder.iterdir())
    except OSError as error:
        return Weights(broken=(f"{folder} cannot be read: {error.strerror}",))
    files = [file for file in present if file.suffix == ".safetensors"]
    files = [file for file in files if not file.name.startswith(NATIVE)] or files
    broken: list[str] = []
    if (index := folder / INDEX) in present:
        try:
            named = _named_in(index)
        except BrokenFile as wrong:
            broken.append(f"{index} {wrong}")
        else:
            broken += _missing(index, named, {file.name for file in present})
            files = [file for file in files if file.name in named]
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            tensors |= read_header(file)
        except BrokenFile as wrong:
            broken.append(f"{file} {wrong}")
    unread = tuple(file.name for file in present if file.suffix in OTHER_FORMATS)
    return Weights(tensors, tuple(broken), unread if not files else ())


def _missing(index: Path, named: Iterable[str], present: set[str]) -> list[str]:
    gone = sorted(set(named) - present)
    if not gone:
        return []
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    return [f"{index} names files that are not there: {', '.join(gone[:3])}{more}"]


def _named_in(index: Path) -> set[str]:
    try:
        if not index.is_file() or index.stat().st_size > LARGEST_INDEX:
            raise BrokenFile("is no index file")
        places = json.loads(index.read_bytes())["weight_map"].values()
        return {str(place) for place in places}
    except OSError as error:
        raise BrokenFile(f"cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        raise BrokenFile("holds no weight_map") from None
