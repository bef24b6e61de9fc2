"""Sizes that a model, a machine or a network does not have, and arguments that do nothing."""

from __future__ import annotations

from typing import Any

import pytest
from resolver_runs import model_of

from spectune.engines.sglang.resolution import MACHINES, Model, Resolution, resolve

LLAMA = model_of("llama")  # 32 heads, 8 for keys and values, 131072 positions
LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"


def asked(arguments: dict[str, Any], model: Model = LLAMA, gpu: str = "h200", **others: Any) -> Resolution:
    return resolve(arguments, model=model, draft=None, machine=MACHINES[gpu], **others)


def rules(resolution: Resolution) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in resolution.findings}


@pytest.mark.parametrize(
    ("arguments", "rule", "severity"),
    [
        ({"tp-size": 3}, "heads-divide", "fatal"),
        ({"tp-size": 64, "nnodes": 8}, "heads-divide", "fatal"),
        ({"context-length": 0}, "empty-context", "fatal"),
        ({"context-length": 10**7}, "context-beyond-model", "fatal"),
        ({"port": 99999}, "port-range", "fatal"),
        ({"mem-fraction-static": 1.5}, "memory-fraction-bounds", "fatal"),
        ({"tp-size": 16, "nnodes": 3}, "nodes-divide", "fatal"),
        ({"tp-size": 16}, "gpus-of-a-machine", "warning"),
        ({"tp-size": 8, "dp-size": 2}, "gpus-of-a-machine", "warning"),
        ({"max-running-requests": 0}, "no-running-requests", "warning"),
        ({"enable-dp-attention": True, "tp-size": 8}, "dp-attention-alone", "warning"),
        ({"speculative-draft-model-path": "d"}, "unused-speculation", "warning"),
    ],
)
def test_what_does_not_work_is_said(arguments: dict[str, Any], rule: str, severity: str) -> None:
    resolution = asked(arguments)
    found = [finding for finding in resolution.findings if finding.severity != "info"]
    assert [(finding.rule, finding.severity) for finding in found] == [(rule, severity)]
    assert found[0].advice
    assert resolution.status == ("rejected" if rule in {"context-beyond-model", "nodes-divide"} else "warning")


@pytest.mark.parametrize(
    "arguments",
    [
        {"tp-size": 16, "nnodes": 2},
        {"tp-size": 32, "nnodes": 4},
        {"tp-size": 8, "dp-size": 8, "enable-dp-attention": True},
        {"tp-size": 6, "attn-dp-size": 3},
        {"context-length": 131072},
        {"port": 30000, "max-running-requests": 1},
        {"speculative-algorithm": "NGRAM", "max-running-requests": 8},
    ],
)
def test_what_works_is_let_pass(arguments: dict[str, Any]) -> None:
    assert set(rules(asked(arguments)).values()) <= {"info"}


def test_longer_contexts_where_something_allows_them() -> None:
    for on in ("1", "true", "Yes", "y"):
        assert asked({"context-length": 10**6}, env={LONGER: on}).status == "ok"
    for value in ("0", "no", "t", " 1", ""):  # what SGLang cannot read leaves its default
        assert asked({"context-length": 10**6}, env={LONGER: value}).status == "rejected"
    assert asked({"context-length": 10**6}, Model.unknown()).status == "ok"
    for scaling, most in (
        ({"rope_type": "yarn", "factor": 4.0}, 4 * 131072),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"rope_type": "llama3", "factor": 8.0}, 131072),
    ):
        model = Model.from_config({**LLAMA.config, "rope_scaling": scaling})
        assert asked({"context-length": most}, model).status == "ok"
        assert asked({"context-length": most + 1}, model).status == "rejected"


def test_cpus_pad_their_heads() -> None:
    assert "heads-divide" not in rules(asked({"tp-size": 3}, gpu="cpu"))


def test_latent_attention_has_no_key_value_heads_to_share() -> None:
    config = {"architectures": ["DeepseekV3ForCausalLM"], "num_attention_heads": 48, "num_key_value_heads": 5}
    assert "heads-divide" not in rules(asked({"tp-size": 8}, Model.from_config(config)))


def test_the_cap_under_speculation_is_told_with_what_graphs_are_sized_for() -> None:
    (found,) = [finding for finding in asked({"speculative-algorithm": "NGRAM"}).findings if "caps" in finding.message]
    assert found.message == (
        "SGLang caps running requests at 48 under speculation, but sizes graphs and memory for 256"
    )
    assert "set max-running-requests to what you need" in found.advice
