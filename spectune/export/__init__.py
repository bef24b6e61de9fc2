"""Launch files a person takes away: shell, SGLang's configuration, compose, and a table for adaptive speculation."""

from spectune.export.earlier import outdated_files
from spectune.export.formats import DEFAULT_FORMATS, Format, parse_formats
from spectune.export.header import Origin
from spectune.export.launch import Launch
from spectune.export.shell import command_text
from spectune.export.write import ExportedFiles, export_candidates
from spectune.search.evidence.adaptive import adaptive_table
from spectune.withheld import secret_values

__all__ = [
    "DEFAULT_FORMATS",
    "ExportedFiles",
    "Format",
    "Launch",
    "Origin",
    "adaptive_table",
    "command_text",
    "export_candidates",
    "outdated_files",
    "parse_formats",
    "secret_values",
]
