"""How the figures came about, and what they do not say."""

from __future__ import annotations

from spectune.report.material import Material
from spectune.report.sections.section import Section


def method(material: Material) -> Section:
    """Return the page's fixed words; whether the figures are simulated changes one of them."""
    return Section("method", "Method and caveats", bool(material.told["simulated"]))
