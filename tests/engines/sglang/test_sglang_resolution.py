"""Every line that SGLang's own resolver answered, answered the same without SGLang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from resolver_runs import Run, model_of, runs

from spectune.engines.sglang.resolution import MACHINES, Model, Resolution, resolve

EXACT = (
    "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "attention_backend", "page_size", "max_running_requests", "chunked_prefill_size", "attn_dp_size", "dp_size",
)  # fmt: skip


@pytest.mark.parametrize("run", runs(), ids=lambda run: run.case)
def test_ours_is_sglangs_answer(run: Run) -> None:
    ours = run.ours()
    if run.error is not None:
        assert ours.status == "rejected", ours
        assert ours.findings[-1].message.startswith(run.error)
        return
    assert run.resolved is not None
    assert ours.status != "rejected", ours.findings
    for name in EXACT:
        assert ours.resolved.get(name) == run.resolved.get(name, ZERO_LEFT_OUT.get((run.case, name))), name
    assert ours.resolved["mem_fraction_static"] == pytest.approx(run.resolved["mem_fraction_static"], abs=0.0005)
    graph, theirs = ours.resolved["decode_cuda_graph"], run.resolved["decode_cuda_graph"]
    assert {name: graph[name] for name in theirs} == theirs


# The file leaves out what is falsy.
ZERO_LEFT_OUT = {
    ("0,1,1", "speculative_num_steps"): 0,
    ("neg", "speculative_num_draft_tokens"): 0,
}


LLAMA = model_of("llama")
CHAIN = {
    "model-path": "m",
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "d",
    "speculative-num-steps": 3,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 4,
}


def ask(change: dict[str, Any], machine: str = "h200", model: Model = LLAMA, **env: str) -> Resolution:
    return resolve({**CHAIN, **change}, model=model, draft=None, machine=MACHINES[machine], env=env)


def said(resolution: Resolution) -> dict[str, str]:
    return {finding.rule: finding.severity for finding in resolution.findings}


def test_what_resolves_and_dies_is_a_warning_with_a_fatal_finding() -> None:
    found = ask({"speculative-eagle-topk": 2, "speculative-num-draft-tokens": 99})
    assert found.status == "warning"
    assert found.fatal
    assert said(found)["tree-bounds"] == "fatal"


def test_a_refusal_ends_it_as_it_ends_sglang() -> None:
    found = ask({"speculative-eagle-topk": 2, "attention-backend": "trtllm_mha", "pp-size": 2})
    assert found.status == "rejected"
    assert found.findings[-1].rule == "topk-trtllm-mha"
    assert "topk = 1" in found.findings[-1].message
    assert found.findings[-1].advice


def test_a_clean_launch_is_ok() -> None:
    assert ask({"max-running-requests": 48}).status == "ok"


def test_tree_alone_for_nccl_is_named_with_the_way_out() -> None:
    found = ask({"tp-size": 8, "max-running-requests": 48}, NCCL_ALGO="Tree")
    assert said(found)["nccl-tree"] == "warning"
    assert "allreduce:tree" in next(f.advice for f in found.findings if f.rule == "nccl-tree")
    assert "nccl-tree" not in said(ask({"tp-size": 8}, NCCL_ALGO="allreduce:tree"))
    assert "nccl-tree" not in said(ask({}, NCCL_ALGO="Tree"))


def test_automatic_numbers_are_not_the_same_numbers_written_out() -> None:
    left_out = dict.fromkeys(("speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens"))
    written = {"speculative-num-steps": 5, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8}
    automatic, explicit = ask(left_out), ask(written)
    assert (automatic.resolved["attention_backend"], explicit.resolved["attention_backend"]) == ("fa3", "flashinfer")
    assert said(automatic)["incomplete-draft"] == "warning"
    blackwell = {"speculative-num-steps": 3, "speculative-eagle-topk": 1, "speculative-num-draft-tokens": 4}
    assert ask(left_out, "b200").resolved["page_size"] == 1
    assert ask(blackwell, "b200").resolved["page_size"] == 64


def test_running_requests_left_out_are_not_48() -> None:
    left_out, written = ask({"tp-size": 8}), ask({"tp-size": 8, "max-running-requests": 48})
    assert left_out.resolved["max_running_requests"] == written.resolved["max_running_requests"] == 48
    assert left_out.resolved["decode_cuda_graph"]["max_bs"] == 512
    assert left_out.resolved["mem_fraction_static"] < written.resolved["mem_fraction_static"]


def test_pages_without_a_named_backend_change_the_backend() -> None:
    assert ask({"page-size": 1}).resolved["attention_backend"] == "fa3"
    assert ask({"page-size": 16}).resolved["attention_backend"] == "flashinfer"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"speculative-num-draft-tokens": 16}, {"speculative-num-draft-tokens": None}),
        ({"speculative-algorithm": "eagle3"}, {}),
        ({"speculative-algorithm": "NEXTN"}, {"speculative-algorithm": "EAGLE"}),
        ({"speculative-draft-model-revision": "main"}, {}),
        ({"attention-backend": "fa3"}, {}),
        ({"page-size": 1}, {}),
        ({"chunked-prefill-size": 8192}, {}),
        ({"tp-size": 8, "attn-dp-size": 8}, {"tp-size": 8, "dp-size": 8, "enable-dp-attention": True}),
        ({"tensor-parallel-size": 8}, {"tp-size": 8}),
        ({"cuda-graph-bs-decode": [1, 4], "cuda-graph-max-bs-decode": 64}, {"cuda-graph-bs-decode": [1, 4]}),
    ],
)
def test_what_is_the_same_engine(one: dict[str, Any], other: dict[str, Any]) -> None:
    echoes = {"cuda_graph_max_bs_decode"}
    first, second = ask(one).resolved, ask(other).resolved
    assert {k: v for k, v in first.items() if k not in echoes} == {k: v for k, v in second.items() if k not in echoes}


def test_gpt_oss_with_branches_dies_on_blackwell_and_not_on_hopper() -> None:
    tree = {"speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8}
    assert ask(tree, "b200", model_of("gptoss")).status == "rejected"
    assert ask(tree, "h200", model_of("gptoss")).resolved["attention_backend"] == "fa3"


def test_of_an_unknown_model_only_arguments_are_judged() -> None:
    found = ask({"speculative-draft-model-path": None}, model=Model.unknown())
    assert "no-drafter" not in said(found)
    assert said(ask({"speculative-draft-model-path": None}))["no-drafter"] == "fatal"


def test_a_standalone_drafter_needs_the_targets_vocabulary() -> None:
    launch = {**CHAIN, "speculative-algorithm": "STANDALONE"}
    drafter = Model.from_config({"architectures": ["LlamaForCausalLM"], "vocab_size": 7})
    found = resolve(launch, model=LLAMA, draft=drafter, machine=MACHINES["h100"])
    assert said(found)["standalone-vocabulary"] == "fatal"


@pytest.mark.parametrize("written", ["{", "[1]", '{"warmup": {}}'])
def test_graph_settings_that_are_not_json_are_refused(written: str) -> None:
    assert ask({"cuda-graph-config": written}).status == "rejected"


def test_graph_settings_as_json_win() -> None:
    found = ask({"cuda-graph-config": '{"decode": {"max_bs": 24}}', "cuda-graph-max-bs-decode": 64})
    assert found.resolved["decode_cuda_graph"]["max_bs"] == 24


@pytest.mark.parametrize("config", [{}, {"architectures": []}, {"architectures": None}, {"text_config": 3}])
def test_a_config_that_says_nothing_is_an_unknown_model(config: dict[str, Any]) -> None:
    assert Model.from_config(config).architecture is None


def test_a_folder_without_a_readable_config_is_an_unknown_model(tmp_path: Path) -> None:
    assert Model.from_folder(tmp_path) == Model.unknown()
    (tmp_path / "config.json").write_text("{")
    assert Model.from_folder(tmp_path) == Model.unknown()
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    assert Model.from_folder(tmp_path).architecture == "LlamaForCausalLM"
