"""`python -m spectune.serving.sweep`: remove the shared memory that ended engines left and that nobody uses."""

from __future__ import annotations

import sys
from pathlib import Path

from spectune.counts import count
from spectune.serving.guard import SHARED_MEMORY
from spectune.serving.segments import remove_unused, unused_segments


def sweep(folder: Path = SHARED_MEMORY) -> tuple[int, int]:
    """Remove the segments; returns how many went and their bytes. Each is looked at once more before it goes."""
    found = unused_segments(folder)
    remove_unused([segment.path for segment in found])
    gone = [segment for segment in found if not Path(segment.path).exists()]
    return len(gone), sum(segment.size for segment in gone)


if __name__ == "__main__":
    number, size = sweep()
    sys.stdout.write(f"removed {count(number, 'segment')} of shared memory ({size / (1 << 20):.1f} MiB)\n")
