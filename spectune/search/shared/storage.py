"""The database that several machines share: its address, and opening it, with one sentence for whatever is wrong."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from spectune.blotting import blotted
from spectune.errors import SpectuneError
from spectune.search.storage.storage_errors import advice, blocked, reason
from spectune.withheld import BLOT, secret_name

if TYPE_CHECKING:
    from optuna.storages import RDBStorage
    from sqlalchemy import URL

POSTGRESQL_DRIVERS = ("psycopg", "psycopg2")
BEGIN_IT = "`spectune search SPACE --storage URL` begins a study there"
EXAMPLES = "postgresql://USER@HOST/DATABASE, or sqlite:///FILE for several workers on one machine"

# A machine that is cut off has to notice: no answer for 20 s ends a connection, and what a frozen process holds locked
# is given free. Times of heartbeats are compared, so every session counts in UTC.
_POSTGRESQL = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
    "options": "-c timezone=UTC -c lock_timeout=30s -c idle_in_transaction_session_timeout=60s",
}  # fmt: skip
_SQLITE = {"timeout": 60}  # seconds to wait for others' writes
_OPENINGS = 5  # tries: workers that start together make the same tables


@dataclass(frozen=True)
class Address:
    """Where the database is.

    Attributes:
        url: For SQLAlchemy, with the driver that is installed, and with its password.
        shown: The same for people.
        secrets: What must not be shown.
        connection: What every connection is opened with.
    """

    url: str = field(repr=False)
    shown: str
    secrets: frozenset[str] = field(repr=False)
    connection: Mapping[str, Any]

    @classmethod
    def of(cls, text: str) -> Address:
        """Read a storage URL.

        Raises:
            SpectuneError: It is none, names a database that cannot be shared, or one whose driver is not installed.
        """
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            said = BLOT if "@" in text else repr(text)
            raise SpectuneError(f"a storage must be {EXAMPLES}, but got {said}") from None
        backend = {"postgres": "postgresql"}.get(url.get_backend_name(), url.get_backend_name())
        if backend == "postgresql":
            if text.count("@") > 1:  # what follows the first would be taken for the host, and shown
                raise SpectuneError("only one @ may stand in the URL of a storage: write one in a password as %40")
            url = url.set(drivername=f"postgresql+{_driver(url)}")
            connection = {name: value for name, value in _POSTGRESQL.items() if name not in url.query}
        elif backend == "sqlite":
            if not url.database or url.database == ":memory:":
                raise SpectuneError(f"{text!r} lives in one process and cannot be shared; name a file: sqlite:///FILE")
            connection = {name: value for name, value in _SQLITE.items() if name not in url.query}
            if not url.database.startswith("file:"):  # which file it is does not change with the folder one is in
                url = url.set(database=str(Path(url.database).absolute()))
        else:
            raise SpectuneError(f"a storage must be {EXAMPLES}; {backend!r} is neither")
        shown = url.set(drivername=backend, query={}).render_as_string(hide_password=True)
        return cls(url.render_as_string(hide_password=False), shown, _secrets(url), connection)

    @property
    def file(self) -> Path | None:
        """Where an SQLite database lies; None for a server's."""
        from sqlalchemy import make_url

        url = make_url(self.url)
        if url.get_backend_name() != "sqlite":
            return None
        return Path(str(url.database).removeprefix("file:"))

    def complaint(self, error: BaseException) -> str:
        """Return what the driver said, without secrets."""
        return blotted(reason(error), self.secrets)

    def unusable(self, error: BaseException) -> SpectuneError:
        """Return the one sentence for a database that cannot be used."""
        said = f"cannot use the storage {self.shown}: {blocked(self.file) or self.complaint(error)}"
        return SpectuneError("; ".join(filter(None, [said, advice(error)])))


def open_storage(address: Address, *, begins: bool = True) -> RDBStorage:
    """Connect.

    Args:
        address: Where it is.
        begins: Whether a study may begin in it, so that a database and Optuna's tables are made where there are none.

    Raises:
        SpectuneError: It cannot be reached, its tables are not those of the Optuna that is installed, or there are none
            and nothing begins.
    """
    import optuna
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SAWarning

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if not begins:
        _require_tables(address)
    url = address.url.replace("{", "{{").replace("}", "}}")  # Optuna takes it for a template
    for attempt in range(_OPENINGS):
        try:
            with warnings.catch_warnings(action="error", category=SAWarning):  # an option that nothing understands
                return RDBStorage(
                    url, engine_kwargs={"pool_pre_ping": True, "connect_args": dict(address.connection)}
                )  # fmt: skip
        except RuntimeError as error:
            raise SpectuneError(_other_tables(address, str(error))) from None
        except Exception as error:  # noqa: BLE001 (a driver raises whatever it likes)
            if attempt + 1 < _OPENINGS and _made_meanwhile(error):
                time.sleep(random.uniform(0.1, 0.5))  # noqa: S311 (no secret depends on it)
                continue
            raise address.unusable(error) from None
    raise AssertionError("the last try returns or raises")


def _require_tables(address: Address) -> None:
    from sqlalchemy import create_engine, inspect

    if address.file is not None and not address.file.is_file():  # connecting would make it
        raise SpectuneError(blocked(address.file) or f"there is no database {address.file}; {BEGIN_IT}")
    engine = create_engine(address.url, connect_args=dict(address.connection))
    try:
        there = inspect(engine).has_table("studies")
    except Exception as error:  # noqa: BLE001 (a driver raises whatever it likes)
        raise SpectuneError(f"cannot use the storage {address.shown}: {address.complaint(error)}") from None
    finally:
        engine.dispose()
    if not there:
        raise SpectuneError(f"there are no studies in {address.shown}; {BEGIN_IT}")


def _driver(url: URL) -> str:
    """Return the driver of a PostgreSQL URL: the one it names, or the one that is installed."""
    named = url.drivername.partition("+")[2]
    wanted = (named,) if named else POSTGRESQL_DRIVERS
    found = next((driver for driver in wanted if driver in POSTGRESQL_DRIVERS and find_spec(driver)), None)
    if found is None:
        missing = f"the driver {named}" if named else "a driver for PostgreSQL"
        raise SpectuneError(f"{missing} is not installed; `pip install 'psycopg[binary]>=3.2'` gives psycopg")
    return found


def _secrets(url: URL) -> frozenset[str]:
    """Return the password and whatever else must not be shown, as it is and as it stands in the URL."""
    found = {str(url.password)} if url.password else set()
    for name, value in url.query.items():
        if secret_name(name):
            found |= {value} if isinstance(value, str) else set(value)
    return frozenset(found | {quote(secret, safe=" +") for secret in found} | {quote(s, safe="") for s in found})


def _other_tables(address: Address, said: str) -> str:
    if "storage upgrade" in said:
        return (
            f"the tables of {address.shown} were made by an older Optuna: `optuna storage upgrade --storage URL` "
            "brings them up to date; let nobody else use them meanwhile"
        )
    return f"the tables of {address.shown} were made by a newer Optuna: upgrade Optuna here"


def _made_meanwhile(error: BaseException) -> bool:
    words = str(error)
    return "already exists" in words or "pg_type_typname" in words or "duplicate key" in words or "UNIQUE" in words
