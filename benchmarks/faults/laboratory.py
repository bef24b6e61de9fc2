"""A small simulated machine with a fault, a study on it, and a look at what is left afterwards."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from spectune.errors import SpectuneError
from spectune.search import StudyFolder, TrialRecord
from spectune.serving import held_locks

MARK = "SPECTUNE_FAULT"  # of every process that a case starts, whoever its parent becomes
SETTLE_S = 15.0  # for what is left of a killed spectune to end; a guard gives an abandoned engine 3 s
NAME = "faulty"

PROFILE: Mapping[str, Any] = {
    "schema": 1, "name": "small", "source": "made up for the fault matrix", "seed": 3,
    "gpu": {"count": 2, "memory_gb": 80},
    "target": {
        "weights_gb": 40, "step_ms": {"graph": 2.0, "eager": 4.0}, "token_ms": 0.02, "kv_mb_per_token": 0.1,
        "prefill_ktok_per_s": 200,
    },
    "draft": {"weights_gb": 1, "step_ms": {"graph": 0.2, "eager": 0.4}, "token_ms": 0.01},
    "host_ms": 0.2,
    "acceptance": {"default": [0.8, 0.7, 0.6]},
    "startup": {"load_s": 0.1, "capture_s_per_graph": 0.001},
}  # fmt: skip

SPACE: Mapping[str, Any] = {
    "schema": 1, "name": NAME,
    "search": {
        "speculative-algorithm": ["none", "EAGLE3"], "speculative-draft-model-path": ["org/drafter", "org/other"],
        "speculative-num-steps": {"from": 1, "to": 4}, "speculative-eagle-topk": [1, 2],
        "speculative-num-draft-tokens": {"from": 2, "to": 8},
    },
    "workload": {
        "prompts": "builtin:tiny", "chat_template": False, "output_tokens": 32, "levels": [{"concurrency": 4}],
        "level_time_limit": "2s",
    },
}  # fmt: skip
ENGINE: Mapping[str, Any] = {
    "kind": "simulated", "profile": "small.yaml", "gpus": 2,
    "args": {"model-path": "org/target", "tp-size": 2, "attention-backend": "triton"},
}  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """A folder with a space and a profile, and the processes that belong to it.

    Attributes:
        folder: Where commands are run.
        mark: In the environment of all they start.
    """

    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(
        self,
        *,
        virtual: bool,
        trials: int,
        faults: Sequence[Mapping[str, Any]] = (),
        temperature: float = 0.0,
        startup: str = "60s",
        parallel: int = 1,
    ) -> None:
        """Write the space and the machine."""
        self.folder.mkdir(parents=True, exist_ok=True)
        workload = {**SPACE["workload"], "temperature": temperature}
        space = {
            **SPACE,
            "engine": {**ENGINE, "virtual": virtual, "startup_timeout": startup, "parallel": parallel},
            "workload": workload,
            "budget": {"trials": trials},
        }
        (self.folder / "small.yaml").write_text(yaml.safe_dump({**PROFILE, "faults": list(faults)}))
        (self.folder / "space.yaml").write_text(yaml.safe_dump(space, sort_keys=False))

    @property
    def study(self) -> StudyFolder:
        """The study in it."""
        return StudyFolder(self.folder / "studies" / NAME)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a command."""
        return {**os.environ, MARK: self.mark, **more}

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start a command, by default a search."""
        return subprocess.Popen(
            words or SEARCH, cwd=self.folder, env=self.environment(**env), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command to its end; returns its exit code and all it says."""
        with self.start(*words) as process:
            said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def search(self, *wrapper: str) -> tuple[int, str]:
        """Run a search to its end, behind the words of a wrapper."""
        return self.run(*wrapper, *SEARCH)

    def processes_left(self) -> int:
        """Return how many of its processes live on after they had time to end."""
        deadline = time.monotonic() + SETTLE_S
        while (left := len(self.processes())) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def ports_left(self) -> int:
        """Return on how many ports of its launches something of its own, or that cannot be seen, listens.

        A port that is reserved is another launch's by now: whoever reserved it for one of these has ended.
        """
        reserved = held_locks()
        ports = {port for record in self.records() if (port := _port(record)) and f"port-{port}" not in reserved}
        listening = {
            one.laddr.port: one.pid
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port in ports
        }
        return sum(not self._anothers(pid) for pid in listening.values())

    def records(self) -> list[TrialRecord]:
        """Return the finished launches; none where they cannot be read."""
        with contextlib.suppress(SpectuneError):
            return self.study.records()
        return []

    def intact(self, launches: int | None = None) -> bool:
        """Whether all launches are there once, in order, none half finished, and the database agrees with them."""
        records = self.records()
        numbers = [record.trial for record in records]
        whole = numbers == list(range(len(records))) and not self.study.interrupted()
        return whole and (launches is None or len(records) == launches) and self._told() == len(records)

    def _anothers(self, pid: int | None) -> bool:
        """Whether a process was started by somebody else: ports that are free are free for everybody."""
        with contextlib.suppress(psutil.Error):
            return pid is not None and psutil.Process(pid).environ().get(MARK) != self.mark
        return False

    def _told(self) -> int:
        """Return how many launches the database holds that are finished."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        trials = optuna.load_study(study_name=None, storage=f"sqlite:///{self.study.ledger}").trials
        return sum(trial.state.is_finished() for trial in trials)

    def results(self) -> dict[str, bytes]:
        """Return the records as they stand on disk, by the path in the study."""
        root = self.study.root
        return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("trials/*/result.json")}

    def processes(self) -> list[psutil.Process]:
        """Return what carries its mark and lives, this process excluded."""
        return list(_marked(self.mark))


SEARCH = (sys.executable, "-m", "spectune", "search", "space.yaml")


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.pid != os.getpid() and process.environ().get(MARK) == mark
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _port(record: TrialRecord) -> int | None:
    words = record.command.argv
    return int(words[words.index("--port") + 1]) if "--port" in words else None
