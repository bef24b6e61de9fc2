"""`spectune diagnose`: why a server that already runs is slow, without launching anything."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from spectune.analysis.diagnosis import Running, diagnose
from spectune.bench.probe import OUTPUT_TOKENS, PROMPTS, Probe, ProbeFailedError, probe
from spectune.bench.prompt_sources import open_workload
from spectune.bench.prompt_stream import PromptStream
from spectune.cli.diagnosis_table import print_diagnosis
from spectune.cli.exit_codes import ExitCode
from spectune.cli.known_server import known_from_answers, known_from_log
from spectune.cli.terminal import PROGRESS, TimeLeft, print_json
from spectune.engines.address import authorization
from spectune.engines.sglang.log_signatures import SIGNATURES
from spectune.engines.sglang.server_answers import ask_server, base_url_of
from spectune.engines.sglang.server_log import read_open_log, read_server_logs
from spectune.errors import SpectuneError
from spectune.printable import printable_json
from spectune.serving.failures import classify, log_tail

PIPE = Path("-")
KEY_VARIABLE = "SGLANG_API_KEY"
PROBE_SEED = 20_000  # other prompts than a study's, which may be in the server's cache


def run_diagnose(
    *,
    log: Path | None,
    url: str | None,
    baseline: float | None,
    concurrency: int | None,
    verify_ms: float | None,
    probing: bool,
    api_key_env: str | None,
    as_json: bool,
) -> int:
    """Print the diagnosis of a log or of a server; return the exit code.

    Raises:
        SpectuneError: When there is no server in it.
    """
    if (log is None) == (url is None):
        raise SpectuneError("give either --log FILE or --url http://HOST:PORT")
    if log is not None:
        if probing or api_key_env is not None:
            raise SpectuneError("--probe and --api-key-env are for --url; a log is only read")
        source, known = _read(log)
    else:
        source, known = asyncio.run(_ask(base_url_of(url or ""), _key(api_key_env), probing=probing))
    diagnosis = diagnose(known, baseline_tok_s=baseline, concurrency=concurrency, verify_ms=verify_ms)
    if as_json:
        print_json(printable_json({"source": source, "server": _server(known), **diagnosis.to_json()}))
    else:
        print_diagnosis(source["title"], known, diagnosis)
    return ExitCode.DONE


def _read(log: Path) -> tuple[dict[str, Any], Running]:
    """What a log says of its last server; `-` is standard input.

    Raises:
        SpectuneError: When that one failed while it started; with the decisive line of the log.
    """
    piped = log == PIPE
    name = "standard input" if piped else str(log)
    starts = read_open_log(_standard_input(), name) if piped else read_server_logs(log)
    last = starts[-1]
    if not last.ready and not last.decode_lines and last.errors:
        gone = piped or not log.is_file()  # a pipe gives its words once
        failure = classify("\n".join(last.errors) if gone else log_tail(log), None, SIGNATURES)
        raise SpectuneError(f"{name}: its last server never served ({failure.failure_class}): {failure.message}")
    title = name if len(starts) == 1 else f"{name}, the last of {len(starts)} starts"
    return {"log": name, "starts": len(starts), "title": title}, known_from_log(last)


def _standard_input() -> BufferedReader:
    """Raises SpectuneError where nothing is piped in."""
    if sys.stdin.isatty():
        raise SpectuneError("--log - reads standard input: docker logs NAME 2>&1 | spectune diagnose --log -")
    return cast("BufferedReader", sys.stdin.buffer)


async def _ask(base_url: str, key: str | None, *, probing: bool) -> tuple[dict[str, Any], Running]:
    """What a server says of itself."""
    answers = await ask_server(base_url, key)
    probed = await _probe(base_url, key) if probing else None
    source = {"url": base_url, "probed": probing, "title": f"{base_url}, {answers.title}"}
    return source, known_from_answers(answers, probed)


async def _probe(base_url: str, key: str | None) -> Probe:
    PROGRESS.print(
        f"sending {PROMPTS} plain prompts for up to {OUTPUT_TOKENS} tokens each, one after the other", markup=False
    )
    prompts = PromptStream(open_workload("builtin:mixed"), seed=PROBE_SEED).take(PROMPTS)
    texts = ["\n".join(prompt.content) for prompt in prompts]
    told = TimeLeft(len(texts), "prompts answered")
    try:
        return await probe(base_url, authorization(key), texts, output_tokens=OUTPUT_TOKENS, told=told)
    except ProbeFailedError as error:
        raise SpectuneError(f"{base_url}: a probe failed: {error}") from error


def _key(variable: str | None) -> str | None:
    """The API key; never shown.

    Raises:
        SpectuneError: When a variable is named and not set.
    """
    if variable is not None and not os.environ.get(variable):
        raise SpectuneError(f"--api-key-env names {variable!r}, but that variable is not set")
    return os.environ.get(variable or KEY_VARIABLE) or None


def _server(known: Running) -> Mapping[str, Any]:
    """What is known, as JSON values; a `Running` holds no secrets."""
    return {name: value for name, value in asdict(known).items() if name != "loads"} | {
        "loads": [{**asdict(load), "cycle_ms": load.cycle_ms} for load in known.loads]
    }
