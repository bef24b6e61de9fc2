"""A PostgreSQL of one's own, from Debian's package: files in a temporary folder, loopback only, with a password."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from benchmarks.services.daemon import Daemon, free_port

USER, PASSWORD = "spectune", "planted-pa55word"
OWNER = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root


def installed() -> list[Path]:
    """Return the folders with the programs of every version that is installed, the newest last."""
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))


class PostgreSQL:
    """A database server that can be stopped, as by a crash, and started again."""

    def __init__(self) -> None:
        versions = installed()
        assert versions, "PostgreSQL is not installed; see .ci/run"
        self._programs = versions[-1]
        self._folder = Path(tempfile.mkdtemp(prefix="spectune-postgresql-"))
        self.port = free_port()
        password = self._folder / "password"
        password.write_text(PASSWORD)
        if OWNER is not None:
            shutil.chown(self._folder, OWNER)
            shutil.chown(password, OWNER)
        data = self._folder / "data"
        subprocess.run(
            [
                self._programs / "initdb", "--pgdata", data, "--username", USER, "--auth", "scram-sha-256",
                "--pwfile", password, "--no-sync", "--no-locale", "--encoding", "UTF8",
            ],
            check=True, capture_output=True, cwd="/",
            user=OWNER, group=OWNER, extra_groups=None if OWNER is None else [],
        )  # fmt: skip
        settings = {
            "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "shared_buffers": "16MB",
        }  # fmt: skip
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self._daemon = Daemon(
            [self._programs / "postgres", "-D", data, "-p", str(self.port), *options],
            self._folder / "log",
            user=OWNER,
        )
        self.start()

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """Return the URL of a database, through a forwarder where its port is given."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port or self.port}/{database}"

    def new_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement and return what psql prints, without decoration."""
        ran = subprocess.run(
            [self._programs / "psql", "-X", "-q", "-A", "-t", "-c", statement, self.url(database)],
            check=True, capture_output=True, text=True, cwd="/",
        )  # fmt: skip
        return ran.stdout.strip()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._daemon.start(self._answers)

    def crash(self) -> None:
        """End the server without a word to its clients; what was committed stays."""
        self._daemon.stop(signal.SIGQUIT)

    def close(self) -> None:
        """End the server and remove everything of it."""
        self.crash()
        shutil.rmtree(self._folder)

    def _answers(self) -> bool:
        asked = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False, cwd="/").returncode == 0
