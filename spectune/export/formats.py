"""The forms a launch can be taken away in."""

from __future__ import annotations

from enum import StrEnum

from spectune.errors import SpectuneError


class Format(StrEnum):
    """One form."""

    SHELL = "sh"
    CONFIG = "yaml"
    COMPOSE = "compose"
    ADAPTIVE = "adaptive"

    @property
    def ending(self) -> str:
        """What a file of it is called after `launch-NAME.`."""
        return {Format.COMPOSE: "compose.yaml", Format.ADAPTIVE: "adaptive.json"}.get(self, self.value)

    @property
    def key(self) -> str:
        """Its name in JSON."""
        return {Format.SHELL: "shell", Format.CONFIG: "config"}.get(self, self.value)


DEFAULT_FORMATS = (Format.SHELL, Format.CONFIG)


def parse_formats(text: str) -> tuple[Format, ...]:
    """Return the formats of a list such as `sh,compose`, in order, each once.

    Raises:
        SpectuneError: One of them is none.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in list(Format)]
    if unknown or not words:
        got = ", ".join(map(repr, unknown)) or "none"
        raise SpectuneError(f"--format takes {', '.join(Format)}, separated by commas, but got {got}")
    return tuple(dict.fromkeys(map(Format, words)))
