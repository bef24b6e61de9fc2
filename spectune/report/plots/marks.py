"""What a chart is made of. Places are percent of the plot's area from its left and from its top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spectune.report.plots.scale import Tick

Tone = str
"""A colour by its role, a class of the style sheet: s1 to s8, baseline, good, bad, unclear, muted, accent, text."""
Shape = Literal["circle", "diamond", "cross", "bar", "point"]
"""A point is a small circle, for what is there for comparison only."""
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A straight line; `style` is one of thin, solid, thick, dashed and dotted."""

    x1: float
    y1: float
    x2: float
    y2: float
    tone: Tone
    style: str = "solid"


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with its intervals.

    Attributes:
        x: From the left.
        y: From the top.
        tone: Its colour.
        tip: What it says when it is pointed at, lines separated by line feeds.
        shape: Its symbol.
        filled: Whether the symbol is.
        whiskers: Its intervals.
    """

    x: float
    y: float
    tone: Tone
    tip: str = ""
    shape: Shape = "circle"
    filled: bool = True
    whiskers: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    tone: Tone
    tip: str = ""
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """A text in the plot, `dy` pixels below its place and `dx` to the right of it."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    dx: int = 0
    dy: int = 0
    tone: Tone = "text"


@dataclass(frozen=True, slots=True)
class RowName:
    """The name of a row, above its place; cut where the plot ends."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend; the shape `line` or `dashed` stands for a line, `box` for an area."""

    text: str
    tone: Tone
    shape: str = "circle"
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its title, empty where rows are named in the plot, and where it is labelled."""

    title: str = ""
    ticks: tuple[Tick, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """One chart with what a reader who cannot see it needs.

    Attributes:
        name: Its id in the page.
        title: Heading.
        caption: What it shows and how to read it.
        x: Horizontal axis.
        y: Vertical axis.
        height: Of the plot's area, pixels.
        boxes: Areas, drawn first.
        segments: Lines, drawn over them.
        dots: Points, drawn over both.
        words: Texts in the plot.
        rows: Names of rows, where there are rows.
        keys: The legend.
    """

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    height: int = 320
    boxes: tuple[Box, ...] = ()
    segments: tuple[Segment, ...] = ()
    dots: tuple[Dot, ...] = ()
    words: tuple[Words, ...] = ()
    rows: tuple[RowName, ...] = ()
    keys: tuple[Key, ...] = ()

    @property
    def left(self) -> int:
        """Width that the labels of the vertical axis take, in characters."""
        return max((len(tick.label) for tick in self.y.ticks), default=0)

    @property
    def points(self) -> int:
        """Number of points that say something."""
        tips = [box.tip for box in self.boxes] + [dot.tip for dot in self.dots]
        return sum(map(bool, tips))
