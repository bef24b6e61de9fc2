"""Replays measured tables as the engine: how much is lost by launching only some of their rows.

python -m benchmarks.replay --tables DIR [--sampler guided] [--seeds 5] [--json]

A table is a CSV file (lines with # are comments) with a column for the batch size or concurrency, for steps, top-k,
draft tokens and tok/s; an accept length is used where there is one. Rows that agree in every other text column and the
batch size are a group, and a study of its own (names of drafters without spaces, in lower case): its candidates are the
group's rows, its baseline the row without speculation if there is one. Regret after n rows is what the best of the n
launched gives away against the best of the group; the baseline is not counted among the n, the opening (the chain
nearest to 5 steps, the same for every sampler) is. Regrets are means over seeds, and no two groups share their draws:
with one seed for all, what a sampler draws second is the same row everywhere, and luck. Tables and groups that cannot
be replayed are listed.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from benchmarks.worlds.world import measured_level
from spectune.engines.parts import Illegal, Part
from spectune.engines.protocol import LaunchCommand
from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.sampler_names import GUIDED, SAMPLERS
from spectune.search.proposing.proposals import Proposer
from spectune.search.storage.records import Seconds, Status, TrialRecord
from spectune.search.storage.steps import Role
from spectune.space import Candidate, SearchSpace, parse_space

COLUMNS = {
    "batch": ("batch_size", "concurrency", "bs"),
    "steps": ("steps", "num_steps", "speculative_num_steps"),
    "topk": ("topk", "eagle_topk", "speculative_eagle_topk"),
    "tokens": ("num_draft_tokens", "draft_tokens", "speculative_num_draft_tokens"),
    "speed": ("output_tok_s", "tok_s", "throughput_tok_s", "output_throughput"),
}
ACCEPTED = ("accept_length", "accept_len")
NAMES = ("speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens")
LEAST_ROWS, LARGE = 3, 12
Shape = tuple[int, int, int]


@dataclass
class Group:
    """Rows of one table that differ in S, K and N only.

    Attributes:
        name: Table and what the rows share.
        batch: Requests in flight.
        rows: (S, K, N) → tok/s and accept length, None where the table has none.
        baseline: tok/s without speculation.
    """

    name: str
    batch: int
    rows: dict[Shape, tuple[float, float | None]] = field(default_factory=dict)
    baseline: float | None = None


class TableEngine(SGLangEngine):
    """SGLang's rules, and beyond them only the rows of a group."""

    rows: Collection[Shape] = ()

    def draft_part(self, values: Mapping[str, Any]) -> Part:
        """Exclude drafts the table has not."""
        part = super().draft_part(values)
        items = dict(part.items)
        if part.illegal is None and items.get("speculative-algorithm") != "none":
            shape = tuple(items.get(name) for name in NAMES)
            if shape not in self.rows:
                return Part(part.items, illegal=Illegal("not-in-table", "the table has no such row"))
        return part


def groups(file: Path) -> tuple[list[Group], str | None]:
    """Return the groups of a table, or why it has none."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    header = list(rows[0]) if rows else []
    found = {key: next((name for name in names if name in header), None) for key, names in COLUMNS.items()}
    if missing := [key for key, name in found.items() if name is None]:
        return [], f"no column for {', '.join(missing)}"
    columns = {key: name for key, name in found.items() if name is not None}
    accepted = next((name for name in ACCEPTED if name in header), None)
    text = [
        c
        for c in header
        if c not in columns.values() and c != "draft" and any(_number(r[c]) is None for r in rows if r[c])
    ]
    drafters = _drafters(rows, [*text, columns["batch"]])
    made: dict[tuple[str, ...], Group] = {}
    for row in rows:
        batch, speed = _number(row[columns["batch"]]), _number(row[columns["speed"]])
        shape = tuple(_number(row[columns[key]]) for key in ("steps", "topk", "tokens"))
        shared = tuple(row[c] for c in (*text, columns["batch"]))
        if batch is None or not speed:
            continue
        plain = _drafter(row) == "baseline" or shape[0] in {None, 0.0}
        for drafter in drafters[shared] if plain else (_drafter(row),):
            name = " ".join(word for word in (file.name, *shared, drafter) if word)
            group = made.setdefault((*shared, drafter), Group(name, int(batch)))
            if plain:
                group.baseline = speed
            elif None not in shape:
                length = _number(row[accepted]) if accepted else None
                group.rows[int(shape[0] or 0), int(shape[1] or 0), int(shape[2] or 0)] = speed, length
    return list(made.values()), None


def _drafters(rows: Sequence[Mapping[str, str]], shared: Sequence[str]) -> dict[tuple[str, ...], tuple[str, ...]]:
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for row in rows:
        names = found.setdefault(tuple(row[c] for c in shared), {})
        if _drafter(row) != "baseline":
            names[_drafter(row)] = None
    return {key: tuple(names) for key, names in found.items()}


def _drafter(row: Mapping[str, str]) -> str:
    return "".join(row.get("draft", "").split()).casefold()


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def space_of(group: Group) -> SearchSpace:
    """Return the search space whose values are those of a group."""
    values = [sorted({row[at] for row in group.rows}) for at in range(3)]
    lists = "\n".join(f"  {name}: {found}" for name, found in zip(NAMES, values, strict=True))
    return parse_space(
        "schema: 1\nname: replay\nengine: {python: python3, gpus: 1, args: {model-path: org/model}}\n"
        f"search:\n  speculative-algorithm: [none, EAGLE3]\n  speculative-draft-model-path: org/drafter\n{lists}\n"
        f"workload: {{prompts: builtin:tiny, levels: [{{concurrency: {group.batch}}}]}}\n"
        f"objectives: [{{maximize: output_throughput, level: c{group.batch}}}]\n",
        Path("replay.yaml"),
    )


def replay(group: Group, sampler: str, seed: int) -> list[float] | None:
    """Return the regret after each launched row; None where SGLang's rules leave too few rows.

    Args:
        group: What is replayed.
        sampler: What proposes its rows.
        seed: Of the draws in all groups; no two groups share theirs.
    """
    space = space_of(group)
    engine = TableEngine(Interpreter(sys.executable), "0.5.23", space.engine.args, {}, 1, group.batch)
    engine.rows = group.rows.keys()
    proposer = Proposer(space, engine, sampler=sampler, seed=crc32(f"{seed} {group.name}".encode()))
    legal = [c for c in proposer.all() if c.speculative]
    if len(legal) < LEAST_ROWS:
        return None
    best = max(group.rows[_shape(c)][0] for c in legal)
    records: list[TrialRecord] = []
    if group.baseline is not None:
        records.append(_record(records, proposer.baseline(), group.batch, group.baseline, 1.0))
    regrets: list[float] = []
    reached = 0.0
    while len(regrets) < len(legal):
        proposal = proposer.propose(records)
        assert proposal is not None, "rows are left"
        if not proposal.candidate.speculative:  # a baseline the table has not: it fails, and costs nothing
            records.append(_record(records, proposal.candidate, group.batch, group.baseline, 1.0))
            continue
        speed, length = group.rows[_shape(proposal.candidate)]
        records.append(_record(records, proposal.candidate, group.batch, speed, length))
        reached = max(reached, speed)
        regrets.append(1.0 - reached / best)
    return regrets


def _shape(candidate: Candidate) -> Shape:
    return candidate.num_steps or 0, candidate.eagle_topk or 0, candidate.num_draft_tokens or 0


def _record(
    records: Sequence[TrialRecord], candidate: Candidate, batch: int, speed: float | None, length: float | None
) -> TrialRecord:
    levels = () if speed is None else (measured_level(f"c{batch}", speed / batch, batch, length or 1.0, ()),)
    return TrialRecord(
        trial=len(records), role=Role.SEARCH if candidate.speculative else Role.BASELINE, candidate=candidate,
        launch_index=len(records), why="", started_at="", status=Status.OK if levels else Status.SUSPECT,
        seconds=Seconds(0.0, 0.0, 0.0, 0.0), command=LaunchCommand(()), levels=levels,
    )  # fmt: skip


def rows_of(tables: Path, sampler: str, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield a row per group, and one per table or group that is skipped."""
    for file in sorted(tables.glob("*.csv")):
        found, problem = groups(file)
        if problem is not None:
            yield {"group": file.name, "skipped": problem}
        for group in found:
            runs = [
                run for seed in range(seeds) if len(group.rows) >= LEAST_ROWS and (run := replay(group, sampler, seed))
            ]
            if not runs:
                yield {"group": group.name, "skipped": f"fewer than {LEAST_ROWS} legal rows"}
                continue
            mean = [statistics.fmean(column) for column in zip(*runs, strict=True)]
            yield {"group": group.name, "rows": len(mean), "regret_after": [round(value, 4) for value in mean]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR")
    parser.add_argument("--sampler", default=GUIDED, choices=SAMPLERS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.tables.is_dir():
        print(f"there is no folder {options.tables}", file=sys.stderr)
        return 2
    rows = list(rows_of(options.tables, options.sampler, options.seeds))
    played = [row for row in rows if "rows" in row]
    fives = [row["regret_after"][1] for row in played if row["rows"] == 5]
    large = [row["regret_after"][row["rows"] // 3 - 1] for row in played if row["rows"] >= LARGE]
    totals = {
        "sampler": options.sampler,
        "groups": len(played),
        "mean_regret_after_2_of_5": round(statistics.fmean(fives), 4) if fives else None,
        "mean_regret_after_a_third_of_12_or_more": round(statistics.fmean(large), 4) if large else None,
    }
    if options.json:
        print(json.dumps({**totals, "rows": rows}, indent=1))
        return 0
    for row in rows:
        said = row.get("skipped") or " ".join(f"{value:6.2%}" for value in row["regret_after"])
        print(f"{row['group'][:90]:92}{'skipped: ' if 'skipped' in row else ''}{said}")
    for key, value in totals.items():
        print(f"{key:45}{value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
