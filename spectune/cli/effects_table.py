"""What the searched parameters do, in a few lines: the strongest effect of each, and what has none or is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
LEAD = (
    "what another value does to the best candidates, by the models fitted to all launches (the strongest of each "
    "parameter; predicted: no two launches differ in just that):"
)


def effect_lines(effects: Sequence[Row]) -> Iterator[str]:
    """Yield the lines; none where nothing can be told yet.

    Args:
        effects: As `summary.json` has them.
    """
    by_parameter: dict[str, list[Row]] = {}
    for row in effects:
        by_parameter.setdefault(row["parameter"], []).append(row)
    shown: list[list[Row]] = []
    same: list[str] = []
    undecided: list[str] = []
    unknown: list[str] = []
    for parameter, rows in by_parameter.items():
        decided = [row for row in rows if _decided(row)]
        if decided:
            strongest = max(decided, key=lambda row: abs(row["effect"][0]))
            shown.append([row for row in decided if row["value"] == strongest["value"]])
        elif all("no difference" in row["says"] for row in rows):
            within = max(max(map(abs, row["effect"][1:])) for row in rows)
            launched = any(row["basis"] == "launches" for row in rows)
            same.append(f"{parameter} (within ±{within:.1%}{'' if launched else ', predicted'})")
        else:
            never_varied = all(row["basis"] == "nothing" for row in rows)
            (unknown if never_varied else undecided).append(parameter)
    if shown or same or undecided or unknown:
        yield LEAD
    for rows in sorted(shown, key=lambda rows: -max(abs(row["effect"][0]) for row in rows)):
        told = ", ".join(f"{row['objective']}@{row['level']} {row['says']}" for row in rows)
        yield f"  {rows[0]['parameter']} {rows[0]['instead']}: {told}"
    for lead, names in (("makes no difference", same), ("not decided", undecided), ("unknown, never varied", unknown)):
        if names:
            yield f"  {lead}: {', '.join(names)}"


def _decided(row: Row) -> bool:
    _, low, high = row["effect"]
    return row["basis"] != "nothing" and (low > 0.0 or high < 0.0) and "no difference" not in row["says"]
