"""Why a configuration is not faster: from the baseline's time per token to its own, causes, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spectune.analysis.why.result import LostSpeed, Waterfall, WaterfallStep
from spectune.report.material import Material
from spectune.report.plots import Axis, Box, Plot, RowName, Rows, Scale, Segment
from spectune.report.sections.section import Section
from spectune.report.wording import number

ENDS = {"baseline": "baseline", "candidate": "s1"}
BAR = 0.36
"""Height of a bar, of its row."""


@dataclass(frozen=True)
class CauseRow:
    """A cause of lost speed.

    Attributes:
        lost: Tok/s one request would gain without it.
        evidence: What was seen, with its arithmetic.
        action: The cheapest thing that helps; empty where nothing is known to.
        cost: What that takes.
    """

    lost: str
    evidence: str
    action: str
    cost: str


@dataclass(frozen=True)
class Why:
    """The section.

    Attributes:
        about: Which candidate at which level, and why this one.
        words: Its cycle and the parts, in sentences.
        plots: Waterfalls, that of the level the verdict is about first.
        causes: Most tok/s lost first.
        actions: (what to do next, what it takes), cheapest first.
    """

    about: str
    words: tuple[str, ...]
    plots: tuple[Plot, ...]
    causes: tuple[CauseRow, ...]
    actions: tuple[tuple[str, str], ...]


def why(material: Material) -> Section | None:
    """Return why the speculation the report looks at is not faster; None where nothing can be compared."""
    told = material.break_even
    if told.candidate_id is None:
        return None
    own = [fall for fall in told.waterfalls if fall.candidate_id == told.candidate_id]
    ranked = sorted(own, key=lambda fall: fall.level != told.level)
    content = Why(
        about=f"{material.labels[told.candidate_id]} at {told.level}, {told.why}:",
        words=(*told.words, *_outside_graphs(material)),
        plots=tuple(_waterfall(index, fall) for index, fall in enumerate(ranked)),
        causes=tuple(_cause(cause) for cause in told.causes),
        actions=told.actions,
    )
    return Section("why", "Why not faster", content)


def _outside_graphs(material: Material) -> Iterator[str]:
    """Yield what of this candidate ran outside CUDA graphs, at all loads together."""
    found = material.told.outside_graphs
    if found is not None and found.candidate_id == material.break_even.candidate_id:
        yield f"outside CUDA graphs: {found.evidence}"


def _cause(cause: LostSpeed) -> CauseRow:
    lost = "" if cause.tok_s_lost is None else f"{number(cause.tok_s_lost, 3)} tok/s"
    most = "at most " if lost and cause.at_most else ""
    return CauseRow(most + lost, cause.evidence, cause.action or "", cause.cost or "")


def _waterfall(index: int, fall: Waterfall) -> Plot:
    """Return time per token, from the baseline's to the candidate's, a row a step."""
    x = Scale.over((step.reached_ms for step in fall.steps), holding=(0.0,))
    rows = Rows(len(fall.steps))
    boxes, segments, names = [], [], []
    before = 0.0
    for number_, step in enumerate(fall.steps):
        after, at = step.reached_ms, rows.at(number_)
        begin = 0.0 if step.name in ENDS else before
        tone = ENDS.get(step.name) or ("good" if step.ms < 0 else "bad")
        left, right = sorted((x.across(begin), x.across(after)))
        height = 100.0 * BAR / len(fall.steps)
        boxes.append(Box(left, at - height / 2, round(right - left, 2), height, tone, _tip(step)))
        if number_ + 1 < len(fall.steps):
            segments.append(Segment(x.across(after), at, x.across(after), rows.at(number_ + 1), "muted", "dotted"))
        names.append(RowName(at, f"{_change(step)}: {_name(step, fall)}"))
        before = after
    return Plot(
        f"waterfall-{index}", f"From no speculation to this candidate, at {fall.level}",
        f"{fall.label}: time per token of one request. Green steps make it shorter, red ones longer; every step "
        "says what it changes.",
        Axis("milliseconds per token", x.x_ticks()), Axis(), rows.height,
        boxes=tuple(boxes), segments=tuple(segments), rows=tuple(names),
    )  # fmt: skip


def _name(step: WaterfallStep, fall: Waterfall) -> str:
    return "this candidate" if step.words == fall.label else step.words


def _change(step: WaterfallStep) -> str:
    if step.name in ENDS:
        return f"{number(step.ms, 3)} ms ({number(step.tok_s, 3)} tok/s)"
    return f"{_signed(step.ms)} ms ({_signed(step.tok_s)} tok/s)"


def _tip(step: WaterfallStep) -> str:
    return "\n".join(_lines(step))


def _lines(step: WaterfallStep) -> Iterator[str]:
    yield step.words
    yield _change(step)
    if step.name not in ENDS:
        yield f"reached: {number(step.reached_ms, 3)} ms, {number(step.reached_tok_s, 3)} tok/s"


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{number(abs(value), 3 if abs(value) >= 1.0 else 2)}"
