"""Names of exported files: told from the candidate, safe everywhere, unique within an export."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from spectune.search.storage.studies import STUDIES
from spectune.space import Candidate

LONGEST = 80
NO_SPECULATION = "no-speculation"
ID_DIGITS = 6


def candidate_names(candidates: Sequence[Candidate]) -> list[str]:
    """Return a name per candidate, such as `eagle3-drafter-strong-s3-k1-n4`; alike ones get their id's first digits."""
    names = [_name(candidate) for candidate in candidates]
    taken = Counter(names)
    return [
        name if taken[name] == 1 else f"{name}-{candidate.candidate_id[:ID_DIGITS]}"
        for name, candidate in zip(names, candidates, strict=True)
    ]


def lasting_name(path: Path) -> Path:
    """Return what an exported file is called in what is kept of it, however the folder of its study was named.

    From the folder that holds `studies` on, where the study is in one; else in full.
    """
    whole = Path(os.path.realpath(path))
    study = Path(*whole.parts[-4:])  # studies/NAME/export/FILE
    return study if study.parts[0] == STUDIES.name else whole


def _name(candidate: Candidate) -> str:
    if not candidate.speculative:
        return NO_SPECULATION
    shape = (("s", candidate.num_steps), ("k", candidate.eagle_topk), ("n", candidate.num_draft_tokens))
    drafter = re.split(r"[/:]", candidate.drafter.rstrip("/:"))[-1] if candidate.drafter else ""
    tail = [f"{letter}{number}" for letter, number in shape if number is not None]
    head = _safe("-".join(word for word in (candidate.algorithm, drafter) if word))
    return "-".join([head[: LONGEST - len("-".join(tail)) - 1].rstrip("-"), *tail])


def _safe(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "candidate"
