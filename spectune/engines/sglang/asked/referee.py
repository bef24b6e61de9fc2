"""Runs inside the engine's interpreter: says what SGLang's own resolver makes of launches, without launching them.

Reads one JSON line per launch from standard input, `{"argv": […], "env": {…}, "unset": […]}`, and answers each with one
line, `{"status": "ok" | "rejected", "message": …, "resolved": {field: value}}`. Ends when standard input closes.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import sys


def refuse(_parser: argparse.ArgumentParser, message: str):
    """Stand in for `ArgumentParser.error`, which prints the usage and ends the process."""
    raise ValueError(message)


@contextlib.contextmanager
def environment(env: dict[str, str], unset: list[str]):
    """Run one resolution under a launch's variables; the resolver sets some of its own, too."""
    before = dict(os.environ)
    for name in unset:
        os.environ.pop(name, None)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def resolve(argv: list[str]) -> dict[str, object]:
    """Return the fields SGLang resolves a command line to, what it does before it starts anything."""
    from sglang.srt.server_args import prepare_server_args

    server_args = prepare_server_args(argv)
    if hasattr(server_args, "resolve_once"):  # older versions resolve while they read
        server_args.resolve_once()
    server_args.check_server_args()
    if hasattr(server_args, "resolved_dict"):
        return server_args.resolved_dict()
    return {field.name: getattr(server_args, field.name) for field in dataclasses.fields(server_args)}


def load() -> None:
    """Import SGLang and its plugins, in the order a launch does."""
    import sglang.srt.server_args  # noqa: F401

    with contextlib.suppress(ImportError):  # versions without plugins
        from sglang.srt.plugins import load_plugins

        load_plugins()


def judge(launch: dict) -> dict[str, object]:
    """Return the answer on one launch."""
    try:
        with environment(launch.get("env", {}), launch.get("unset", [])):
            return {"status": "ok", "message": None, "resolved": resolve(launch["argv"])}
    except SystemExit as error:
        message = f"SGLang ended with exit code {error.code}"
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    return {"status": "rejected", "message": message, "resolved": {}}


def main() -> None:
    """Answer every line of standard input; one line first, once SGLang is loaded."""
    # SGLang logs and prints while it resolves; the answers need a channel of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    argparse.ArgumentParser.error = refuse
    try:
        load()
    except BaseException as error:  # whatever it is, the asker must hear it
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(judge(json.loads(line)), default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
