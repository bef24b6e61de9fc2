"""Runs inside the engine's interpreter: prints every launch option of the installed SGLang as one line of JSON."""

import argparse
import importlib.metadata
import json

from sglang.srt.server_args import ServerArgs


def describe(action: argparse.Action) -> dict[str, object]:
    """Return what a launch command must know of one option: kind of value, choices, spellings."""
    kind = "flag" if action.nargs == 0 else getattr(action.type, "__name__", "str")
    choices = None if action.choices is None else [str(choice) for choice in action.choices]
    return {"kind": kind, "nargs": action.nargs, "choices": choices, "names": action.option_strings}


def main() -> None:
    """Print `{"version": …, "options": {long name without dashes: description}}`."""
    parser = argparse.ArgumentParser(prog="sglang serve", add_help=False)
    ServerArgs.add_cli_args(parser)
    options = {
        action.option_strings[0].lstrip("-"): describe(action) for action in parser._actions if action.option_strings
    }
    print(json.dumps({"version": importlib.metadata.version("sglang"), "options": options}))


if __name__ == "__main__":
    main()
