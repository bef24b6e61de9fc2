"""Real workers of a shared study, as a user starts them, and what their folders must have in common."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import psutil
from readme_commands import SPECTUNE
from search_simulated import ALONE, SPACE, write
from sqlalchemy import make_url

from benchmarks.services.daemon import eventually
from spectune.search import StudyFolder, TrialRecord
from spectune.search.shared.storage import Address
from spectune.serving import reserve_slot

PARALLEL = 4


def space(folder: Path, *, trials: int, **more: Any) -> Path:
    """Write a space whose launches take about two seconds."""
    folder.mkdir(exist_ok=True)
    engine = SPACE["engine"] | {"virtual": False, "parallel": PARALLEL}
    return write(folder, engine=engine, budget={"trials": trials}, workload=ALONE, **more)


class Started:
    """A spectune that runs in a folder; killed when the context ends, should it still run."""

    def __init__(self, folder: Path, *arguments: str, storage: str, env: Mapping[str, str] | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self._said = folder, folder / "said.txt"
        with self._said.open("ab") as said:
            self.process = subprocess.Popen(
                [SPECTUNE, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env={**os.environ, **(env or {}), "SPECTUNE_STORAGE": storage},
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def said(self) -> str:
        """All it has printed."""
        return self._said.read_text()

    def says(self, words: str, within_s: float = 240.0) -> bool:
        """Whether it prints something."""
        return (
            eventually(lambda: words in self.said or self.process.poll() is not None, within_s) and words in self.said
        )

    def ends(self, within_s: float = 600.0) -> int:
        """Wait for its end and return its exit code."""
        return self.process.wait(within_s)


@contextmanager
def held_back(storage: str, study: str = "sim") -> Iterator[None]:
    """No worker of a shared study gets one of its slots on this machine meanwhile: none is ahead of the others."""
    key = f"{make_url(Address.of(storage).url).render_as_string(hide_password=True)} {study}"
    with ExitStack() as slots:
        for _ in range(PARALLEL):
            slots.enter_context(asyncio.run(reserve_slot(key, "a test", PARALLEL, print)))
        yield


def all_wait(*workers: Started) -> bool:
    """Whether all come as far as to wait for a slot."""
    return all(worker.says("allows on this machine") for worker in workers)


def records(folder: Path, study: str = "sim") -> Sequence[TrialRecord]:
    """Return the launches that a worker's folder holds."""
    return StudyFolder(folder / "studies" / study).records()


def processes(folder: Path) -> Sequence[psutil.Process]:
    """Return what runs in a folder."""
    running = psutil.process_iter(["cwd"])
    return [process for process in running if (process.info["cwd"] or "").startswith(str(folder))]


def written(folder: Path, study: str = "sim") -> Mapping[str, bytes]:
    """Return a worker's records as they stand on its disk, by the names of their folders."""
    files = (folder / "studies" / study / "trials").glob("*/result.json")
    return {file.parent.name: file.read_bytes() for file in sorted(files)}
