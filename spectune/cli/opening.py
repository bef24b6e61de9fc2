"""From the options of a search to its space."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spectune.cli.program import STORAGE_VARIABLE
from spectune.cli.terminal import told_when_slow
from spectune.engines.notes import unknown_algorithms
from spectune.engines.open import Simulation, lacking, load_checked_space, open_engine
from spectune.engines.simulated.profile import load_profile, shipped_profiles
from spectune.errors import InputProblems, Problem, SpectuneError
from spectune.sampler_names import GUIDED
from spectune.search import StudyFolder, open_prompts
from spectune.search.shared.description import LONGEST_TAKEOVER_S
from spectune.search.shared.storage import EXAMPLES
from spectune.space import SearchSpace, SpaceProblems, in_order, parse_document, parse_duration
from spectune.space.goals import MOST_TRIALS

SHORTEST_TAKEOVER_S = 3.0


@dataclass(frozen=True)
class Shared:
    """How a study is shared with other workers.

    Attributes:
        storage: URL of the database; it may hold a password.
        takeover_s: Seconds without a sign of life after which a worker's launch is made by others, where the study
            begins with this.
        other_engine: Whether this worker may have another engine than the study was begun with.
        place: Where this worker's launches are made; the machine's name by default.
    """

    storage: str = field(repr=False)
    takeover_s: float
    other_engine: bool = False
    place: str = ""


def shared_by(storage: str | None, *, takeover: str = "10m", other_engine: bool, place: str | None) -> Shared | None:
    """Return how a study is shared: by an option, or by the environment; None where it is not.

    What the environment says is taken out of it: no engine is to inherit a password.

    Raises:
        SpectuneError: The time is none, or too short to be told from a slow network, or the option is empty.
    """
    if storage is not None and not storage.strip():  # a variable of a script that is not set
        raise SpectuneError(f"--storage is empty; it must be {EXAMPLES}")
    from_environment = os.environ.pop(STORAGE_VARIABLE, "")
    url = storage or from_environment
    try:
        takeover_s = parse_duration(takeover)
    except ValueError as error:
        raise SpectuneError(f"--takeover-after: {error}") from None
    if takeover_s < SHORTEST_TAKEOVER_S:
        raise SpectuneError(f"--takeover-after must be at least {SHORTEST_TAKEOVER_S:g} s, but got {takeover}")
    if takeover_s > LONGEST_TAKEOVER_S:
        raise SpectuneError(f"--takeover-after must be at most {LONGEST_TAKEOVER_S // 3600} h, but got {takeover}")
    return Shared(url, takeover_s, other_engine, place or "") if url else None


def require_shared(storage: str | None, *, other_engine: bool, place: str | None) -> Shared:
    """Return how a study is shared.

    Raises:
        SpectuneError: Neither an option nor the environment says it.
    """
    shared = shared_by(storage, other_engine=other_engine, place=place)
    if shared is None:
        raise SpectuneError(f"a worker needs the database of its study: --storage URL, or ${STORAGE_VARIABLE}")
    return shared


def _named_wrongly(space: SearchSpace, *, launching: bool) -> Iterator[Problem]:
    """Yield what is wrong with what a space names: prompts, a profile, and for launching it the engine and models."""
    try:
        open_prompts(space)
    except InputProblems as error:
        yield from error.problems
    try:
        engine = open_engine(space)
    except InputProblems as error:
        yield from error.problems
    except SpectuneError as error:  # of the profile
        yield parse_document(space.text, space.path).problem(("engine", "profile"), str(error))
    else:
        if launching:
            yield from lacking(space, engine)


@dataclass(frozen=True)
class Asked:
    """What the user asked for.

    Attributes:
        source: A search space file, or the name of a shipped one.
        trials: Launches at most; None for the space's budget.
        simulated: Whether on the simulated engine, whatever the space says.
        profile: Its machine, by name or file.
        virtual: Whether in virtual time.
        sampler: What proposes candidates, by name.
        warm_start: An earlier study to learn from, by name.
    """

    source: str
    trials: int | None = None
    simulated: bool = False
    profile: str | None = None
    virtual: bool = False
    sampler: str = GUIDED
    warm_start: str | None = None

    @property
    def lender(self) -> StudyFolder | None:
        """The earlier study.

        Raises:
            SpectuneError: There is none of that name.
        """
        return None if self.warm_start is None else StudyFolder.named(self.warm_start).require()

    def space(self, *, launching: bool = False) -> SearchSpace:
        """Load the search space with everything it names that can be checked without launching it.

        Args:
            launching: Whether a file that is wrong is also told what this machine lacks for it. Of one that is right,
                that is told when a missing runtime has been installed.

        Raises:
            InputProblems: Everything that is wrong with it.
            SpectuneError: Options that do not go together.
        """
        chosen, wrong = self._simulation()
        problems = list(wrong)
        with told_when_slow("reading the search space"):  # seconds, where an engine has to be asked for its options
            try:
                space = load_checked_space(self.source, chosen if self.simulated else None)
            except SpaceProblems as error:
                if error.rest is None:
                    raise
                space = error.rest
                problems += error.problems
            problems += _named_wrongly(space, launching=launching and bool(problems) and not wrong)
            if problems:  # of a file that is right, it is a note
                problems += unknown_algorithms(space)
        if problems:
            raise InputProblems(in_order(problems))
        if (self.profile or self.virtual) and not self.simulated:
            if not space.engine.is_simulated:
                option = "--profile" if self.profile else "--virtual"
                raise SpectuneError(f"{option} is for the simulated engine: add --engine simulated")
            space = space.with_engine(space.engine.simulated(chosen.profile, virtual=chosen.virtual))
        if self.trials is None:
            return space
        if self.trials > MOST_TRIALS:
            raise SpectuneError(f"--trials must be at most {MOST_TRIALS:,}, but a larger number was given")
        return space.with_budget(space.budget.model_copy(update={"trials": self.trials}))

    def _simulation(self) -> tuple[Simulation, Sequence[Problem]]:
        """Return the simulation, and what is wrong with the profile that was named; another one then stands for it.

        A profile's file is meant relative to the current folder, as a shell user would.
        """
        if self.profile is None or self.profile in shipped_profiles():
            return Simulation(self.profile, self.virtual), ()
        try:
            load_profile(self.profile)
        except InputProblems as error:
            return Simulation(None, self.virtual), error.problems
        except SpectuneError as error:
            return Simulation(None, self.virtual), [Problem(str(error))]
        return Simulation(str(Path(self.profile).absolute()), self.virtual), ()
