"""A Slurm of one node, a test's own, from Debian's packages: munged, slurmctld and slurmd on ports of their own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.services.daemon import Daemon, eventually, free_port

CONFIGURATION = """
ClusterName=spectune
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=10
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """One controller and one node with two CPUs; needs root, as slurmd does to run jobs of any user."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="spectune-slurm-"))
        self._folder.chmod(0o755)
        for name in ("state", "spool"):
            (self._folder / name).mkdir()
        key = self._folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        self._configuration = self._folder / "slurm.conf"
        self._configuration.write_text(
            CONFIGURATION.format(
                folder=self._folder,
                host=socket.gethostname().partition(".")[0],
                user=pwd.getpwuid(os.geteuid()).pw_name,
                controller_port=free_port(),
                node_port=free_port(),
            )
        )
        self._daemons: list[Daemon] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def env(self) -> Mapping[str, str]:
        """What makes Slurm's commands talk to this one."""
        return {"SLURM_CONF": str(self._configuration)}

    def jobs(self) -> list[str]:
        """Return every job that is not over, as `squeue` prints it."""
        return self._asked("squeue", "--noheader", "--array").splitlines()

    def close(self) -> None:
        """End jobs and daemons and remove everything of them."""
        if len(self._daemons) == 3 and self.jobs():
            self._asked("scancel", "--full", "--state=RUNNING")
            self._asked("scancel", "--state=PENDING")
            eventually(lambda: not self.jobs())
        for daemon in reversed(self._daemons):
            daemon.stop(signal.SIGKILL)  # what they would save on leaving goes with the folder
        shutil.rmtree(self._folder)

    def _start(self) -> None:
        munge = self._folder / "munge.socket"
        at = {name: self._folder / f"munged.{name}" for name in ("pid", "seed", "log")}
        self._serve(
            ["munged", "--foreground", "--force", f"--socket={munge}", f"--key-file={self._folder / 'munge.key'}",
             f"--pid-file={at['pid']}", f"--seed-file={at['seed']}", f"--log-file={at['log']}"],
            munge.exists,
        )  # fmt: skip
        self._serve(["slurmctld", "-D", "-c", "-f", self._configuration], lambda: "up" in self._state("sinfo", "%a"))
        self._serve(["slurmd", "-D", "-f", self._configuration], lambda: self._state("sinfo", "%T") == "idle")

    def _serve(self, argv: list[str | Path], ready: object) -> None:
        daemon = Daemon(argv, self._folder / f"{argv[0]}.out", env={**os.environ, **self.env})
        self._daemons.append(daemon)
        daemon.start(ready)  # type: ignore[arg-type]

    def _state(self, command: str, wanted: str) -> str:
        ran = subprocess.run(
            [command, "--noheader", "--format", wanted],
            check=False, capture_output=True, text=True, env={**os.environ, **self.env},
        )  # fmt: skip
        return ran.stdout.strip() if ran.returncode == 0 else ""

    def _asked(self, *argv: str) -> str:
        ran = subprocess.run(argv, check=True, capture_output=True, text=True, env={**os.environ, **self.env})
        return ran.stdout.strip()
