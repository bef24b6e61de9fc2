"""What a database driver raises, in words people understand."""

from __future__ import annotations

from pathlib import Path

_PASSING = {"OperationalError", "InterfaceError", "TimeoutError", "DisconnectionError"}
"""Names of SQLAlchemy's errors that may be over when the database is back."""
_LASTING = ("readonly", "read-only")
_ADVICE = (
    ((*_LASTING, "permission denied"), "whoever joins a study has to be able to write there"),
    (
        ("no such column", "referenced in foreign key constraint", "no unique constraint matching"),
        "its tables are another program's: name an empty database",
    ),
)
"""What of a driver's words says what to do."""


def reason(error: BaseException) -> str:
    """Return the first line of what the driver itself said, whatever it was wrapped in."""
    cause = getattr(error.__cause__ or error, "orig", None) or error.__cause__ or error
    return (str(cause).splitlines() or [type(cause).__name__])[0]


def blocked(file: Path | None) -> str:
    """Return what stands in the way of an SQLite database, and the way out; empty where nothing is seen."""
    if file is None:
        return ""
    if file.is_dir():
        return f"{file} is a folder where a file has to be: move it away, or name another file"
    if not file.parent.is_dir():
        return f"there is no folder {file.parent}: make it, or name another file"
    return ""


def is_passing(error: BaseException) -> bool:
    """Whether the database may only be out of reach, so that the same thing is worth trying again."""
    chain = [error, *([] if error.__cause__ is None else [error.__cause__])]
    if any(words in reason(error) for words in _LASTING):
        return False
    return any(type(link).__name__ in _PASSING or isinstance(link, OSError) for link in chain)


def advice(error: BaseException) -> str:
    """Return what to do about an error; empty where its own words have to do."""
    said = reason(error)
    return next((told for words, told in _ADVICE if any(word in said for word in words)), "")
