"""The words of a launch, option by option, as the parser of its SGLang takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spectune.engines.sglang.launch_line.argument_parser import ArgumentParser, Trouble, Use
from spectune.engines.sglang.launch_line.older_names import had, not_yet, still_named
from spectune.engines.sglang.launch_line.parser_findings import help_only, left_out, refusal, renamed, stray_unknown
from spectune.engines.sglang.launch_line.shell_words import Word
from spectune.engines.sglang.options import Option
from spectune.engines.sglang.resolution import Finding
from spectune.engines.sglang.versions.successors import SUCCESSORS


@dataclass
class Reading:
    """What has been read so far.

    Attributes:
        parser: Of the options.
        version: The SGLang the launch is judged by.
        uses: Each use of an option, and whether it came from the `--config` file.
        troubles: What is refused, and when the engine would come to it.
        notes: What else there is to say.
        unknown: Options whose values are not known here.
    """

    parser: ArgumentParser
    version: str
    uses: list[tuple[Use, bool]] = field(default_factory=list)
    troubles: list[tuple[int, Finding]] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)


def read_options(words: Sequence[Word], reading: Reading, *, from_config: bool) -> None:
    """Add what the words say to a reading.

    Args:
        words: Options with their values.
        reading: What was read before them.
        from_config: Whether they come from the `--config` file.
    """
    for places in reading.parser.groups([word.text for word in words]):
        group = [words[place] for place in places]
        known = _known_part(group, reading)
        if known:
            _read_group(known, reading, from_config=from_config)


def _known_part(group: Sequence[Word], reading: Reading) -> list[str]:
    """Return what of an option can be read without a shell; the rest is told."""
    texts = [word.text for word in group]
    if not any(word.unknown for word in group):
        return texts
    first = next(place for place, word in enumerate(group) if word.unknown)
    matches = reading.parser.matches(texts[0]) if texts[0].startswith("--") else []
    option = reading.parser.options.by_name.get(matches[0][2:]) if len(matches) == 1 else None
    if option is None or first >= _taken(option, texts[0]):
        reading.notes.append(stray_unknown(group[first]))
        return texts[:first]
    reading.unknown.add(option.name)
    reading.notes.append(left_out(matches[0], " ".join(group[first].unknown), "only the shell that runs it knows it"))
    return []


def _taken(option: Option, written: str) -> float:
    """Return how many words an option takes, its own included."""
    if option.nargs == 0:
        return 1
    return float("inf") if option.nargs in ("+", "*", "?") else 2 - ("=" in written)


def _read_group(texts: list[str], reading: Reading, *, from_config: bool) -> None:
    written, has_value, value = texts[0].partition("=")
    successor = SUCCESSORS.get(written.removeprefix("--")) if written.startswith("--") else None
    use, troubles = reading.parser.read(texts)
    older = written.startswith("--") and had(reading.version, written[2:])
    if successor is not None and use is None:
        values = [value, *texts[1:]] if has_value else texts[1:]
        texts = successor.rewrite(values)
        if older:
            reading.notes.append(still_named(written, texts, reading.version))
        else:
            reading.troubles.append((_rank(troubles[0]), renamed(written, troubles[0], successor, texts)))
        use, troubles = reading.parser.read(texts) if texts else (None, [])
        written = texts[0] if texts else written
    elif use is None and older:
        reading.notes.append(still_named(written, (), reading.version))
        return
    if use is not None and not older and (missing := not_yet(use.name, reading.version)) is not None:
        reading.troubles.append((_rank(None), missing))
        return
    reading.troubles += [(_rank(trouble), refusal(trouble, written, reading.parser)) for trouble in troubles]
    if use is not None and use.name == "help":
        reading.troubles.append((_rank(None), help_only(written)))
    elif use is not None:
        reading.uses.append((use, from_config))


def _rank(trouble: Trouble | None) -> int:
    """When argparse comes to it: all spellings first, then values (and -h) from left to right, leftovers at the end."""
    return 2 if trouble is None else {"ambiguous": 1, "value": 2, "unrecognized": 4}[trouble.kind]
