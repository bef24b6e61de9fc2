"""How a worker comes to a shared study: it begins it, or takes up the one that is there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from spectune import __version__, files
from spectune.engines.open import open_engine
from spectune.engines.protocol import Engine
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.errors import SpectuneError
from spectune.search.beginning import environment_of, open_study
from spectune.search.checking import with_own_profile, with_prompts
from spectune.search.proposing.warm_start import WARM_START, WarmStart
from spectune.search.shared.description import Description, begin, change
from spectune.search.shared.meeting import Meeting
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.kept_prompts import PROMPTS_FILE
from spectune.search.storage.migration import changes
from spectune.space import SearchSpace, parse_space


def refuse_other_space(found: Description, name: str, space: SearchSpace) -> None:
    """Make sure that a search asks what the shared study asks; only its budget may be another.

    Raises:
        SpectuneError: Naming what differs.
    """
    theirs = parse_space(found.resolved, Path(f"{name}, as it is shared"))
    other = [change for change in changes(theirs, space) if not _of_no_matter(change.key)]
    if other:
        raise SpectuneError(
            f"the shared study {name} was begun with another search space or engine: {'; '.join(map(str, other))}; "
            "give this one a name of its own with --study NAME"
        )


def refuse_other_engine(found: Description, name: str, engine: Engine, *, allowed: bool) -> str:
    """Make sure that a worker launches the engine the study was begun with.

    Args:
        found: The study.
        name: Its name.
        engine: What the worker has.
        allowed: Whether another one may join all the same.

    Returns:
        What readers of this worker's records should know; empty where the engine is the same.

    Raises:
        SpectuneError: It is another one, or what belongs to it is, and that is not allowed.
    """
    differing = [] if engine.title == found.engine else [f"{engine.title} is here, and the study runs {found.engine}"]
    differing += [f"{file} differs" for file, text in engine.belongings().items() if found.belongings.get(file) != text]
    if not differing:
        return ""
    said = f"another engine: {'; '.join(differing)}"
    if not allowed:
        raise SpectuneError(
            f"the shared study {name} has {said}; its launches would not be comparable: install the same here, or join "
            "with --allow-other-engine"
        )
    return f"made with {said}"


@dataclass(frozen=True)
class Comer:
    """A search that comes to a shared study: it begins it, or joins it with the command that could have begun it.

    Attributes:
        folder: Its own, here.
        space: What it asks.
        engine: What it has.
        sampler: What proposes candidates.
        lender: The earlier study it would begin with.
        launches: Whether it makes launches here; otherwise it starts workers elsewhere.
    """

    folder: StudyFolder
    space: SearchSpace
    engine: Engine
    sampler: str
    lender: StudyFolder | None
    launches: bool

    def begin(self, meeting: Meeting, takeover_s: float) -> list[str]:
        """Begin the study from the folder here, whose launches are shared too where there are some.

        Where another search has begun it meanwhile, join that.

        Returns:
            What there is to say of it, in sentences.

        Raises:
            SpectuneError: The folder holds another study, or what was begun meanwhile asks something else.
        """
        folder, space, engine = self.folder, self.space, self.engine
        told = list(open_study(folder, space, engine, self.lender, launches=self.launches))
        belongings = dict(engine.belongings())
        kept = {name: folder.belonging(name) for name in (WARM_START, PROMPTS_FILE)}
        belongings |= {name: text for name, text in kept.items() if text is not None}
        resolved = folder.resolved_file.read_text(encoding="utf-8")
        mine = Description(
            space=space.text, resolved=resolved, beside=str(space.path.resolve().parent), belongings=belongings,
            engine=engine.title, sampler=self.sampler, takeover_s=max(2, round(takeover_s)),
        )  # fmt: skip
        held = begin(meeting.storage, meeting.address, meeting.name, space, mine)
        if held == mine:
            return told
        refuse_other_space(held, meeting.name, space)
        return [*told, *self.join(meeting, held)]

    def join(self, meeting: Meeting, found: Description) -> list[str]:
        """Join the study that is there.

        Returns:
            What there is to say of it, in sentences.

        Raises:
            SpectuneError: It asks something else, or its folder here holds another study.
        """
        if self.sampler != found.sampler:
            raise SpectuneError(
                f"the shared study {meeting.name} was begun with --sampler {found.sampler}, so {self.sampler} cannot "
                "join it"
            )
        told = take_up(found, self.folder, self.engine, launches=self.launches)
        lent = WarmStart.of(self.folder)
        if self.lender is not None and (lent is None or lent.study != self.lender.name):
            began = "without one" if lent is None else f"from {lent.study}"
            raise SpectuneError(f"--warm-start {self.lender.name}: the shared study {meeting.name} has begun, {began}")
        theirs = parse_space(found.resolved, Path(meeting.name))
        if theirs.budget != self.space.budget:
            remarks = [line for line in found.resolved.splitlines() if line.startswith("#")]
            resolved = "\n".join([*remarks, self.space.resolved_yaml()])
            change(meeting.storage, meeting.address, meeting.name, replace(found, resolved=resolved))
            told.append("the budget of the shared study is the one given now, also for workers that join from here on")
        return told


def space_here(found: Description, folder: StudyFolder, beside: SearchSpace | None) -> tuple[SearchSpace, SGLangEngine]:
    """Return the space of a shared study and its engine, as a worker on this machine has them.

    Args:
        found: The study.
        folder: The worker's own.
        beside: The space's file on this machine, where its prompts are files beside it.

    Raises:
        SpectuneError: The prompts or the engine are not here.
    """
    space = parse_space(found.resolved, folder.resolved_file)
    there = Path(found.beside) / folder.space_file.name
    local = [source.prompts for source in space.workload.prompts if not source.prompts.startswith("builtin:")]
    if beside is None and local and all((there.parent / prompts).exists() for prompts in local):
        space = replace(space, path=there)  # machines that share a file system share the prompts too
    for belonging, text in found.belongings.items():
        if not folder.exists():
            files.write_whole(folder.root / belonging, text)
    space = with_prompts(folder, space, beside)
    return space, open_engine(with_own_profile(folder, space))


def take_up(found: Description, folder: StudyFolder, engine: Engine, *, launches: bool = True) -> list[str]:
    """Make a folder a copy of the shared study's beginning, with this machine's fingerprint if it makes launches.

    Raises:
        SpectuneError: There is another study in it.
    """
    if folder.exists():
        theirs = parse_space(found.resolved, folder.resolved_file)
        other = [change for change in changes(theirs, folder.space()) if not _of_no_matter(change.key)]
        if other:
            raise SpectuneError(
                f"{folder.root} holds another study than the shared one: {'; '.join(map(str, other))}; move it away, "
                "or work in another folder"
            )
        kept = folder.belonging(PROMPTS_FILE)
        if kept is not None and found.belongings.get(PROMPTS_FILE, kept) != kept:
            raise SpectuneError(
                f"the prompt files here are not those that the shared study was begun with (see {PROMPTS_FILE} in "
                f"{folder.root}); its launches would not be comparable"
            )
    else:
        folder.begin(found.space, found.resolved, environment_of(engine) if launches else None, found.belongings)
    if launches and not folder.environment():  # it was only followed from here until now
        folder.keep_environment(environment_of(engine))
    if found.spectune != __version__:
        return [f"the study was begun by spectune {found.spectune}, and this is {__version__}"]
    return []


def _of_no_matter(key: str) -> bool:
    return key == "name" or key.startswith("budget")
