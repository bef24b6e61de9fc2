"""The parts of the page, a module each, in reading order."""

from __future__ import annotations

from spectune.report.material import Material
from spectune.report.sections.acceptance import acceptance
from spectune.report.sections.break_even import break_even
from spectune.report.sections.effects import effects
from spectune.report.sections.failures import failures
from spectune.report.sections.figures import figures
from spectune.report.sections.launches import launches
from spectune.report.sections.launches_to_run import launches_to_run
from spectune.report.sections.load import load
from spectune.report.sections.machine import machine
from spectune.report.sections.method import method
from spectune.report.sections.search import search
from spectune.report.sections.section import Section
from spectune.report.sections.trade_off import trade_off
from spectune.report.sections.verdict import decision, verdict
from spectune.report.sections.why import why

_ALL = (
    verdict, launches_to_run, trade_off, break_even, why, load, acceptance, effects, search, failures, launches,
    machine, figures, method,
)  # fmt: skip

__all__ = ["decision", "sections"]


def sections(material: Material) -> tuple[Section, ...]:
    """Return the parts that a study has something to show for."""
    made = (make(material) for make in _ALL)
    return tuple(section for section in made if section is not None)
