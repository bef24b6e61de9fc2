"""The script of a launch's command, beside its record."""

from __future__ import annotations

from spectune.engines.protocol import Engine, LaunchCommand

KEY_OF_YOUR_OWN = '"${SPECTUNE_API_KEY:?set a key of your own: this listens beyond loopback}"'


def launch_script(command: LaunchCommand, engine: Engine, api_key: str | None) -> str:
    """Return the command as a script; of a key that was made for the launch, a variable stands in its place.

    Args:
        command: The launch.
        engine: Whose it is.
        api_key: The launch's key, None where it listens on loopback alone.
    """
    shell = command.shell()
    if api_key is not None:
        shell = shell.replace(api_key, KEY_OF_YOUR_OWN)
    origin = f"# {engine.title}: a model of a machine answered, not this command\n"
    return f"#!/usr/bin/env bash\n{origin if engine.simulated else ''}exec {shell}\n"
