"""What SGLang's model classes can do under speculation, from a table made from the wheels of all versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from spectune.engines.sglang.versions.history import older_than

Kind = Literal["eagle", "eagle3", "mtp", "block", "whole"]


@dataclass(frozen=True)
class Architecture:
    """One line of the table.

    Attributes:
        drafter: Kind of draft head; empty for a whole model.
        bundled: What it becomes when it is loaded as a drafter, which then holds its own MTP layers; empty for nothing.
        captures: First version in which it hands out hidden states of chosen layers; empty for none.
        shares: First version in which it lends its embedding and head; empty for none.
    """

    name: str
    first: str
    last: str
    drafter: str
    bundled: str
    captures: str
    shares: str

    def captures_in(self, version: str) -> bool:
        """Whether EAGLE3 can run on it."""
        return reached(self.captures, version)

    def shares_in(self, version: str) -> bool:
        """Whether a drafter can borrow its embedding and head."""
        return reached(self.shares, version)


@cache
def architectures() -> Mapping[str, Architecture]:
    """Return every architecture that SGLang 0.5.6 to 0.5.23 had, by name."""
    text = resources.files(__package__).joinpath("architectures.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {row[0]: Architecture(*row) for row in rows[1:]}


def known(name: str | None, version: str) -> Architecture | None:
    """Return an architecture; None when that version's SGLang has no class for it."""
    found = architectures().get(name or "")
    if found is None or not reached(found.first, version):
        return None
    return found if not found.last or not older_than(found.last, version) else None


def kind_as_drafter(name: str | None, version: str) -> Kind | None:
    """Return what an architecture is when SGLang loads it as a drafter; None when nothing is known of it."""
    found = known(name, version)
    if found is None:
        return None
    if found.drafter:
        return found.drafter  # type: ignore[return-value]  # the table holds no other words
    return "mtp" if known(found.bundled, version) is not None else "whole"


def kind_by_name(name: str) -> Kind | None:
    """Guess what a drafter is that is not on this machine; None where its name does not say."""
    return "eagle3" if "eagle3" in name.lower().replace("-", "").replace("_", "") else None


def reached(first: str, version: str) -> bool:
    """Whether a version has what came with `first`; nothing came with an empty one."""
    return bool(first) and not older_than(version, first)
