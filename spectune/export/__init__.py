"""Launch files a person takes away: a shell script and an SGLang configuration per recommended launch."""

from spectune.export.launch import Launch, Option
from spectune.export.shell import command_text
from spectune.export.withheld import PLACEHOLDER, hides_secret, secret_values
from spectune.export.write import ExportedFiles, export_candidates

__all__ = [
    "PLACEHOLDER",
    "ExportedFiles",
    "Launch",
    "Option",
    "command_text",
    "export_candidates",
    "hides_secret",
    "secret_values",
]
