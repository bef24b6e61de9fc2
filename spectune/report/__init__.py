"""The study as one HTML file a colleague can read without spectune."""

from spectune.report.render import write_report

__all__ = ["write_report"]
