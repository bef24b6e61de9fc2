"""Commands of `spectune engine`."""

from __future__ import annotations

from typing import Annotated

import typer

from spectune.cli.program import JsonFlag, TorchIndex, engine_app


@engine_app.command("install")
def engine_install(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="cpu-reference: the real SGLang, with tiny models, without a GPU.")
    ],
    torch_index: TorchIndex = None,
    json_output: JsonFlag = False,
) -> None:
    """Install an engine environment, told how large it is first; does nothing when it is there."""
    from spectune.cli.engines import install

    install(name, torch_index=torch_index, as_json=json_output)


@engine_app.command("list")
def engine_list(json_output: JsonFlag = False) -> None:
    """List the installed engine environments."""
    from spectune.cli.engines import show

    show(as_json=json_output)


@engine_app.command("remove")
def engine_remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of `spectune engine list`.")],
    json_output: JsonFlag = False,
) -> None:
    """Remove an engine environment with everything in it."""
    from spectune.cli.engines import remove

    remove(name, as_json=json_output)
