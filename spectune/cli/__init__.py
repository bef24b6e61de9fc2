"""The command line: parse, call one function, print."""

from spectune.cli.app import main

__all__ = ["main"]
