"""What each attention backend runs on, and that the ways out which name one lead out."""

from __future__ import annotations

import itertools
import re

import pytest
from resolver_runs import model_of

from spectune.engines.sglang.options import Options
from spectune.engines.sglang.resolution import MACHINES, Model, resolve
from spectune.engines.sglang.rules.kernels import KERNELS

DENSE = model_of("llama")
LATENT = Model.from_config({"architectures": ["DeepseekV3ForCausalLM"], "kv_lora_rank": 512})
TREE = {
    "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "d", "speculative-num-steps": 3,
    "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8,
}  # fmt: skip
CHAIN = {**TREE, "speculative-eagle-topk": 1, "speculative-num-draft-tokens": 4}
MODELS = {
    "dense": DENSE, "mla": LATENT, "gptoss": model_of("gptoss"), "unknown": Model.unknown(),
    "gemma": Model.from_config({"architectures": ["Gemma4ForCausalLM"]}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("gpu", "model", "backend", "dies"),
    [
        ("b200", DENSE, "fa3", True),
        ("rtx-pro-6000", DENSE, "fa3", True),
        ("h200", DENSE, "fa3", False),
        ("h200", LATENT, "fa3", False),
        ("h200", DENSE, "fa4", False),
        ("b200", LATENT, "fa4", False),
        ("h200", LATENT, "fa4", True),
        ("h200", DENSE, "flashmla", True),
        ("h200", LATENT, "flashmla", False),
        ("b200", LATENT, "flashmla", True),
        ("b200", DENSE, "trtllm_mla", True),
        ("b200", LATENT, "trtllm_mla", False),
        ("b200", LATENT, "trtllm_mha", True),
        ("b200", DENSE, "trtllm_mha", False),
        ("h100", Model.unknown(), "flashmla", False),
        ("b200", Model.unknown(), "flashmla", True),
        ("h200", DENSE, "aiter", True),
        ("h200", DENSE, "intel_amx", True),
        ("cpu", DENSE, "flashinfer", True),
        ("cpu", DENSE, "intel_amx", False),
        ("h200", DENSE, "hpc_ops", False),
        ("b200", DENSE, "hpc_ops", True),
    ],
)
def test_backends_without_kernels_die_later(gpu: str, model: Model, backend: str, dies: bool) -> None:
    resolution = resolve({"attention-backend": backend}, model=model, draft=None, machine=MACHINES[gpu])
    found = [finding for finding in resolution.findings if finding.rule == "attention-kernels"]
    assert bool(found) == dies, resolution.findings
    if found:
        assert found[0].severity == "fatal"
        assert resolution.status == "warning"
        assert backend in found[0].message


def test_the_draft_backend_needs_kernels_too() -> None:
    launch = {**CHAIN, "speculative-draft-attention-backend": "fa3"}
    (found,) = [
        finding
        for finding in resolve(launch, model=DENSE, draft=None, machine=MACHINES["b200"]).findings
        if finding.severity == "fatal"
    ]
    assert found.message == "the draft attention backend fa3 runs on Hopper (SM90) only, not on Blackwell (SM100)"


def test_of_an_unknown_model_only_what_serves_either_kind_is_advised() -> None:
    launch = {"attention-backend": "fa3"}
    (found,) = resolve(launch, model=Model.unknown(), draft=None, machine=MACHINES["b200"]).findings
    assert found.advice == "attention-backend flashinfer, fa4 or triton"


CASES = itertools.product(MACHINES, MODELS, ({}, CHAIN, TREE), (None, 1, 16), KERNELS)
ADVISED = re.compile(r"attention[- ]backend ([a-z0-9_, ]+)|([a-z0-9_, ]+) as attention backend")


def test_backends_that_are_advised_live() -> None:
    known = set(Options.shipped().by_name["attention-backend"].choices or ())
    advised = 0
    for gpu, model, draft, page, backend in CASES:
        launch = {**draft, "page-size": page}

        def fatal(named: str, gpu: str = gpu, model: str = model, launch: dict[str, object] = launch) -> list[str]:
            machine, target = MACHINES[gpu], MODELS[model]
            found = resolve({**launch, "attention-backend": named}, model=target, draft=None, machine=machine).findings
            return [f"{one.rule}: {one.advice}" for one in found if one.severity == "fatal"]

        for way_out in fatal(backend):
            for word in set(re.findall(r"[a-z0-9_]+", " ".join(map(" ".join, ADVISED.findall(way_out))))) & known:
                advised += 1
                assert fatal(word) == [], (gpu, model, launch, backend, way_out)
    assert advised > 1000
