"""Whether speculation pays in a study, why it is not faster, and what would make it faster. Pure."""

from spectune.analysis.why.cycle import CycleParts, Discrepancy, Needed, VerifyAlone
from spectune.analysis.why.result import (
    BreakEvenOfStudy,
    BreakEvenRow,
    LoadLimit,
    LostSpeed,
    Waterfall,
    WaterfallStep,
)
from spectune.analysis.why.training import Cost, DrafterPoint, Training, training
from spectune.analysis.why.what_if_result import AtAcceptLength, AtCycle, AtLoad, WhatIf

__all__ = [
    "AtAcceptLength",
    "AtCycle",
    "AtLoad",
    "BreakEvenOfStudy",
    "BreakEvenRow",
    "Cost",
    "CycleParts",
    "Discrepancy",
    "DrafterPoint",
    "LoadLimit",
    "LostSpeed",
    "Needed",
    "Training",
    "VerifyAlone",
    "Waterfall",
    "WaterfallStep",
    "WhatIf",
    "training",
]
