"""Which arguments a search space may name for an installed version: its own, today's, and older spellings of either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from spectune.engines.sglang.options import Options
from spectune.engines.sglang.rules.names import ALGORITHM, ALGORITHMS, misspelt_algorithm
from spectune.engines.sglang.versions.history import FIRST_VERSION, history, lacking
from spectune.engines.sglang.versions.spellings import SWITCHES, canonical_name, canonical_value, renamed
from spectune.engines.sglang.versions.successors import SUCCESSORS, Successor
from spectune.engines.sglang.versions.translation import translate

# As its command line takes them, which completes names; a space has one name for each.
WRITTEN_OUT: Mapping[str, str] = MappingProxyType({"tp": "tp-size", "dp": "dp-size", "pp": "pp-size"})


@dataclass(frozen=True)
class AcceptedArgument:
    """One name a space may use.

    Attributes:
        name: As it stands in the space.
        options: The installed version's.
    """

    name: str
    options: Options

    def complaint(self, value: Any) -> str | None:
        """Say what is wrong with `value` in this version; None when it fits."""
        name = canonical_name(self.name)
        value = canonical_value(name, value)
        if name == ALGORITHM and (meant := misspelt_algorithm(str(value))) is not None:
            return f"SGLang has no {ALGORITHM} {value}; did you mean {meant}? It knows {', '.join(sorted(ALGORITHMS))}"
        option = Options.shipped().by_name.get(name) or self.options.by_name.get(self.name)
        if option is not None and (wrong := replace(option, choices=None).complaint(value)) is not None:
            return wrong
        if self.name == "enable-dp-attention":  # nothing by itself
            return None
        alone = {self.name: value}
        if self.name == "speculative-draft-window-size":  # which algorithms take it is seen in the launch
            alone[ALGORITHM] = "DFLASH"
        translated = translate(alone, {}, self.options)
        if translated.problems:
            return translated.problems[0]
        complaints = (self._wrong(name, given) for name, given in translated.arguments.items())
        return next((complaint for complaint in complaints if complaint is not None), None)

    def _wrong(self, name: str, value: Any) -> str | None:
        option = self.options.by_name[name]
        # A free string where older versions have choices is upper case there (SGLang does it itself since 0.5.12).
        if name == ALGORITHM and isinstance(value, str):
            value = value.upper()
        return option.complaint(value)


@dataclass(frozen=True)
class GoneArgument:
    """A name that neither this version nor today's has, which people still write.

    Attributes:
        name: As it stands in the space.
        version: The installed one.
    """

    name: str
    version: str

    def complaint(self, value: Any) -> str:  # noqa: ARG002 (whatever the value is)
        """Say since when it is gone, and what took its place."""
        if self.name in WRITTEN_OUT:
            return f"'{self.name}' is short for {WRITTEN_OUT[self.name]}: write that"
        if self.name not in history():
            gone = f"SGLang {self.version} has no {self.name}, which was gone before {FIRST_VERSION}"
        else:
            gone = lacking(self.name, self.version).rpartition(";")[0]
        successor = SUCCESSORS.get(self.name, Successor())
        way_out = f"write {successor.in_a_space}" if successor.words else successor.advice.replace("--", "")
        return f"{gone}; {way_out or 'remove it'}"


def accepted_arguments(options: Options) -> Mapping[str, AcceptedArgument | GoneArgument]:
    """Return every name a space may use for this version, with what judges its values."""
    today = Options.shipped().by_name
    names = {*options.by_name, *today, *renamed(), *SWITCHES}
    gone = {*WRITTEN_OUT, *SUCCESSORS, *(name for name, known in history().items() if known.last is not None)} - names
    return {
        **{name: AcceptedArgument(name, options) for name in names},
        **{name: GoneArgument(name, options.version) for name in gone},
    }
