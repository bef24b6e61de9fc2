"""Which of several configurations to run where they are about as fast: the one place for that rule.

What they were measured at is partly luck. So they are compared by what is expected of them, that is by their launches
drawn together as far as configurations of their branch are seen to differ less than launches do (`best_baseline`):
where the noise is wide and they differ, that is the order in which they were measured. Within the tie margin of the
best they are equal, and the simplest is run. A flag is more than a number of steps: who has nothing else to set it
apart has to be shown to be faster for it, at 95 % by the t distribution of the launch noise, as in `comparison`.

Whoever asks says who may be run. For an answer those are the ones that were launched again after they were picked,
where there are any: what runs in production is what the verdict rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from spectune.analysis.best_baseline import Branch
from spectune.bench.precision import critical_value

TIE_MARGIN = 0.01
"""Speeds within 1 % of each other are a tie: less than that is not worth a more complicated engine."""


def preferred(branch: Branch, simplicity: Mapping[str, tuple[int, ...]], dof: float) -> str:
    """Return the configuration to run.

    Args:
        branch: What is believed of the speeds.
        simplicity: Sort key of each that may be run, simpler first, the number of flags last.
        dof: Degrees of freedom of the launch noise.
    """
    best, critical = max(simplicity, key=branch.expected), critical_value(dof)

    def will_do(one: str) -> bool:
        lead = branch.lead(best, one)
        if simplicity[one][:-1] == simplicity[best][:-1] and simplicity[one] < simplicity[best]:
            return lead.mean <= max(TIE_MARGIN, critical * math.sqrt(lead.variance))
        return lead.mean <= TIE_MARGIN

    return min(filter(will_do, simplicity), key=lambda one: (simplicity[one], -branch.expected(one)))


def simpler_by(one: tuple[int, ...], other: tuple[int, ...]) -> str | None:
    """Return by what a configuration is simpler than another, by their sort keys; None where it is not.

    That it is run although the other was measured to be faster follows from the rule above.
    """
    if one >= other:
        return None
    first = next(at for at, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs)
    if first == len(one) - 1:
        return "it has fewer system flags, which are not shown to help"
    what = ("a chain instead of a tree", "fewer draft steps", "fewer draft tokens")[first]
    return f"it is expected to be within {TIE_MARGIN:.0%} of it, and simpler: {what}"
