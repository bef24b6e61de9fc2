"""Time and memory of reading a server's log: `python benchmarks/log_reading.py [GIGABYTES]`, 1 unless said.

Three logs of that size, made in the temporary folder and deleted: decode and access lines of eight ranks, binary
rubbish, and one line without an end.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from spectune.engines.sglang.server_log import read_server_log
from spectune.errors import SpectuneError

BLOCK = 1 << 20
ARGUMENTS = b"[2026-01-01 00:00:00] server_args={'model_path': 'org/model', 'speculative_algorithm': 'EAGLE3'}\n"


def main(gigabytes: float) -> None:
    """Print a row for each kind of log."""
    print(f"{'log':24}{'GB':>6}{'CPU s':>8}{'peak MiB':>10}{'decode lines':>14}{'kept':>8}")
    for name, blocks in (("decode lines, 8 ranks", decode_lines()), ("binary", rubbish()), ("one line", one_line())):
        with tempfile.NamedTemporaryFile(prefix="log_reading") as file:
            file.writelines(next(blocks) for _ in range(int(gigabytes * 1e9) // BLOCK))
            file.flush()
            print(f"{name:24}{Path(file.name).stat().st_size / 1e9:6.2f}", end="", flush=True)
            measured(Path(file.name))


def measured(path: Path) -> None:
    """Read a log in a process of its own, whose peak memory is then its own too, and print the rest of the row."""
    if (child := os.fork()) == 0:
        began = time.process_time()
        try:
            facts = read_server_log(path)
            counts = f"{facts.decode_lines:14,}{len(facts.decode):8,}"
        except SpectuneError as error:
            counts = "  " + str(error).partition(": ")[2]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{time.process_time() - began:8.1f}{peak:10.0f}{counts}")
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)


def decode_lines() -> Iterator[bytes]:
    """Yield blocks of decode lines, every other line one of HTTP access, as a busy server writes them."""
    yield (ARGUMENTS + b"\n").ljust(BLOCK, b"\n")
    lines = b"".join(
        b"[2026-01-01 00:%02d:%02d DP%d TP0] Decode batch, #running-req: %d, #token: 4096, token usage: 0.31, "
        b"accept len: 2.%02d, accept rate: 0.33, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 0\n"
        b'[2026-01-01 00:%02d:%02d] INFO:     127.0.0.1:40000 - "POST /generate HTTP/1.1" 200 OK\n'
        % (second // 60, second % 60, rank, rank + 1, second % 100, 60 * (rank + 1), second // 60, second % 60)
        for second in range(600)
        for rank in range(8)
    )
    while True:
        yield lines[:BLOCK].rpartition(b"\n")[0] + b"\n"


def rubbish() -> Iterator[bytes]:
    """Yield random bytes."""
    block = os.urandom(BLOCK)
    while True:
        yield block


def one_line() -> Iterator[bytes]:
    """Yield a line that never ends."""
    while True:
        yield b"x" * BLOCK


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
