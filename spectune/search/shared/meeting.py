"""Where workers meet: a database, and the name of their study in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from spectune import __version__
from spectune.engines.protocol import Engine
from spectune.errors import SpectuneError
from spectune.search.shared.description import Description, asked, find, names
from spectune.search.shared.storage import BEGIN_IT, Address, open_storage
from spectune.search.shared.trials import SharedTrials
from spectune.search.shared.worker import Worker
from spectune.space import SearchSpace

if TYPE_CHECKING:
    from optuna.storages import RDBStorage


@dataclass(frozen=True)
class Meeting:
    """A database, and the name of the study in it.

    Attributes:
        address: Where the database is.
        storage: The connection.
        name: Of the study.
    """

    address: Address
    storage: RDBStorage
    name: str

    @classmethod
    def at(cls, url: str, name: str, *, begins: bool = True) -> Meeting:
        """Connect.

        Args:
            url: Of the database.
            name: Of the study.
            begins: Whether it may begin here, in a database that is made for it.

        Raises:
            SpectuneError: The URL is wrong, or the database cannot be used.
        """
        address = Address.of(url)
        return cls(address, open_storage(address, begins=begins), name)

    def described(self) -> Description | None:
        """Return what the study says of itself; None where it has not begun."""
        return find(self.storage, self.address, self.name)

    def trials(self, space: SearchSpace, worker: Worker, takeover_s: int) -> SharedTrials:
        """Return a worker's view of the study's launches.

        Raises:
            SpectuneError: The database does not answer.
        """
        return asked(self.address, lambda: SharedTrials(self.storage, self.name, space, worker.name, takeover_s))

    def sign_on(self, worker: Worker, engine: Engine) -> None:
        """Write down who joins, for people who look; one who may not write learns it before anything is launched.

        Raises:
            SpectuneError: The database cannot be written.
        """
        since = datetime.now(UTC).isoformat()  # never what is there already, which would not be written
        who = {"place": worker.place, "engine": engine.title, "spectune": __version__, "since": since}

        def write() -> None:
            self.storage.set_study_user_attr(
                self.storage.get_study_id_from_name(self.name), f"worker {worker.name}", who
            )

        asked(self.address, write)
        worker.keep()

    def require(self) -> Description:
        """Return what the study says of itself.

        Raises:
            SpectuneError: It has not begun; naming those that have.
        """
        found = self.described()
        if found is None:
            known = ", ".join(names(self.storage, self.address)) or "none yet"
            raise SpectuneError(
                f"there is no study {self.name} in {self.address.shown} (studies there: {known}); {BEGIN_IT}"
            )
        return found
