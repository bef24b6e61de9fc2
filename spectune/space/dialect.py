"""The YAML spectune reads and writes: YAML 1.1 without its traps (sexagesimal and octal numbers, dates as objects)."""

from __future__ import annotations

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_FLOAT = (
    r"[-+]?(?:(?:[0-9][0-9_]*)?\.[0-9]+|[0-9][0-9_]*\.)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_RULES: tuple[tuple[str, str, str], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)", "-+0123456789"),
    (
        "float",
        _FLOAT,
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
)


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    table: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for tag, pattern, first in _RULES:
        for character in first:
            key = "" if character == "\0" else character
            table.setdefault(key, []).append((_TAG + tag, re.compile(rf"(?:{pattern})\Z")))
    return table


class Loader(yaml.SafeLoader):
    """Read the dialect."""

    yaml_implicit_resolvers: Any = _resolvers()


class Dumper(yaml.SafeDumper):
    """Write the dialect: what it leaves unquoted, `Loader` reads back as the same type."""

    yaml_implicit_resolvers: Any = _resolvers()

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # the interface is yaml's
        """Write repeated values in full: the file is for people."""
        return True


def scalar_value(node: yaml.ScalarNode) -> str | int | float | bool | None:
    """Return the plain value of a scalar.

    Raises:
        ValueError: The tag is not one of the dialect, or its text does not fit it.
    """
    constructor = yaml.constructor.SafeConstructor()
    kind = node.tag.removeprefix(_TAG)
    try:
        match kind:
            case "str" | "merge":
                return str(node.value)
            case "null":
                return None
            case "bool":
                return bool(constructor.construct_yaml_bool(node))
            case "int":
                return int(constructor.construct_yaml_int(node))
            case "float":
                return float(constructor.construct_yaml_float(node))
            case _:
                raise ValueError(f"the YAML tag {node.tag} is not supported here")
    except KeyError as error:
        raise ValueError(f"'{node.value}' is not a {kind}") from error


def dump(data: object) -> str:
    """Return `data` as YAML in block style with short lists on one line, in the order given."""
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True)
