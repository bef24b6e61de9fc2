"""The config.json of a model that a launch names: in a folder, or in the hub cache. Nothing else is read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.engines.sglang.resolution import Finding, Model
from spectune.printable import printable

CONFIG = "config.json"
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")  # the oldest have no owner: gpt2
_REMOTE = re.compile(r"[a-z0-9+]+://")
_LARGEST = 64 * 2**20  # bytes
_COUNTS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
CONFIG_RULE = "model-config"
ASSUMED = "rules that depend on the architecture are left out"


class _Unusable(Exception):
    """What is wrong with a config.json."""


@dataclass(frozen=True)
class ModelReader:
    """Finds the models a launch names.

    Attributes:
        cwd: The folder relative paths start from.
        env: The environment the launch would have; `HF_HOME` and `HF_HUB_CACHE` move the hub cache.
        elsewhere: Whether paths belong to another file system, as in a container.
    """

    cwd: Path
    env: Mapping[str, str]
    elsewhere: bool = False

    def read(self, name: str, option: str, revision: str | None = None) -> tuple[Model, tuple[Finding, ...]]:
        """Return the model, unknown where nothing can be read, and what is to be said about its config.

        Args:
            name: Folder or hub name, as given.
            option: The launch option it was given to, for the messages.
            revision: Branch, tag or commit on the hub.
        """
        shown = f"--{option} {printable(name, 200)}"
        try:
            file = self._file(name, revision)
            if file is None:
                return Model.unknown(), (self._not_here(name, shown),)
            config = _load(file)
        except _Unusable as wrong:
            advice = "mend or download it again; SGLang reads it before anything else"
            return Model.unknown(), (Finding(CONFIG_RULE, "fatal", f"{shown}: {wrong}", advice),)
        except (OSError, ValueError, RuntimeError) as error:  # a name no path can have, a home that is not known
            message = f"{shown}: cannot be looked at: {printable(str(error), 200)}"
            return Model.unknown(), (Finding("model-unknown", "warning", message, f"give a folder; {ASSUMED}"),)
        return Model.from_config(config), tuple(_doubts(config, file))

    def folder(self, name: str, revision: str | None = None) -> Path | None:
        """Return where a model lies on this machine; None when it is not here, or is none."""
        try:
            file = self._file(name, revision)
        except (_Unusable, OSError, ValueError, RuntimeError):
            return None
        return None if file is None else file.parent

    def _file(self, name: str, revision: str | None) -> Path | None:
        path = self.cwd / Path(name).expanduser()
        if path.is_dir() and not self.elsewhere:
            if (path / CONFIG).exists():
                return path / CONFIG
            if (path / "params.json").exists():  # Mistral's own format, which SGLang converts
                return None
            raise _Unusable(f"{printable(str(path / CONFIG))} does not exist, so the folder is no model")
        return self._cached(name, revision) if _HUB_NAME.fullmatch(name) else None

    def _cached(self, name: str, revision: str | None) -> Path | None:
        home = Path(self.env.get("HF_HOME") or "~/.cache/huggingface").expanduser()
        cache = Path(self.env.get("HF_HUB_CACHE") or home / "hub").expanduser()
        model = self.cwd / cache / f"models--{name.replace('/', '--')}"
        reference = model / "refs" / (revision or "main")
        commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
        if commit and (model / "snapshots" / commit / CONFIG).is_file():
            return model / "snapshots" / commit / CONFIG
        if revision is not None:
            return None
        return max(model.glob(f"snapshots/*/{CONFIG}"), key=lambda file: file.stat().st_mtime, default=None)

    def _not_here(self, name: str, shown: str) -> Finding:
        if _REMOTE.match(name) or _HUB_NAME.fullmatch(name):
            where = "is neither a folder here nor in the hub's cache"
        elif self.elsewhere:
            where = "is a path of the container"
        else:
            message = f"{shown}: there is no such folder here, and no launch starts on a machine that has none"
            return Finding("model-unknown", "warning", message, f"give the right folder; without it, {ASSUMED}")
        advice = f"give a folder with the model's config.json; without it, {ASSUMED}"
        return Finding("model-unknown", "warning", f"{shown} {where}: its config.json was not seen", advice)


def _load(file: Path) -> dict[str, Any]:
    shown = printable(str(file))
    if not file.is_file():
        raise _Unusable(f"{shown} is no file")
    try:
        if file.stat().st_size > _LARGEST:
            raise _Unusable(f"{shown} is larger than {_LARGEST // 2**20} MiB, which no config is")
        config = json.loads(file.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise _Unusable(f"{shown}:{error.lineno}: {error.msg} (column {error.colno})") from None
    except UnicodeDecodeError:
        raise _Unusable(f"{shown} is not UTF-8 text") from None
    except RecursionError:
        raise _Unusable(f"{shown} is nested too deeply") from None
    except OSError as error:
        raise _Unusable(f"{shown} cannot be read: {error.strerror}") from None
    if not isinstance(config, dict):
        raise _Unusable(f"{shown} must hold an object, but got {type(config).__name__}")
    return config


def _doubts(config: Mapping[str, Any], file: Path) -> list[Finding]:
    """Say what in a config cannot be true."""
    wrong: list[str] = []
    names = config.get("architectures")
    if not (isinstance(names, list) and names and all(isinstance(name, str) and name for name in names)):
        wrong.append(f"architectures must be a list of names, but got {printable(str(names), 80)}")
    inner = config.get("text_config")
    text = inner if isinstance(inner, Mapping) else config
    for key in _COUNTS:
        value = text.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            wrong.append(f"{key} must be a positive integer, but got {printable(str(value), 80)}")
    heads, shared = text.get("num_attention_heads"), text.get("num_key_value_heads")
    if isinstance(heads, int) and isinstance(shared, int) and 0 < heads < shared:
        wrong.append(f"num_key_value_heads {shared} exceeds num_attention_heads {heads}")
    advice = "compare it with the published config.json; what SGLang resolves depends on it"
    return [Finding(CONFIG_RULE, "warning", f"{printable(str(file))}: {one}", advice) for one in wrong]
