"""A drafter that somebody named for a new search space: what drives it, and whether it can work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spectune.engines.sglang.model_folder import ModelReader
from spectune.engines.sglang.preflight import Checkpoint, preflight
from spectune.engines.sglang.preflight.algorithm import OWN_COPY
from spectune.engines.sglang.preflight.architectures import Kind, kind_as_drafter, kind_by_name
from spectune.engines.sglang.preflight.context import TOO_SHORT
from spectune.engines.sglang.rules.judging import Finding
from spectune.engines.sglang.rules.names import CONTEXT, DRAFT_MODEL
from spectune.engines.sglang.versions.history import newest_known
from spectune.errors import SpectuneError
from spectune.printable import printable

DRAFTS_WITH: Mapping[Kind, str] = {
    "eagle3": "EAGLE3", "eagle": "EAGLE", "mtp": "EAGLE", "whole": "STANDALONE", "block": "DFLASH",
}  # fmt: skip


@dataclass(frozen=True)
class OfferedDrafter:
    """A drafter somebody named, and what the preflight says of it.

    Attributes:
        name: As it goes into the file.
        checkpoint: What is here of it.
        algorithm: What drives it; None where it cannot be told.
        seen: Whether its config.json was read; otherwise the algorithm is guessed from the name.
        findings: Of the preflight under that algorithm.
    """

    name: str
    checkpoint: Checkpoint
    algorithm: str | None
    seen: bool
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> Finding | None:
        """Why it is not worth a launch; None when nothing speaks against it."""
        return next((one for one in self.findings if one.severity == "fatal" or one.rule == OWN_COPY), None)

    @property
    def reach(self) -> int | None:
        """The context length with which it works, where it is refused for nothing but the target's being longer."""
        against = [one.rule for one in self.findings if one.severity == "fatal"]
        return self.checkpoint.context_length if against == [TOO_SHORT] else None

    @property
    def doubts(self) -> list[str]:
        """What else is to be said of it."""
        return [f"{one.message}; {one.advice}" for one in self.findings if one.severity == "warning"]


def offer(
    name: str, target: Checkpoint, longest_request: int, version: str, context_length: int | None = None
) -> OfferedDrafter:
    """Look at a drafter.

    Args:
        name: Folder or hub name.
        target: What it drafts for.
        longest_request: Tokens a request has at least.
        version: SGLang's version.
        context_length: What both are served with; None for the target's own.

    Raises:
        SpectuneError: It is no model, or nothing is known of what would drive it.
    """
    draft, _ = read_checkpoint(name, DRAFT_MODEL)
    if draft.architecture is None:
        guess = kind_by_name(name)
        if guess is None:
            raise SpectuneError(
                f"--drafter {printable(name, 200)}: its config.json is not on this machine, so what drives it cannot "
                "be told; give its folder"
            )
        return OfferedDrafter(place_of(name), draft, DRAFTS_WITH[guess], seen=False)
    kind = kind_as_drafter(draft.architecture, version)
    if kind is None:
        raise SpectuneError(
            f"--drafter {printable(name, 200)}: SGLang {version} has no model class {draft.architecture}; "
            f"take another drafter{'' if newest_known(version) else ', or a newer SGLang'}"
        )
    algorithm = DRAFTS_WITH[kind]
    if kind == "block" and "DSpark" in draft.architecture:
        algorithm = "DSPARK"
    found = preflight(
        target, draft, algorithm=algorithm, longest_request=longest_request, version=version,
        arguments={} if context_length is None else {CONTEXT: context_length},
    )  # fmt: skip
    return OfferedDrafter(place_of(name), draft, algorithm, seen=True, findings=tuple(found))


def read_checkpoint(name: str, option: str) -> tuple[Checkpoint, tuple[Finding, ...]]:
    """Return a model as far as it is on this machine, and what is doubtful about it.

    Raises:
        SpectuneError: It is a folder that is not there, or no model.
    """
    reader = ModelReader(Path.cwd(), os.environ)
    model, said = reader.read(name, option)
    broken = [f"{one.message}; {one.advice}" for one in said if one.severity == "fatal"]
    if broken:
        raise SpectuneError("\n".join(broken))
    if name.startswith(("/", "./", "../", "~")) and not _expanded(name).is_dir():
        raise SpectuneError(f"there is no model folder {printable(name, 200)}; give a folder, or the name of a hub")
    return Checkpoint(name, model, reader.folder(name)), said


def place_of(name: str) -> str:
    """Return a folder's full path, so that the file works from anywhere; a hub name stays one."""
    path = _expanded(name)
    return str(path.absolute()) if path.is_dir() else name


def _expanded(name: str) -> Path:
    """Return the path with the user's home in it; a home that is not known stays as it is."""
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser() raises there
