"""What a study's engine may launch by its rules alone: to read a study where there is no engine, as in its report."""

from __future__ import annotations

import re

from spectune.engines import cpu_reference
from spectune.engines.open import settings_on
from spectune.engines.protocol import Engine
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.versions.history import newest_known
from spectune.space import SearchSpace

NOBODY = Interpreter("python3")
"""Is never asked."""


def rules_of(space: SearchSpace, title: str) -> Engine:
    """Return the engine of a space as far as its table of rules goes: nothing of the machine is looked at.

    Args:
        space: What is searched.
        title: Of the engine that was launched; its version decides which rules hold.
    """
    section = space.engine
    runtime = None if section.runtime is None else cpu_reference.planned(section.runtime)
    fixed, env = settings_on(runtime, section)
    return SGLangEngine(
        NOBODY,
        version_of(title),
        fixed=fixed,
        env=env,
        gpus=0,
        most_running=space.workload.most_running,
        unset=section.env_to_unset,
        check_drafters=False,
    )


def newest_of(title: str) -> bool | None:
    """Return whether no version newer than the one in the title of an engine is known; None where it names none."""
    version = version_of(title)
    return None if version is None else newest_known(version)


def version_of(title: str) -> str | None:
    """Return SGLang's version in the title of an engine, None where there is none."""
    found = re.search(r"\bSGLang (\d[\w.]*)", title)
    return found[1] if found else None
