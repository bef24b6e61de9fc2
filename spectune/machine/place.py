"""Where launches are made: a short name, the same for as long as the machine keeps its own."""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Sequence

from spectune.machine.gpus import Gpu
from spectune.machine.reading import as_ranges

LONGEST_HOST, LONGEST_GROUP = 63, 40


def here(gpus: Sequence[Gpu] = ()) -> str:
    """Return the name of this machine, or of a group of its GPUs.

    Args:
        gpus: The group; none where launches have the whole machine, or no GPU.
    """
    return place_of(socket.gethostname(), [gpu.called for gpu in gpus])


def place_of(host: str, gpus: Sequence[str] = ()) -> str:
    """Return `node3`, or `node3:gpu2-3`: letters, digits and `.-_:,` only, and at most 107 of them.

    Args:
        host: Name of the machine.
        gpus: What CUDA_VISIBLE_DEVICES calls the GPUs; their order is of no matter.
    """
    named = re.sub(r"[^A-Za-z0-9.-]", "_", host)[:LONGEST_HOST] or "unnamed"
    if not gpus:
        return named
    numbers = [int(name) for name in gpus if name.isdecimal()]
    slices = sorted({name for name in gpus if not name.isdecimal()})
    group = ",".join(filter(None, [as_ranges(numbers), *(re.sub(r"[^A-Za-z0-9-]", "_", name) for name in slices)]))
    if len(group) > LONGEST_GROUP:
        group = hashlib.sha256(group.encode()).hexdigest()[:12]
    return f"{named}:gpu{group}"
