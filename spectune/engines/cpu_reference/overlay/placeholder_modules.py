"""Packages that exist only to be imported: every attribute is a class or a submodule, made on first use."""

from __future__ import annotations

import enum
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar

# What a placeholder does when it is called; gets the dotted name and the arguments.
OnCall = Callable[..., Any]


class PlaceholderModule(types.ModuleType):
    """A module whose attributes appear when asked for: CamelCase names are classes, all others placeholders again."""

    __path__: ClassVar[list[str]] = []  # marks a package, so that `import name.anything` is looked up

    def __init__(self, name: str, on_call: OnCall) -> None:
        super().__init__(name)
        self._on_call = on_call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system and pickle probe for these and want an honest no
            raise AttributeError(name)
        value = self._make(name)
        setattr(self, name, value)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Does what the package's placeholder does on calls."""
        return self._on_call(self.__name__, *args, **kwargs)

    def _make(self, name: str) -> Any:
        if name == "InterpolationMode":  # transformers reads this enum's members while it is imported
            return enum.Enum(name, "NEAREST NEAREST_EXACT BILINEAR BICUBIC BOX HAMMING LANCZOS")
        if name[0].isupper() and not name.isupper():
            return type(name, (), {"__module__": self.__name__, "__init__": lambda self, *args, **kwargs: None})
        return PlaceholderModule(f"{self.__name__}.{name}", self._on_call)


class _SubmoduleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers `import package.anything` with a placeholder."""

    def __init__(self, package: str, on_call: OnCall) -> None:
        self._prefix = package + "."
        self._on_call = on_call

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith(self._prefix):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> PlaceholderModule:
        return PlaceholderModule(spec.name, self._on_call)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run: the module is whole when it is made."""


def install(package: str, on_call: OnCall) -> Callable[[str], Any]:
    """Makes every submodule of `package` importable.

    Args:
        package: The top-level name, already being imported from this overlay.
        on_call: What calling any of its functions does.

    Returns:
        The `__getattr__` of the top-level module.
    """
    sys.meta_path.insert(0, _SubmoduleFinder(package, on_call))
    return PlaceholderModule(package, on_call).__getattr__
