"""Whether speculation pays in a study, why it is not faster, and what would make it faster. Pure."""

from spectune.analysis.why.cycle import CycleParts
from spectune.analysis.why.result import BreakEvenOfStudy, BreakEvenRow, LoadLimit, Waterfall
from spectune.analysis.why.training import DrafterPoint, Training, training
from spectune.analysis.why.what_if_result import AtAcceptLength, AtCycle, AtLoad, WhatIf

__all__ = [
    "AtAcceptLength",
    "AtCycle",
    "AtLoad",
    "BreakEvenOfStudy",
    "BreakEvenRow",
    "CycleParts",
    "DrafterPoint",
    "LoadLimit",
    "Training",
    "Waterfall",
    "WhatIf",
    "training",
]
