"""What this process may have no more of, in words."""

from __future__ import annotations

import resource
import threading


def exhausted(error: BaseException) -> str | None:
    """Return which limit of this process an error tells of; None where it tells of something else."""
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    # SystemError: the interpreter lost a MemoryError, for want of memory to handle it with.
    if isinstance(error, MemoryError) or (limited and isinstance(error, SystemError)):
        return (
            "this process may take no more memory; see `ulimit -v`, or the limit of its container; launches that were "
            "finished are kept"
        )
    # KeyboardInterrupt: OpenBLAS interrupts a process in which it cannot start its threads, as NumPy is loaded.
    if (isinstance(error, RuntimeError) and "can't start new thread" in str(error)) or (
        isinstance(error, KeyboardInterrupt) and not _starts_threads()
    ):
        return (
            "this process may start no more threads; see `ulimit -v` and `ulimit -u`, or the limits of its container; "
            "launches that were finished are kept"
        )
    return None


def _starts_threads() -> bool:
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return False
    return True
