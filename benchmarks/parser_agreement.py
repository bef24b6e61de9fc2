"""How often spectune reads a command line as SGLang's own parser does.

`python -m benchmarks.parser_agreement --engine-python PYTHON [--lines N] [--seed N]`; PYTHON is an interpreter that has
SGLang, with whatever environment its import needs. Generated lines mix full names, aliases, unique and ambiguous
prefixes, `=`, right and wrong values, missing and surplus ones, unknown options, stray words and `--`.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spectune.engines.sglang.launch_line.command_line import LaunchLine, read_launch
from spectune.engines.sglang.options import Option, Options

ASKED = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs

class Refused(Exception): pass
class Parser(argparse.ArgumentParser):
    def error(self, message): raise Refused(message)
    def exit(self, status=0, message=None): raise Refused("help")
    def print_help(self, file=None): pass

parser = Parser(prog="sglang serve")
ServerArgs.add_cli_args(parser)
text = lambda values: {k: json.dumps(v, default=str, sort_keys=True) for k, v in values.items()}
defaults = text({a.dest: a.default for a in parser._actions if a.dest != "help"})
names = {a.option_strings[0].lstrip("-"): a.dest for a in parser._actions}
print("ANSWERS" + json.dumps({"defaults": defaults, "names": names}))
for line in sys.stdin:
    try:
        answer = {"read": text(vars(parser.parse_args(json.loads(line))))}
    except Refused as refused:
        answer = {"refused": str(refused)}
    except Exception as error:
        answer = {"crashed": type(error).__name__}
    print("ANSWERS" + json.dumps(answer))
"""
GOOD = {
    "int": ["0", "1", "8", "48", "-1", " 7 "],
    "float": ["0.5", "1", "1e-3", "-0.25", "nan"],
    "str": ["text", "a=b", "two words", "", "-"],
    "human_readable_int": ["4096", "16k", "1.5M", "16Ki"],
    "loads": ['{"a": 1}', "[1]", "null"],
    "json_list_type": ["[1, 2]", '["a"]'],
    "nullable_str": ["None", "x", ""],
    "parse_cuda_graph_backend_arg": ["full", "disabled"],
    "parse_cuda_graph_config_arg": ['{"decode": {"max_bs": 4}}', '{"prefill": {"backend": "full"}}'],
}
BAD = [
    "eight",
    "1.5",
    "1.5Ki",
    "tc_piecewise",
    "{",
    '{"decode": 1}',
    '{"x": {}}',
    "-x",
    "--nope",
    "-3.5",
    "",
    "16K",
    "-",
]
UNKNOWN = ["--tp_size", "--cuda-graph-max-bs", "--cuda-graph-bs", "--nope=1", "-tp", "-x", "--enable-deepep-moe"]


def line(draw: random.Random, options: Sequence[tuple[str, Option]]) -> list[str]:
    """Return the words of one command line."""
    words = [] if draw.random() < 0.05 else ["--model-path", "some/model"]
    for _ in range(draw.randint(0, 5)):
        name, option = draw.choice(options)
        spelling = f"--{name}"
        if draw.random() < 0.2:
            spelling = spelling[: draw.randint(min(5, len(spelling)), len(spelling))]
        good = list(option.choices) if option.choices else GOOD.get(option.kind, ["text"])
        count = {0: 0, None: 1, "?": draw.randint(0, 1), "*": draw.randint(0, 3), "+": draw.randint(1, 3)}[option.nargs]
        values = [draw.choice(good) for _ in range(count)]
        if draw.random() < 0.12:
            values = [draw.choice(BAD) for _ in range(draw.randint(0, 2))]
        if values and draw.random() < 0.2:
            words += [f"{spelling}={values[0]}", *values[1:]]
        else:
            words += [spelling, *values]
        if draw.random() < 0.04:
            words.append(draw.choice([*UNKNOWN, "stray", "--", "--help", "-h", "-5", "two words"]))
    return words


def verdict(ours: LaunchLine, engine: dict[str, Any], about: dict[str, Any]) -> str:
    """Say in one word how the two readings compare."""
    if "crashed" in engine:
        return "engine crashes, refused here" if ours.refused else "ENGINE CRASHES, ACCEPTED HERE"
    first = ours.findings[0] if ours.refused else None
    if "refused" in engine:
        if first is None:
            return "REFUSED BY THE ENGINE ONLY"
        said = engine["refused"]
        together = said.startswith("unrecognized") and first.message.startswith("unrecognized")
        ours_said = first.message.split(" (--")[0].removesuffix("…")  # without our addition, cut where it is long
        together = together or sorted(said) == sorted(ours_said)  # one list of choices is a set, in any order
        same = together or said.startswith(ours_said) or (said == "help" and first.rule == "help")
        return "refused, same message" if same else "REFUSED, ANOTHER MESSAGE"
    if first is not None:
        return "REFUSED HERE ONLY"
    given = {
        about["names"][name]: json.dumps(value, default=str, sort_keys=True) for name, value in ours.arguments.items()
    }
    return "read alike" if {**about["defaults"], **given} == engine["read"] else "READ DIFFERENTLY"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine-python", default=sys.executable)
    parser.add_argument("--lines", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="disagreements to print")
    chosen = parser.parse_args()
    draw = random.Random(chosen.seed)
    shipped = Options.shipped()
    options = [
        (name, option) for name, option in shipped.by_name.items() if name != "config" and "log-level" not in name
    ]
    lines = [line(draw, options) for _ in range(chosen.lines)]
    asked = subprocess.run(
        [chosen.engine_python, "-c", ASKED], input="\n".join(map(json.dumps, lines)) + "\n",
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = [json.loads(row[7:]) for row in asked.stdout.splitlines() if row.startswith("ANSWERS")]
    about, answers = answers[0], answers[1:]
    counts: Counter[str] = Counter()
    for words, engine in zip(lines, answers, strict=True):
        ours = read_launch(["python", "-m", "sglang.launch_server", *words])
        kind = verdict(ours, engine, about)
        counts[kind] += 1
        if kind.isupper() and sum(n for other, n in counts.items() if other.isupper()) <= chosen.show:
            print(f"{kind}: {words}\n  engine: {str(engine)[:300]}\n  here:   {ours.arguments} {ours.findings[:1]}")
    for kind, count in counts.most_common():
        print(f"{count:7d}  {kind}")
    wrong = sum(count for kind, count in counts.items() if kind.isupper())
    print(f"{chosen.lines - wrong} of {chosen.lines} agree (seed {chosen.seed})")


if __name__ == "__main__":
    main()
