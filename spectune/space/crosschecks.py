"""What the sections of a file mean for each other.

Works on the plain data, so that one bad section hides no other's problems.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spectune.errors import Problem
from spectune.space.document import Document, KeyPath
from spectune.space.engine_section import exclusive_key_problems, fixed_argument_problem
from spectune.space.environment import environment_name_problem, environment_value_problem
from spectune.space.names import (
    ADDRESS,
    ALGORITHM,
    ENV_PREFIX,
    NO_SPECULATION,
    argument_name_problem,
    hint,
    is_environment,
    is_speculative,
)
from spectune.space.workload import RANDOM_PROMPTS, Workload
from spectune.withheld import secret_name, secret_value


def crosscheck(
    document: Document,
    data: Mapping[str, Any],
    workload: Workload | None,
    left_out: Collection[str] = (),
) -> Iterator[Problem]:
    """Yield what is wrong between sections.

    Args:
        document: For lines.
        data: The file's plain data.
        workload: The workload section without its wrong entries.
        left_out: The names of those.
    """
    plain, search = _mapping(data, "engine"), _mapping(data, "search")
    args, env = _mapping(plain, "args"), _mapping(plain, "env")
    for key, message in exclusive_key_problems(plain):
        yield document.problem(("engine", key), message)
    yield from _fixed(document, args, env)
    yield from _searched(document, search, args, env)
    if "gpu_hours" in _mapping(data, "budget") and plain.get("gpus", 0 if "runtime" in plain else 1) == 0:
        yield document.problem(("budget", "gpu_hours"), "gpu_hours limits nothing, since engine.gpus is 0; give hours")
    for path, section in ((("engine", "args"), args), (("engine", "env"), env), (("search",), search)):
        yield from _credentials(document, path, section)
    if workload is not None:
        if "levels" not in left_out:
            yield from _levels(document, data, workload.level_names)
            yield from _open_loops(document, data, workload)
        yield from _random_prompts(document, search, workload)


def _fixed(document: Document, args: Mapping[str, Any], env: Mapping[str, Any]) -> Iterator[Problem]:
    for name in args:
        message = fixed_argument_problem(name)
        if message is not None:
            yield document.problem(("engine", "args", name), message)
    for name, value in env.items():
        message = environment_name_problem(name) or (
            environment_value_problem(name, value) if isinstance(value, str) else None
        )
        if message is not None:
            yield document.problem(("engine", "env", name), message)


def _searched(
    document: Document, search: Mapping[str, Any], args: Mapping[str, Any], env: Mapping[str, Any]
) -> Iterator[Problem]:
    for name in search:
        path: KeyPath = ("search", name)
        bare = name.removeprefix(ENV_PREFIX)
        message = environment_name_problem(bare) if is_environment(name) else argument_name_problem(name)
        section, fixed = ("env", env) if is_environment(name) else ("args", args)
        if message is not None:
            yield document.problem(path, message)
        elif name in ADDRESS:
            yield document.problem(path, f"'{name}' says where every launch listens; write it under engine.args")
        elif bare in fixed:
            other = document.line_of(("engine", section, bare))
            yield document.problem(
                path, f"'{name}' is searched here and fixed in engine.{section} on line {other}; keep one of them"
            )
        elif is_speculative(name) and ALGORITHM not in search:
            yield document.problem(path, f"'{name}' has no effect without {ALGORITHM} under search")
        elif is_speculative(name) and name != ALGORITHM and not _speculates(search):
            line = document.line_of(("search", ALGORITHM))
            yield document.problem(path, f"'{name}' has no effect: {ALGORITHM} on line {line} names none but 'none'")


def _speculates(search: Mapping[str, Any]) -> bool:
    """Whether the algorithms of a space, as they are written, name one."""
    named = search.get(ALGORITHM, NO_SPECULATION)
    return any(str(name).lower() != NO_SPECULATION for name in (named if isinstance(named, list) else [named]))


def _credentials(document: Document, path: KeyPath, section: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in section.items():
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if any(map(secret_value, texts)) or (path == ("engine", "args") and secret_name(name)):
            yield document.problem(
                (*path, name),
                f"'{name}' holds a credential, and a space is copied into study folders and launch files; "
                "let the engine take it from the shell that starts spectune",
            )


def _levels(document: Document, data: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Problem]:
    for section in ("objectives", "constraints"):
        items = data.get(section)
        seen: dict[str, int] = {}
        for index, item in enumerate(items if isinstance(items, list) else []):
            level = item.get("level") if isinstance(item, dict) else None
            path: KeyPath = (section, index)
            if isinstance(level, str) and level not in names:
                yield document.problem(
                    (*path, "level"), f"'{level}' is not a level of the workload{hint(level, names)}"
                )
            key = repr(sorted(item.items())) if isinstance(item, dict) else repr(item)
            if key in seen:
                yield document.problem(path, f"the same stands on line {document.line_of((section, seen[key]))}")
            seen.setdefault(key, index)


def _open_loops(document: Document, data: Mapping[str, Any], workload: Workload) -> Iterator[Problem]:
    open_loops = {level.name for level in workload.levels if level.open_loop}
    items = data.get("objectives")
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, dict) and item.get("maximize") == "output_throughput" and item.get("level") in open_loops:
            yield document.problem(
                ("objectives", index),
                f"output_throughput at {item['level']} is as large as what is asked for, because requests arrive by "
                "the clock there; choose decode_speed or ttft_p95_ms, or a level with a concurrency",
            )


def _random_prompts(document: Document, search: Mapping[str, Any], workload: Workload) -> Iterator[Problem]:
    if not _speculates(search):
        return
    for index, source in enumerate(workload.prompts):
        if source.prompts == RANDOM_PROMPTS and not source.allow_random:
            alone = isinstance(_mapping(document.data, "workload").get("prompts"), str)
            yield document.problem(
                ("workload", "prompts") if alone else ("workload", "prompts", index),
                f"{RANDOM_PROMPTS} under speculation: no drafter predicts random tokens (vllm#53906: accept rate 12 % "
                "against 52 % on text), so the verdict would be about them; use builtin:mixed or your own prompts, or "
                f"write [{{prompts: {RANDOM_PROMPTS}, allow_random: true}}]",
            )


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}
