"""The study as one HTML file a colleague can read without spectune."""

from spectune.report.render import render_report, write_report

__all__ = ["render_report", "write_report"]
