"""Where an engine under measurement listens, and what keeps everybody else from using it meanwhile."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spectune.errors import SpectuneError

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 30000  # SGLang's own; where no port was taken, commands show it
KEY_BYTES = 24


@dataclass(frozen=True)
class Address:
    """The address of one launch.

    Attributes:
        host: What the engine is told to listen on.
        api_key: What every request must carry; None on the loopback interface, which nobody else reaches. It is made
            for this launch and worth nothing after it. No file, no line and no export of spectune's holds it.
    """

    host: str = LOOPBACK
    api_key: str | None = field(default=None, repr=False)

    @classmethod
    def for_launch(cls, args: Mapping[str, Any]) -> Address:
        """Return the address a space asks for, with a new key where others on the network could reach it.

        Args:
            args: The space's `engine.args`.
        """
        host = str(args.get("host", LOOPBACK))
        # Hexadecimal: an argument that began with a hyphen would be taken for the next option.
        return cls(host, None if ipaddress.IPv4Address(host).is_loopback else secrets.token_hex(KEY_BYTES))

    @property
    def reached_at(self) -> str:
        """Where this machine reaches it."""
        return LOOPBACK if ipaddress.IPv4Address(self.host).is_unspecified else self.host


def host_complaint(value: Any) -> str | None:
    """Say what is wrong with `value` as the address to listen on; None when it fits."""
    try:
        ipaddress.IPv4Address(value if isinstance(value, str) else "")
    except ValueError:
        return f"host must be an IPv4 address of this machine, as 0.0.0.0 for all of them, but got {value!r}"
    return None


def authorization(api_key: str | None) -> dict[str, str]:
    """Return the headers that carry an API key; none without one.

    Raises:
        SpectuneError: For a key that no header can carry; it is not repeated.
    """
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise SpectuneError("the API key holds characters that no HTTP header can carry")
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}
