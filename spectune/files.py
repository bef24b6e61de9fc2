"""Files that are never seen half written."""

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
        target.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o755 if executable else 0o644)
        partial.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise SpectuneError(
            f"cannot write {path}: {error.strerror or error}; make room or choose another folder"
        ) from None


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
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise SpectuneError(f"cannot read {path}: {error.strerror or error}") from None
    except orjson.JSONDecodeError as error:
        raise SpectuneError(f"{path}:{error.lineno}: not valid JSON ({error.msg}); restore it or remove it") from None
