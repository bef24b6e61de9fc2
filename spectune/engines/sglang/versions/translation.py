"""From SGLang 0.5.23's names to what the installed version accepts, or to the sentence that says it cannot.

Existence of a name is always the installed parser's word; version numbers decide only what the parser cannot tell.
File and line of each fact stand in `versions.tsv` or beside the function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spectune.engines.parts import Illegal
from spectune.engines.sglang.options import SHIPPED_VERSION, Options
from spectune.engines.sglang.rules.names import ALGORITHM
from spectune.engines.sglang.versions.history import ALGORITHMS_SINCE, lacking, older_than
from spectune.engines.sglang.versions.overlap import overlap_variable
from spectune.engines.sglang.versions.spellings import (
    ATTENTION_OPTIONS,
    OLDER_BACKENDS,
    canonical_arguments,
    renamed,
)
from spectune.space.names import ENV_PREFIX, is_environment


@dataclass(frozen=True)
class TranslatedArguments:
    """Complete arguments as one version accepts them.

    Attributes:
        arguments: Its names without dashes → values.
        env: Variables to set.
        notes: One sentence for everything that is not quite the same there.
        problems: One sentence for everything that the version cannot do; then the launch must not happen.
    """

    arguments: dict[str, Any]
    env: dict[str, str]
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass
class _Page:
    """What has been written so far."""

    options: Options
    given: Mapping[str, Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return name in self.options.by_name

    def before(self, version: str) -> bool:
        return older_than(self.options.version, version)

    def refuse(self, why: str) -> None:
        self.problems.append(why)


def translate(
    arguments: Mapping[str, Any],
    env: Mapping[str, str],
    options: Options,
    unset: tuple[str, ...] = (),
) -> TranslatedArguments:
    """Return arguments and variables as the version of `options` takes them; doing it twice changes nothing more.

    Args:
        arguments: Complete arguments of a launch, under any version's names; canonical names are understood best.
        env: Variables the launch sets.
        options: The installed version's own options.
        unset: Variables the launch must not have.
    """
    canonical = canonical_arguments(arguments)
    page = _Page(options, canonical.arguments, notes=list(canonical.notes), problems=list(canonical.problems))
    for name, value in canonical.arguments.items():
        _write(page, name, value)
    variable = overlap_variable(canonical.arguments, {**dict.fromkeys(unset), **env}, options.version)
    page.notes += variable.notes
    page.problems += variable.problems
    return TranslatedArguments(page.arguments, {**env, **variable.env}, tuple(page.notes), tuple(page.problems))


def unavailable(values: Mapping[str, Any], env: Mapping[str, str], options: Options) -> Illegal | None:
    """Say what the version of `options` cannot do of a launch; None when it can do all of it.

    Args:
        values: Arguments under SGLang 0.5.23's names, and `env.NAME` variables.
        env: Variables every launch sets.
        options: The installed version's own options.
    """
    if options.version == SHIPPED_VERSION:
        return None  # every name is its own, and this is asked for each combination of a space
    named = {name.removeprefix(ENV_PREFIX): str(value) for name, value in values.items() if is_environment(name)}
    arguments = {name: value for name, value in values.items() if not is_environment(name)}
    translated = translate(arguments, {**env, **named}, options)
    return Illegal("version", translated.problems[0]) if translated.problems else None


def _write(page: _Page, name: str, value: Any) -> None:
    if page.has(name):
        page.arguments[name] = _accepted(page, name, value)
        return
    if value is None or value is False:
        return  # left out of a command line anyway
    older = _OLDER.get(name)
    if older is not None and page.has(older):
        page.arguments[older] = _accepted(page, older, value)
    elif name in _REWRITES:
        _REWRITES[name](page, value)
    else:
        page.refuse(lacking(name, page.options.version))


def _accepted(page: _Page, name: str, value: Any) -> Any:
    """Return the value under the name that the installed parser takes."""
    if name == ALGORITHM:
        since = ALGORITHMS_SINCE.get(str(value).upper())
        if since is not None and page.before(since):
            page.refuse(f"SGLang {page.options.version} has no algorithm {value}, which came with {since}")
    if isinstance(value, list | tuple) and page.options.by_name[name].kind == "json_list_type":
        return json.dumps(list(value))  # 0.5.6 server_args.py:3539
    if name not in ATTENTION_OPTIONS or not isinstance(value, str):
        return value
    choices = page.options.by_name["attention-backend"].choices or ()
    older = OLDER_BACKENDS.get(value)
    return older if value not in choices and older in choices else value


def _decode_graphs_off(page: _Page, _value: Any) -> None:
    # Until 0.5.13 the switch spares prefill graphs, which had their own (0.5.13 model_runner.py:2877, 2921).
    page.arguments["disable-cuda-graph"] = True


def _prefill_graphs_off(page: _Page, _value: Any) -> None:
    # Until 0.5.9 prefill graphs were off unless enable-piecewise-cuda-graph was given (0.5.9 model_runner.py:2170).
    if page.given.get("enable-piecewise-cuda-graph"):
        page.refuse("disable-prefill-cuda-graph and enable-piecewise-cuda-graph contradict each other")
    else:
        page.notes.append(f"disable-prefill-cuda-graph is left out: SGLang {page.options.version} has them off")


def _decode_graph_backend(page: _Page, value: Any) -> None:
    if value == "disabled":
        _write(page, "disable-decode-cuda-graph", True)
    elif value != "full":
        page.refuse(f"SGLang {page.options.version} captures decode graphs in full only, not {value}")


def _prefill_graph_backend(page: _Page, value: Any) -> None:
    switches = {
        "breakable": ("enable-breakable-cuda-graph",),
        "tc_piecewise": ("enforce-piecewise-cuda-graph", "enable-piecewise-cuda-graph"),
    }
    if value == "disabled":
        _write(page, "disable-prefill-cuda-graph", True)
        return
    switch = next((switch for switch in switches.get(str(value), ()) if page.has(switch)), None)
    if switch is None:
        page.refuse(f"SGLang {page.options.version} has no prefill graphs of the kind {value}")
    else:
        page.arguments[switch] = True


def _attention_dp(page: _Page, value: Any) -> None:
    # arg_groups/parallel_hook.py:44-60: the old spelling counts attention groups with dp-size.
    if int(value) == 1:
        return
    if int(page.given.get("dp-size", 1)) > 1:
        page.refuse(f"attn-dp-size {value} needs dp-size 1 beside it, but it is {page.given['dp-size']}")
    else:
        page.arguments |= {"dp-size": value, "enable-dp-attention": True}


def _allreduce_fusion(page: _Page, value: Any) -> None:
    if value == "auto":
        page.arguments["enable-flashinfer-allreduce-fusion"] = True
    else:
        page.refuse(f"SGLang {page.options.version} chooses the backend of fused all-reduce itself, not {value}")


def _autotune_off(page: _Page, _value: Any) -> None:
    page.notes.append(f"disable-flashinfer-autotune is left out: SGLang {page.options.version} tunes only when asked")


def _draft_window(page: _Page, value: Any) -> None:
    dflash = str(page.given.get(ALGORITHM)).upper() == "DFLASH"
    older = "speculative-dflash-draft-window-size"
    if dflash and page.has(older):
        page.arguments[older] = value
    else:
        page.refuse(lacking("speculative-draft-window-size", page.options.version))


_OLDER = {name: older for older, name in renamed().items()}
_REWRITES: Mapping[str, Callable[[_Page, Any], None]] = {
    "disable-decode-cuda-graph": _decode_graphs_off,
    "disable-prefill-cuda-graph": _prefill_graphs_off,
    "cuda-graph-backend-decode": _decode_graph_backend,
    "cuda-graph-backend-prefill": _prefill_graph_backend,
    "attn-dp-size": _attention_dp,
    "flashinfer-allreduce-fusion-backend": _allreduce_fusion,
    "disable-flashinfer-autotune": _autotune_off,
    "speculative-draft-window-size": _draft_window,
}
