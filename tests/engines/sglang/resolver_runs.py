"""What SGLang 0.5.23's own resolver answered, one launch a line, and how to ask ours the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectune.engines.sglang.options import Options
from spectune.engines.sglang.resolution import MACHINES, Model, Resolution, resolve

DATA = Path(__file__).parent / "data"
ABBREVIATED = {"tp": "tp-size", "dp": "dp-size"}  # argparse takes unique beginnings
OPTIONS = Options.shipped().by_name


@dataclass(frozen=True)
class Run:
    """One line of the file: SM90 with 140 GiB, hardware probes mocked."""

    case: str
    argv: list[str]
    resolved: dict[str, Any] | None
    error: str | None

    def ours(self) -> Resolution:
        arguments = parse(self.argv)
        draft = arguments.get("speculative-draft-model-path")
        return resolve(
            arguments,
            model=model_of(arguments["model-path"]),
            draft=None if draft is None else model_of(draft),
            machine=MACHINES["h200"],
        )


def runs() -> list[Run]:
    lines = (DATA / "resolver_runs.jsonl").read_text(encoding="utf-8").splitlines()
    answers = map(json.loads, lines)
    return [Run(a["case"], a["argv"], a.get("resolved"), a.get("error")) for a in answers]


def model_of(reference: str) -> Model:
    return Model.from_config(json.loads((DATA / "models" / Path(reference).name / "config.json").read_text()))


def parse(argv: list[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    words = list(argv)
    while words:
        name = words.pop(0).removeprefix("--")
        option = OPTIONS[ABBREVIATED.get(name, name)]
        values: list[Any] = []
        while words and not words[0].startswith("--"):
            values.append({"int": int, "float": float}.get(option.kind, str)(words.pop(0)))
        arguments[option.name] = True if option.kind == "flag" else values if option.nargs == "+" else values[0]
    return arguments
