"""What a study keeps of its prompt files, to know them again: launches that were asked other things do not compare."""

from __future__ import annotations

import json
from collections.abc import Mapping

from spectune.bench.prompt_sources import Workload
from spectune.errors import SpectuneError
from spectune.search.storage.folder import StudyFolder

PROMPTS_FILE = "prompts.json"


def kept_prompts(workload: Workload) -> Mapping[str, str]:
    """Return the file that a study begins with, by its name; nothing where all prompts are built in."""
    if not workload.sha256:
        return {}
    return {PROMPTS_FILE: json.dumps({"schema": 1, "sha256": dict(workload.sha256)}, indent=2) + "\n"}


def refuse_other_prompts(folder: StudyFolder, workload: Workload) -> None:
    """Make sure that a study goes on with the prompts it was begun with; those of older versions kept nothing of them.

    Raises:
        SpectuneError: A file has other content.
    """
    kept = folder.belonging(PROMPTS_FILE)
    if kept is None:
        return
    try:
        known = json.loads(kept)["sha256"]
        changed = [name for name, sha256 in workload.sha256.items() if known[name] != sha256]
    except (ValueError, KeyError, TypeError):
        raise SpectuneError(
            f"{folder.root / PROMPTS_FILE} is damaged: it no longer says which prompts the study was begun with; "
            "remove it if they are still the same"
        ) from None
    if changed:
        raise SpectuneError(
            f"the prompts {', '.join(changed)} are not those that the study {folder.name} was begun with, and launches "
            "that were asked other things do not compare; give this one a name of its own with --study NAME"
        )
