"""Charts as data: marks in percent of a plot's area, which a template turns into SVG that fits any width."""

from spectune.report.plots.marks import Axis, Box, Dot, Key, Plot, RowName, Segment, Shape, Words
from spectune.report.plots.parts import Rows, cross, extents, path, rise, span, tip_of
from spectune.report.plots.scale import Scale, Tick

__all__ = [
    "Axis",
    "Box",
    "Dot",
    "Key",
    "Plot",
    "RowName",
    "Rows",
    "Scale",
    "Segment",
    "Shape",
    "Tick",
    "Words",
    "cross",
    "extents",
    "path",
    "rise",
    "span",
    "tip_of",
]
