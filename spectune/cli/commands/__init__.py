"""What the program can be told to do, a module for each kind of thing; the order is that of `--help`."""

from spectune.cli.commands import searching, studies, servers, simulation, engines  # isort: skip

__all__ = ["engines", "searching", "servers", "simulation", "studies"]
