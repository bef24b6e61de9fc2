"""Commands of `spectune engine`."""

from __future__ import annotations

from typing import Annotated

import typer

from spectune.cli.program import JsonFlag, TorchIndex, engine_app


@engine_app.command("install")
def engine_install(
    name: Annotated[
        str, typer.Argument(help="Which one; cpu-reference is the real SGLang for machines without a GPU.")
    ],
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Install an engine environment; does nothing when it is there."""
    from spectune.cli.engines import install

    install(name, torch_index=torch_index, as_json=json_output)


@engine_app.command("list")
def engine_list(json_output: JsonFlag = False) -> None:
    """List the installed engine environments."""
    from spectune.cli.engines import show

    show(as_json=json_output)


@engine_app.command("remove")
def engine_remove(name: Annotated[str, typer.Argument(help="Which one.")]) -> None:
    """Remove an engine environment."""
    from spectune.cli.engines import remove

    remove(name)
