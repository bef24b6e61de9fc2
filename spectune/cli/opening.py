"""From the options of a search to its space."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spectune.cli.terminal import told_when_slow
from spectune.engines.open import Simulation, load_checked_space
from spectune.engines.simulated.profile import shipped_profiles
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, open_prompts
from spectune.search.samplers import GUIDED
from spectune.space import SearchSpace


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

    def space(self) -> SearchSpace:
        """Load the search space with everything it names that can be checked without an engine.

        Raises:
            InputProblems: Everything that is wrong with it.
            SpectuneError: Options that do not go together.
        """
        with told_when_slow("reading the search space"):  # seconds, where an engine has to be asked for its options
            space = load_checked_space(self.source, self._simulation() if self.simulated else None)
            open_prompts(space)
        if space.engine.kind != "simulated" and (self.profile or self.virtual):
            option = "--profile" if self.profile else "--virtual"
            raise SpectuneError(f"{option} is for the simulated engine: add --engine simulated")
        if space.engine.kind == "simulated" and not self.simulated and (self.profile or self.virtual):
            chosen = self._simulation()
            space = space.with_engine(space.engine.simulated(chosen.profile, virtual=chosen.virtual))
        if self.trials is None:
            return space
        return space.with_budget(space.budget.model_copy(update={"trials": self.trials}))

    def _simulation(self) -> Simulation:
        """Return the simulation; a profile's file is meant relative to the current folder, as a shell user would."""
        named = self.profile is None or self.profile in shipped_profiles()
        return Simulation(self.profile if named else str(Path(str(self.profile)).absolute()), self.virtual)
