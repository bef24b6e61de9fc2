"""Which arguments a search space may name for an installed version: its own, today's, and older spellings of either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spectune.engines.sglang.options import Options
from spectune.engines.sglang.versions.spellings import SWITCHES, canonical_name, canonical_value, renamed
from spectune.engines.sglang.versions.translation import translate


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
        option = Options.shipped().by_name.get(name) or self.options.by_name.get(self.name)
        if option is not None and (wrong := replace(option, choices=None).complaint(value)) is not None:
            return wrong
        if self.name == "enable-dp-attention":  # nothing by itself
            return None
        alone = {self.name: value}
        if self.name == "speculative-draft-window-size":  # which algorithms take it is seen in the launch
            alone["speculative-algorithm"] = "DFLASH"
        translated = translate(alone, {}, self.options)
        if translated.problems:
            return translated.problems[0]
        complaints = (self._wrong(name, given) for name, given in translated.arguments.items())
        return next((complaint for complaint in complaints if complaint is not None), None)

    def _wrong(self, name: str, value: Any) -> str | None:
        option = self.options.by_name[name]
        # A free string where older versions have choices is upper case there (SGLang does it itself since 0.5.12).
        if name == "speculative-algorithm" and isinstance(value, str):
            value = value.upper()
        return option.complaint(value)


def accepted_arguments(options: Options) -> Mapping[str, AcceptedArgument]:
    """Return every name a space may use for this version, with what judges its values."""
    today = Options.shipped().by_name
    names = {*options.by_name, *today, *renamed(), *SWITCHES}
    return {name: AcceptedArgument(name, options) for name in names}
