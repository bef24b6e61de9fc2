"""Every line that SGLang's own resolver answered, answered the same without SGLang."""

from __future__ import annotations

import pytest
from resolver_runs import Run, runs

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
