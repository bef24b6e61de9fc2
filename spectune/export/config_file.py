"""The launch as a file for SGLang's `--config`."""

from __future__ import annotations

import shlex
from typing import Any

import yaml

from spectune.engines.address import DEFAULT_PORT, LOOPBACK
from spectune.export.header import Origin, comment, environment_comment, header
from spectune.export.launch import Launch, Option
from spectune.search.storage.records import TrialRecord

NOT_IN_CONFIG = frozenset(
    {
        "dcp-replicate-q-proj", "disable-cuda-graph", "dllm-fdfo", "enable-decoder-swa-bounded-replay",
        "enable-dp-attention", "enable-dsa-fused-indexer", "enable-fused-qk-norm-rope", "enable-tf32-matmul",
        "enable-tp-lm-head-all-to-all", "experts-shared-outer-loras", "lora-paths", "lora-strict-loading",
        "mm-enable-dp-encoder", "no-dcp-replicate-q-proj", "no-dllm-fdfo", "no-enable-decoder-swa-bounded-replay",
        "no-enable-dsa-fused-indexer", "no-enable-fused-qk-norm-rope", "no-enable-tf32-matmul",
        "no-enable-tp-lm-head-all-to-all", "no-experts-shared-outer-loras", "no-lora-strict-loading",
        "no-mm-enable-dp-encoder", "no-ple-offload-embedding", "no-speculative-enable-w4a4-mxfp4-megamoe",
        "ple-offload-embedding", "speculative-enable-w4a4-mxfp4-megamoe",
    }
)  # fmt: skip
"""Arguments SGLang 0.5.23 takes on the command line and refuses in a file (`ConfigArgumentMerger`)."""


def config_file(record: TrialRecord, launch: Launch, origin: Origin, *, file_name: str) -> str:
    """Return YAML that SGLang turns back into exactly the words of the launch.

    SGLang writes each entry as `--key` followed by `str(value)`: true becomes a bare switch, a list several words.
    """
    inside = [option for option in launch.options if option.name not in NOT_IN_CONFIG]
    outside = shlex.join(word for option in launch.options if option.name in NOT_IN_CONFIG for word in option.words)
    entries: dict[str, Any] = {option.name: _value(option) for option in inside}
    entries |= {"host": LOOPBACK, "port": DEFAULT_PORT}
    start = f"start: {shlex.join(launch.program)} --config {file_name} {outside}"
    lines = [*header(record, launch, origin), *environment_comment(launch), comment(start)]
    body = yaml.safe_dump(entries, sort_keys=False, default_flow_style=None, width=1000)
    return "\n".join([*lines, body])


def _value(option: Option) -> Any:
    if not option.values:
        return True
    values = [_plain(word) for word in option.values]
    return values[0] if len(values) == 1 else values


def _plain(word: str) -> str | int | float:
    """Return a number where it is written back as the same word, the word itself otherwise."""
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        if str(number) == word and yaml.safe_load(yaml.safe_dump(number)) == number:
            return number
    return word
