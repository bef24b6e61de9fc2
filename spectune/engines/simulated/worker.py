"""A scheduler worker of the simulated engine: a process with an environment of its own that ends with its parent.

Runs by file name in an isolated interpreter (`python -I -S worker.py TITLE PARENT [detach]`); standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15


def _detach() -> None:
    """Leave the parent's session and its family, like a worker that daemonizes."""
    if os.fork():
        os._exit(0)
    os.setsid()


def main(title: str, parent: int, *, detach: bool) -> None:
    """Wait for a signal, or, unless detached, for the parent's end."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NAME, title.encode()[:15], 0, 0, 0)
    if detach:
        _detach()
    else:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before the kernel was told
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), detach=len(sys.argv) > 3)
