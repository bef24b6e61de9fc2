"""What there is to say about the words of a launch, before the engine's rules are asked."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any

from spectune.engines.sglang.launch_line.argument_parser import ArgumentParser, Trouble, Use
from spectune.engines.sglang.launch_line.older_names import deprecation, last_version
from spectune.engines.sglang.launch_line.shell_words import Word
from spectune.engines.sglang.resolution import Finding
from spectune.engines.sglang.versions.successors import Successor
from spectune.printable import printable
from spectune.withheld import HIDDEN, secret_name

_QUOTES = "“”„‘’\u00a0"  # what they make of quotes and blanks
_DASHES = "‐‑‒–—―−"  # what word processors make of --
_LOG_LEVELS = {"CRITICAL", "FATAL", "ERROR", "WARNING", "WARN", "INFO", "DEBUG", "NOTSET"}
_LONGEST = 1000  # characters of a message; a pasted file must not fill the screen


def refusal(trouble: Trouble, written: str, parser: ArgumentParser) -> Finding:
    """Return argparse's message with the way out."""
    message = printable(trouble.message, _LONGEST)
    if trouble.kind == "ambiguous":
        names = ", ".join(parser.matches(written))
        return Finding("ambiguous-option", "fatal", message, f"write it in full: {names}")
    if trouble.kind == "value":
        return Finding("bad-value", "fatal", message, _value_advice(trouble, parser))
    return Finding("unknown-option", "fatal", message, _unrecognized_advice(trouble.words[0], parser))


def renamed(written: str, trouble: Trouble, successor: Successor, words: Sequence[str]) -> Finding:
    """Return the finding for an option of an older SGLang."""
    message = f"{printable(trouble.message, _LONGEST)} ({written}: {last_version(written.removeprefix('--'))})"
    advice = successor.advice or f"write {printable(' '.join(words), _LONGEST)}"
    return Finding("renamed-option", "fatal", message, advice)


def help_only(written: str) -> Finding:
    """Return the finding for `-h`."""
    return Finding("help", "fatal", f"{written} prints SGLang's help; nothing is launched", f"leave {written} out")


def left_out(option: str, value: str, why: str) -> Finding:
    """Return the finding for an option whose value is not known here."""
    return Finding(
        "unknown-value", "warning", f"{option} is left out of this: {printable(value, 60)}: {why}",
        "write the value itself, or assign the variable in the same text",
    )  # fmt: skip


def stray_unknown(word: Word) -> Finding:
    """Return the finding for a word that may hold any number of options."""
    return Finding(
        "unknown-words", "warning", f"{printable(word.text, 60)} may hold further arguments; they are not known here",
        "write them out, or assign the variable in the same text",
    )  # fmt: skip


def after_reading(uses: Sequence[tuple[Use, bool]]) -> tuple[dict[str, Any], list[Finding]]:
    """Return the arguments, the last use of each winning, and what is to be said about them.

    Args:
        uses: Each use, and whether it came from the `--config` file.
    """
    arguments: dict[str, Any] = {}
    findings: list[Finding] = []
    typed: dict[str, Any] = {}
    for use, from_config in uses:
        if use.name in typed:
            findings.append(_duplicate(use, typed[use.name]))
        if not from_config:
            typed[use.name] = use.value
        deprecated = deprecation(use.name, use.spelling)
        if deprecated:
            findings.append(deprecated)
        findings += _store(use, arguments)
    return arguments, findings


def _store(use: Use, arguments: dict[str, Any]) -> list[Finding]:
    value = use.value
    if use.name == "monokernel-backend":
        arguments["enable-amd-monokernel"] = True
        return []
    if use.name == "config":
        advice = "write `--config FILE` as two words"
        return [Finding("config-ignored", "warning", "SGLang reads no file given as --config=FILE", advice)]
    if use.name == "lora-paths":
        try:
            value = [_lora(path.strip()) for path in value]
        except (ValueError, RecursionError) as error:
            return [Finding("bad-value", "fatal", f"--lora-paths: {printable(str(error))}", "give NAME=PATH or JSON")]
    arguments[use.name] = value
    if use.name == "log-level" and value.upper() not in _LOG_LEVELS:
        message = f"module 'logging' has no attribute {printable(value.upper(), 60)!r}"
        return [Finding("bad-value", "fatal", message, "--log-level debug, info, warning or error")]
    return []


def _lora(path: str) -> Any:
    if not (path.startswith("{") and path.endswith("}")):
        return path
    adapter = json.loads(path)
    if not {"lora_path", "lora_name"} <= adapter.keys():
        raise ValueError(f"{path!r} looks like a JSON str, but it does not contain 'lora_name' and 'lora_path' keys.")
    return adapter


def _duplicate(use: Use, earlier: Any) -> Finding:
    if use.value == earlier:
        message = f"--{use.name} is given twice with the same value"
        return Finding("duplicate-option", "info", message, "leave one out")
    both = [HIDDEN if secret_name(use.name) else printable(str(value), 80) for value in (earlier, use.value)]
    values = ", then ".join(both)
    return Finding("duplicate-option", "warning", f"--{use.name} is given as {values}: the last wins", "leave one out")


def _value_advice(trouble: Trouble, parser: ArgumentParser) -> str:
    matches = parser.matches(trouble.words[0])
    option = parser.options.by_name.get(matches[0][2:]) if len(matches) == 1 else None
    if option is None:
        return "see SGLang's --help"
    given = trouble.words[1:] or (trouble.words[0].partition("=")[2],)
    if option.nargs == 0:
        return f"{matches[0]} is a switch: write it without a value"
    if "expected" in trouble.message:
        return f"give {matches[0]} a value"
    if option.choices is not None:
        near = difflib.get_close_matches(given[0], option.choices, 1)
        return f"did you mean {near[0]}?" if near else "give one of them"
    kind = {"int": "an integer", "float": "a number", "human_readable_int": "an integer such as 16384, 16k or 16Ki"}
    return f"give {matches[0]} {kind.get(option.kind, 'JSON in single quotes')}"


def _unrecognized_advice(word: str, parser: ArgumentParser) -> str:
    if word[:1] and word[0] in _DASHES:
        return "it begins with a dash that a word processor made: type two hyphens, --"
    if any(letter in word for letter in _QUOTES):
        return "it holds quotes or blanks that a word processor made: type plain ones"
    if not word.startswith("-"):
        return "it belongs to no option: quote values with blanks, or name the option"
    name = word.lstrip("-").split("=")[0].split(" ")[0].replace("_", "-")
    if " " in word and name in parser.options.by_name:
        return "name and value are quoted as one word: leave the quotes away"
    known = parser.options.by_name
    near = [name] if name in known else difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean --{near[0]}?"
    return f"SGLang {parser.options.version} has no such option: leave it out"
