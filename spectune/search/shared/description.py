"""What a shared study says of itself, for workers that have nothing but its name and the database."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from spectune import __version__
from spectune.errors import SpectuneError
from spectune.search.shared.storage import Address
from spectune.search.storage.values import CANDIDATE, directions
from spectune.space import SearchSpace
from spectune.typed_json import require_types

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

T = TypeVar("T")

ATTRIBUTE = "spectune"
"""User attribute of the Optuna study that holds it; a study without it is another program's."""
SCHEMA = 1
SETTLING_S = 5.0  # from making a study to describing it
LONGEST_TAKEOVER_S = 30 * 24 * 3600
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Description:
    """A shared study.

    Attributes:
        space: Its search space as it was given.
        resolved: The same as understood, with the engine it runs on.
        beside: The folder of the space's file, where prompts that are files may lie.
        belongings: Files that belong to it, by name.
        engine: Its engine's name and version.
        sampler: What proposes candidates.
        takeover_s: Seconds without a sign of life after which a worker's launch is made by others.
        spectune: The version that began it.
    """

    space: str
    resolved: str
    beside: str
    belongings: Mapping[str, str]
    engine: str
    sampler: str
    takeover_s: int
    spectune: str = field(default=__version__)

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in the database."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, content: Any, source: str) -> Description:
        """Read what `to_json` wrote.

        Raises:
            SpectuneError: It was written by a newer spectune, or is none.
        """
        if not isinstance(content, Mapping) or not isinstance(content.get("schema"), int):
            raise SpectuneError(f"{source} is not a study of spectune; choose another name with --study NAME")
        if content["schema"] > SCHEMA:
            raise SpectuneError(f"{source} was begun by a newer spectune ({content.get('spectune')}); upgrade this one")
        try:
            found = require_types(cls(**{name: value for name, value in content.items() if name != "schema"}))
        except (TypeError, ValueError) as error:
            raise SpectuneError(f"{source} is damaged ({error}); choose another name with --study NAME") from None
        if not all(map(_FILE.fullmatch, found.belongings)):
            raise SpectuneError(f"{source} names files outside of its folder: {', '.join(found.belongings)}")
        if not 0 < found.takeover_s <= LONGEST_TAKEOVER_S:
            raise SpectuneError(f"{source} is damaged (takeover_s cannot be {found.takeover_s})")
        return found


def find(storage: RDBStorage, address: Address, name: str) -> Description | None:
    """Return the shared study of a name; None where there is none.

    Raises:
        SpectuneError: It is another program's, or cannot be read.
    """
    return asked(address, lambda: _find(storage, address, name))


def names(storage: RDBStorage, address: Address) -> list[str]:
    """Return the names of the studies of spectune in a database."""
    studies = asked(address, storage.get_all_studies)
    return sorted(study.study_name for study in studies if ATTRIBUTE in study.user_attrs)


def begin(storage: RDBStorage, address: Address, name: str, space: SearchSpace, described: Description) -> Description:
    """Make a shared study, or find the one that another has made at the same moment; returns what holds.

    Raises:
        SpectuneError: The database cannot be written.
    """
    return asked(address, lambda: _begin(storage, address, name, space, described))


def change(storage: RDBStorage, address: Address, name: str, described: Description) -> None:
    """Let another description hold from now on.

    Raises:
        SpectuneError: The database cannot be written.
    """
    asked(
        address,
        lambda: storage.set_study_user_attr(storage.get_study_id_from_name(name), ATTRIBUTE, described.to_json()),
    )


def _find(storage: RDBStorage, address: Address, name: str) -> Description | None:
    try:
        study = storage.get_study_id_from_name(name)
    except KeyError:
        return None
    source = f"the study {name} in {address.shown}"
    until = time.monotonic() + SETTLING_S
    while True:
        attributes = storage.get_study_user_attrs(study)
        if ATTRIBUTE in attributes:
            return Description.from_json(attributes[ATTRIBUTE], source)
        if any(CANDIDATE in trial.user_attrs for trial in storage.get_all_trials(study, deepcopy=False)):
            raise SpectuneError(
                f"{source} belongs to a search that runs alone; to share it, with the launches it has: "
                f"`spectune search SPACE --study {name} --storage URL`, the URL that of another database"
            )
        if attributes or storage.get_n_trials(study):
            raise SpectuneError(f"{source} is not a study of spectune; choose another name with --study NAME")
        if time.monotonic() > until:
            return None  # whoever made it came no further
        time.sleep(0.1)


def _begin(storage: RDBStorage, address: Address, name: str, space: SearchSpace, described: Description) -> Description:
    import optuna

    try:
        study = optuna.create_study(study_name=name, storage=storage, directions=directions(space))
        with warnings.catch_warnings(action="ignore"):  # names are experimental in Optuna; only people read them
            study.set_metric_names([objective.name for objective in space.objectives])
    except optuna.exceptions.DuplicatedStudyError:
        found = _find(storage, address, name)
        if found is not None:
            return found
    change(storage, address, name, described)
    return described


def asked(address: Address, work: Callable[[], T]) -> T:
    """Return what a database says, at once or not at all.

    Raises:
        SpectuneError: It does not, in its own words without secrets.
    """
    try:
        return work()
    except SpectuneError:
        raise
    except Exception as error:  # noqa: BLE001 (a driver raises whatever it likes)
        raise address.unusable(error) from None
