"""What is never written down: tokens, keys and passwords, told by name or by form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

BLOT = "•••"
PLACEHOLDER = "(left out: set it yourself)"
HIDDEN = "***"  # in what is printed of a command
SHORTEST_SECRET = 6
"""Characters; blotting out anything shorter would tear holes into ordinary figures and words."""

_SECRET_WORDS = {
    "auth",
    "key",
    "keys",
    "apikey",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "credential",
    "credentials",
}
_SECRET_ENDINGS = ("password", "passwd", "secret", "apikey", "accesskey")
# A token is a secret or a piece of text; engines name limits and timings after the latter.
_TEXT_TOKEN_NEIGHBOURS = {
    "per",
    "first",
    "inter",
    "last",
    "next",
    "mask",
    "pad",
    "map",
    "mode",
    "distribution",
    "usage",
}
# Of a web address the name alone is often a token: https://TOKEN@host.
_URL_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@|https?://[^/\s@]+@", re.IGNORECASE)
_KNOWN_TOKEN = re.compile(r"\b(hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{16,})")


def secret_name(name: str) -> bool:
    """Whether a variable or argument of this name holds a secret: `HF_TOKEN`, `api-key`, but not `max-total-tokens`."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    return "token" in words and not _TEXT_TOKEN_NEIGHBOURS.intersection(words)


def secret_value(value: str) -> bool:
    """Whether a value gives itself away: a URL with a password, a well-known form of token, a blot."""
    return BLOT in value or bool(_URL_PASSWORD.search(value) or _KNOWN_TOKEN.search(value))


def hides_secret(name: str, values: Iterable[str]) -> bool:
    """Whether a variable or argument must not be written down."""
    found = tuple(values)
    return bool(found) and (secret_name(name) or any(secret_value(value) for value in found))


class Launch(Protocol):
    """A program's words and the variables it is given."""

    @property
    def argv(self) -> Sequence[str]:
        """Program and arguments."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Variables."""
        ...


def secret_variables(env: Mapping[str, str]) -> frozenset[str]:
    """Return the values of variables that hold secrets."""
    found = {value for name, value in env.items() if hides_secret(name, (value,))}
    return frozenset(value for value in found if len(value) >= SHORTEST_SECRET and BLOT not in value)


def secret_values(commands: Iterable[Launch]) -> frozenset[str]:
    """Return every secret these launches were given, so that it can be blotted out of logs and other text."""
    found: set[str] = set()
    for command in commands:
        found |= secret_variables(command.env)
        name = ""
        for word in command.argv:
            if word.startswith("--"):
                name, _, joined = word.partition("=")
                values = [joined] if joined else []
            else:
                values = [word]
            if hides_secret(name, values):
                found.update(value for value in values if BLOT not in value)
    return frozenset(value for value in found if len(value) >= SHORTEST_SECRET)
