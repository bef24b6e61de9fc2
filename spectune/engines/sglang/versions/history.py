"""SGLang's versions: which ones spectune launches, and since when each option has existed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from spectune.engines.sglang.options import SHIPPED_VERSION
from spectune.errors import SpectuneError

FIRST_VERSION = "0.5.6"  # before it, no NGRAM and STANDALONE, and too little is reported to measure by

# First version whose speculative/spec_info.py knows the name; the others are older than FIRST_VERSION.
ALGORITHMS_SINCE: Mapping[str, str] = {
    "DFLASH": "0.5.11",
    "FROZEN_KV_MTP": "0.5.12",
    "DSPARK": "0.5.16",
    "UNO": "0.5.20",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class NameHistory:
    """One line of the table: where a name of the command line comes from.

    Attributes:
        name: Without dashes.
        first: The first version that has it.
        last: The last one; None when SGLang 0.5.23 has it.
        older: What versions before `first` call it; None when they cannot do it.
        condition: When `older` means the same; empty for always.
        source: File and line in `first`, below sglang/srt.
    """

    name: str
    first: str
    last: str | None
    older: str | None
    condition: str
    source: str


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version for comparing: `0.5.10.post1` gives (0, 5, 10)."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else [0]
    return tuple(numbers[:3] + [0] * (3 - len(numbers)))


def older_than(version: str, other: str) -> bool:
    """Whether `version` came before `other`; post and pre-releases count as the release itself."""
    return release(version) < release(other)


def check_supported(version: str, python: str) -> None:
    """Refuse a version that is too old, and warn once of one that spectune has not seen.

    Args:
        version: SGLang's version.
        python: The interpreter that has it, for the message.

    Raises:
        SpectuneError: It is older than 0.5.6.
    """
    if older_than(version, FIRST_VERSION):
        raise SpectuneError(
            f"SGLang {version} of {python} is too old; spectune takes {FIRST_VERSION} to {SHIPPED_VERSION}, and newer "
            "ones with a warning; upgrade it or name another engine.python"
        )
    if older_than(SHIPPED_VERSION, version):
        _warn_of_newer(version)


@cache
def _warn_of_newer(version: str) -> None:
    logger.warning(
        "SGLang %s is newer than %s, the newest whose rules spectune knows; its own parser is asked for names and "
        "values, and what a launch resolves to is checked after it",
        version,
        SHIPPED_VERSION,
    )


@cache
def history() -> Mapping[str, NameHistory]:
    """Return the table: every option that not all versions from 0.5.6 to 0.5.23 have, by name."""
    text = resources.files(__package__).joinpath("versions.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {
        name: NameHistory(name, first, last or None, older or None, condition, source)
        for name, first, last, older, condition, source in rows[1:]
    }


def newest_known(version: str) -> bool:
    """Whether no version that spectune knows is newer, so that there is none to advise."""
    return not older_than(version, SHIPPED_VERSION)


def is_newest_by(arguments: Iterable[str]) -> bool | None:
    """Return whether a server's arguments are those of the newest version; None where they are of no one's alone.

    Args:
        arguments: Names as its log has them; a log may be cut, so that a name which is missing says nothing.
    """
    known = [history()[name] for name in (one.replace("_", "-") for one in arguments) if name in history()]
    if any(newest_known(one.first) for one in known):
        return True
    return False if any(one.last is not None for one in known) else None


def lacking(name: str, version: str) -> str:
    """Return the sentence that says that a version has no such option, with the way out."""
    known = history().get(name)
    if known is None:
        return f"SGLang {version} has no option {name}; remove it"
    if older_than(version, known.first):
        return f"SGLang {version} has no {name}, which came with {known.first}; remove it or upgrade SGLang"
    if known.last is not None and older_than(known.last, version):
        return f"SGLang {version} has no {name} any more, {known.last} was the last with it; remove it"
    return f"the installed SGLang {version} has no {name}, although that version should; remove it"
