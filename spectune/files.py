"""Files that are never seen half written, and last once they are written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from spectune.errors import SpectuneError


def write_whole(path: Path, content: str | bytes, *, executable: bool = False) -> None:
    """Write a file so that readers see the old content or the new one, also after a crash; a link stays a link.

    When this returns, the new content outlives a loss of power.

    Raises:
        SpectuneError: When the disk is full, read-only or the folder is not writable; the old content is kept. When a
            folder, device or pipe has that name: a file that took its place would break it for everybody.
    """
    if not path.name:
        raise SpectuneError(f"cannot write {path}: it does not name a file")
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.exists() and not target.is_file():
            raise SpectuneError(f"cannot write {path}: it is a folder, a device or a pipe; choose another name")
        make_folder(path.parent)
        make_folder(target.parent)  # of a link
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o755 if executable else 0o644)
        partial.replace(target)
        _keep_names(target.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise SpectuneError(
            f"cannot write {path}: {error.strerror or error}; make room or choose another folder"
        ) from None


def make_folder(folder: Path) -> None:
    """Make a folder, and those it lies in; one that is there is left as it is.

    Raises:
        SpectuneError: Something else has its place or that of a folder it lies in, or it cannot be made.
    """
    around = [folder, *folder.parents]
    missing = [path for path in around if not os.path.isdir(path)]  # noqa: PTH112 (False where nobody may look)
    taken = next((path for path in missing if os.path.lexists(path)), None)
    if taken is not None:  # also a link to what is not there, as to a disk that is not mounted: nothing goes beside it
        what = "a link that leads to no folder" if taken.is_symlink() else "no folder"
        raise SpectuneError(f"cannot make the folder {folder}: {taken} is {what}; move it away or choose another")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpectuneError(
            f"cannot make the folder {folder}: {error.strerror or error}; make room or choose another folder"
        ) from None
    for path in missing:
        _keep_names(path.parent)


def _keep_names(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power, as `fsync` of a file does for what it holds."""
    with contextlib.suppress(OSError):  # some network file systems know no such thing
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, whole."""
    write_whole(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return indented JSON that ends in a newline; bytes of a file's name that are no UTF-8 are written as escapes."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(value, option=options)
    except orjson.JSONEncodeError:
        return orjson.dumps(_encodable(value), option=options)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    return [_encodable(inner) for inner in value] if isinstance(value, list | tuple) else value


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        SpectuneError: When it is missing, unreadable or not JSON.
    """
    try:
        require_file(path)
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise SpectuneError(f"cannot read {path}: {error.strerror or error}") from None
    except orjson.JSONDecodeError as error:
        raise SpectuneError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); restore it or remove it") from None


def is_file(path: Path) -> bool:
    """Whether there is a file.

    Raises:
        SpectuneError: Nobody may look.
    """
    try:
        return path.is_file()
    except OSError as error:
        raise SpectuneError(
            f"cannot look for {path}: {error.strerror or error}; its folders have to be ones that you may enter"
        ) from None


def require_file(path: Path) -> None:
    """Make sure that there is a file, and no pipe or device in its place: reading that might never end.

    Raises:
        SpectuneError: There is none, or nobody may look.
    """
    if not is_file(path):
        what = "it is a folder, a device or a pipe" if path.exists() else "there is no such file"
        raise SpectuneError(f"cannot read {path}: {what}; restore it")
