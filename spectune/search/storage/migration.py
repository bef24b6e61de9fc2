"""A study that is gone on with under another search space: what changed, and what becomes of its launches.

Values that are added, removed or forbidden change what may be launched, not what the launches showed: they stay, but
for those that lie outside now, which are set aside. What changes the launches or their measurement makes another study.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spectune import files
from spectune.errors import SpectuneError
from spectune.search.storage.flattened import leaves
from spectune.search.storage.folder import OUTSIDE, StudyFolder
from spectune.space import NUM_DRAFT_TOKENS, Candidate, IntegerRange, Parameter, SearchSpace

_WHY = {"engine.parallel": "a launch is as fast as its neighbours let it be"}
"""Keys of which it is not plain that launches before and after a change do not compare."""
_HARMLESS = ("schema", "name", "forbid", "targets", "budget", "engine.startup_timeout")


@dataclass(frozen=True)
class Change:
    """One key that is not as it was.

    Attributes:
        key: Path in the file.
        before: Its value then; None where it was not there.
        after: Its value now.
        harmless: Whether the launches made before still mean the same.
    """

    key: str
    before: Any
    after: Any
    harmless: bool

    def __str__(self) -> str:
        return f"{self.key}: {_said(self.before)} → {_said(self.after)}"


def changes(before: SearchSpace, after: SearchSpace) -> list[Change]:
    """Return how a space differs from another, key by key in the order of the file."""
    was, now = dict(_flat(before)), dict(_flat(after))
    return [
        Change(key, was.get(key), now.get(key), _harmless(key, both=key in was and key in now))
        for key in dict.fromkeys([*was, *now])
        if was.get(key) != now.get(key)
    ]


def refuse_another(folder: StudyFolder, space: SearchSpace) -> None:
    """Make sure that a study that has begun can go on with this space.

    Raises:
        SpectuneError: Its launches mean something else than they would mean here.
    """
    if not folder.exists():
        return
    before = folder.space()
    found = [change for change in changes(before, space) if not change.harmless]
    if found:
        learning = f", and let it learn with --warm-start {folder.name}" * (before.engine.kind == space.engine.kind)
        raise SpectuneError(
            f"the study {folder.name} was begun with another search space or engine (kept as {folder.resolved_file}), "
            f"and its launches do not count here: {'; '.join(map(_reasoned, found))}; "
            f"give this one a name of its own with --study NAME{learning}"
        )


def _reasoned(change: Change) -> str:
    return f"{change} ({_WHY[change.key]})" if change.key in _WHY else str(change)


def migrate(folder: StudyFolder, space: SearchSpace) -> list[str]:
    """Go on with a study under a space that changed without harm, and return what to say of it, in sentences.

    The space as it was is kept beside the new one. What only concerns the budget is not kept: it holds for one run.
    """
    before = folder.space()
    every = changes(before, space)
    found = [change for change in every if not change.key.startswith("budget")]
    allowed = [change for change in every if change not in found]
    told = [f"the budget is another one than the study began with: {'; '.join(map(str, allowed))}"] if allowed else []
    if not found:
        return told
    made = len(folder.records())
    outside = list(_set_aside(folder, before, space))
    resolved = folder.resolved_file.read_text(encoding="utf-8")
    files.write_whole(folder.root / f"resolved-until-{made:04d}.yaml", resolved)
    for leftover in folder.root.glob(f"{folder.ledger.name}*"):  # made anew from the records, in the new space's terms
        leftover.unlink()
    files.write_whole(folder.space_file, space.text)
    remarks = [line for line in resolved.splitlines() if line.startswith("#")]
    files.write_whole(folder.resolved_file, "\n".join([*remarks, space.resolved_yaml()]))
    told += [f"the search space has changed: {'; '.join(map(str, found))}"]
    if outside:
        told.append(
            f"launches {', '.join(outside)} lie outside of it now and do not count any more (kept in "
            f"{folder.root / OUTSIDE})"
        )
    return told


def _set_aside(folder: StudyFolder, before: SearchSpace, after: SearchSpace) -> Iterator[str]:
    """Move the launches that have no place in a space out of the way, and yield their names."""
    found = [(record.candidate, record.trial, record.role) for record in folder.records()]
    found += [(step.candidate, step.trial, step.role) for step in folder.interrupted()]
    for candidate, trial, role in found:
        if _removed(candidate, before, after) or after.forbidden(candidate) is not None:
            source = folder.trial_folder(trial, role)
            target = folder.root / OUTSIDE / source.name
            while target.exists():
                target = target.with_name(f"{target.name}-again")
            target.parent.mkdir(exist_ok=True)
            source.rename(target)
            yield source.name


def _removed(candidate: Candidate, before: SearchSpace, after: SearchSpace) -> bool:
    """Whether a candidate has a value that was taken away; the N of a chain is none that anybody chose."""
    for name, value in candidate.items:
        if name == NUM_DRAFT_TOKENS and (candidate.eagle_topk or 1) == 1:
            continue
        was, now = before.parameters.get(name), after.parameters.get(name)
        if was is not None and now is not None and was.allows(value) and not now.allows(value):
            return True
    return False


def _harmless(key: str, *, both: bool) -> bool:
    if key.startswith("search."):
        return both
    return any(key == name or key.startswith(f"{name}.") for name in _HARMLESS)


def _flat(space: SearchSpace) -> Iterator[tuple[str, Any]]:
    """Yield key and value of a space as it is understood."""
    data = space.file.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["search"] = {name: _domain(parameter) for name, parameter in space.parameters.items()}
    data["forbid"] = [condition.to_plain() for condition in space.forbid]
    yield from leaves(data)


def _domain(parameter: Parameter) -> Any:
    domain = parameter.domain
    if not isinstance(domain, IntegerRange):
        return list(domain)
    return f"{domain.low} to {domain.high}" + (f" by {domain.step}" if domain.step > 1 else "")


def _said(value: Any) -> str:
    if value is None:
        return "nothing"
    return json.dumps(value) if not isinstance(value, str) else value
