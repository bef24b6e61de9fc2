"""What a database driver raises, in words people understand."""

from __future__ import annotations

_PASSING = {"OperationalError", "InterfaceError", "TimeoutError", "DisconnectionError"}
"""Names of SQLAlchemy's errors that may be over when the database is back."""
_LASTING = ("readonly", "read-only")


def reason(error: BaseException) -> str:
    """Return the first line of what the driver itself said, whatever it was wrapped in."""
    cause = getattr(error.__cause__ or error, "orig", None) or error.__cause__ or error
    return (str(cause).splitlines() or [type(cause).__name__])[0]


def is_passing(error: BaseException) -> bool:
    """Whether the database may only be out of reach, so that the same thing is worth trying again."""
    chain = [error, *([] if error.__cause__ is None else [error.__cause__])]
    if any(words in reason(error) for words in _LASTING):
        return False
    return any(type(link).__name__ in _PASSING or isinstance(link, OSError) for link in chain)
