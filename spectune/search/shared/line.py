"""The line to the database: what is asked over it is asked again until it is answered."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from spectune.errors import SpectuneError
from spectune.search.shared.storage import Address
from spectune.search.storage.storage_errors import is_passing

T = TypeVar("T")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 20.0
LONGEST_ANSWER_S = 120.0  # longer than it waits for locks


class Line:
    """Calls the database off the event loop, and outlasts its absence."""

    def __init__(self, address: Address, notes: Callable[[str], None], *, patience_s: float = LONGEST_ANSWER_S) -> None:
        """Begin with a database that answered.

        Args:
            address: Where it is.
            notes: Who is told once that it is away, and once that it is back.
            patience_s: Seconds it may take to answer: the network ends no connection to a server that is frozen.
        """
        self._address, self._notes, self._patience_s = address, notes, patience_s
        self._away_since: float | None = None
        self._back_at: float | None = None

    def quiet_for(self, seconds: float) -> bool:
        """Whether it has answered for so long; others may need as much to be heard again after it was away."""
        if self._away_since is not None:
            return False
        return self._back_at is None or time.monotonic() - self._back_at > seconds

    async def call(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, once the database answers; it must do no harm to do it again.

        Raises:
            SpectuneError: What is wrong does not pass by itself.
        """
        wait_s = FIRST_WAIT_S
        while True:
            try:
                return await self.once(work)
            except Unanswered:
                await asyncio.sleep(wait_s)
                wait_s = min(2.0 * wait_s, LONGEST_WAIT_S)

    async def once(self, work: Callable[[], T]) -> T:
        """Return what `work` returns.

        Raises:
            Unanswered: The database is away.
            SpectuneError: What is wrong does not pass by itself.
        """
        try:
            answer = await _answer(work, self._patience_s)
        except SpectuneError:
            raise
        except Exception as error:  # noqa: BLE001 (a driver raises whatever it likes)
            said = self._address.complaint(error)
            if not is_passing(error):
                raise SpectuneError(
                    f"the shared study in {self._address.shown} cannot be used any more: {said}; finished launches are "
                    "kept in the study's folder here: start `search --storage` again, which puts them back"
                ) from None
            self._lost(said)
            raise Unanswered(said) from None
        self._found()
        return answer

    def _lost(self, said: str) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._notes(
                f"the storage {self._address.shown} does not answer: {said}; what runs goes on, its record is kept "
                "here and sent when the storage is back; Ctrl-C ends this worker, and starting it again sends it too"
            )

    def _found(self) -> None:
        if self._away_since is not None:
            self._back_at = time.monotonic()
            self._notes(
                f"the storage {self._address.shown} answers again after {self._back_at - self._away_since:.0f} s"
            )
            self._away_since = None


async def _answer(work: Callable[[], T], patience_s: float) -> T:
    """Return what `work` returns, done in a thread that keeps nobody from leaving, whatever it waits for.

    Raises:
        TimeoutError: It takes too long; it is left alone, and does no harm if it is done later.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()

    def ask() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 (it is raised where the answer is awaited)
            answer.set_exception(error)

    threading.Thread(target=ask, name="database", daemon=True).start()
    try:
        # Not wait_for: in Python 3.11 it loses a cancellation that comes with the answer; a heart would beat for ever.
        async with asyncio.timeout(patience_s):
            return await asyncio.wrap_future(answer)
    except TimeoutError:
        if answer.done():  # the driver's own
            raise
        raise TimeoutError(f"no answer within {patience_s:g} s") from None


class Unanswered(Exception):
    """The database did not answer; it may later."""
