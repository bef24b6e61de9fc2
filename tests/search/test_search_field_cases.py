"""Reports from the field as launches on the simulated engine: each ends in the right class with the right advice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from search_samples import baseline, chain, engine, record, space
from search_simulated import Silent, launch, write

from spectune.engines.open import open_engine
from spectune.errors import SpectuneError
from spectune.search import Status, StudyFolder, TrialRecord, open_study, run_study
from spectune.search.answer.summary import summarise
from spectune.search.launch.virtual import VirtualLaunch
from spectune.search.planning.plan import Stop
from spectune.search.proposing.exclusions import excluded, learned
from spectune.serving import Teardown
from spectune.space import Candidate, load_space

NEXTN = {
    "speculative-algorithm": "NEXTN", "speculative-num-steps": 4, "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 5,
}  # fmt: skip


def sized(steps: int, sizes: tuple[int, ...], fraction: float = 0.8) -> Candidate:
    values = {**chain(steps, "org/drafter").values, "cuda-graph-bs-decode": sizes, "mem-fraction-static": fraction}
    del values["env.NCCL_PROTO"]
    return Candidate.of(values)


def failed(record: TrialRecord) -> tuple[str, str]:
    assert record.failure is not None
    assert record.levels == ()
    return record.failure.failure_class.value, record.failure.message


def test_an_mtp_head_that_is_never_right(tmp_path: Path) -> None:
    """vllm#55605: position 0 accepts 1 to 2 % even of repetitive text, by quantization, not by the drafter."""
    file = write(tmp_path, profile={"acceptance": {"default": [0.02, 0.01]}})
    kind, message = failed(launch(file, Candidate.of(NEXTN)))
    assert kind == "drafter"
    assert "accept length 1.0" in message
    assert "(1) the checkpoint has no MTP layers of its own, or lost them when it was quantized" in message


def test_graphs_that_do_not_fit_exclude_larger_ones_only(tmp_path: Path) -> None:
    """sglang#3430, sglang#2863: capture runs out of memory; half the batch fits, and graphs are not given up."""
    # 14 GB of 80 are left for graphs: 32 × 4 tokens × 100 MB fit, 64 × 4 do not.
    file = write(tmp_path, profile={"graphs": {"mb_per_token": 100, "reserve_gb": 2}})
    large = launch(file, sized(3, (64,)))
    kind, message = failed(large)
    assert kind == "memory"
    assert "halve cuda-graph-max-bs-decode, then lower mem-fraction-static" in message
    found = learned([large])
    assert excluded(sized(4, (64,)), found) is not None
    assert excluded(sized(3, (32,)), found) is None
    assert excluded(sized(3, (64,), 0.7), found) is None
    assert launch(file, sized(3, (32,)), number=1).status is Status.OK


def test_a_large_drafter_leaves_nothing_for_the_cache(tmp_path: Path) -> None:
    """sglang#6875: free memory is counted after the target alone; the fraction is part of the search."""
    draft: dict[str, Any] = {"weights_gb": 60, "step_ms": {"graph": 0.2, "eager": 0.4}, "token_ms": 0.01}
    file = write(tmp_path, profile={"draft": draft})
    little = launch(file, sized(3, (1, 2, 4), 0.6))
    kind, message = failed(little)
    assert kind == "memory"
    assert "nothing is left for the KV cache (raise mem-fraction-static" in message
    assert excluded(sized(3, (1, 2, 4), 0.5), learned([little])) is not None
    assert excluded(sized(3, (1, 2, 4), 0.8), learned([little])) is None
    fitting = launch(file, sized(3, (1, 2, 4), 0.8), number=1)
    assert fitting.effective.kv_tokens == 140_000


def test_a_launch_that_dies_under_load_is_never_recommended(tmp_path: Path) -> None:
    """sglang#10090: STANDALONE dies after one to two thousand requests; sglang#22679: at the first real replay."""
    fault = {"when": {"speculation": True}, "at": "bench", "kind": "crash"}
    died = launch(write(tmp_path, profile={"faults": [fault]}), sized(2, (1, 2, 4)))
    assert failed(died)[0] == "crash"
    summary = summarise([record(0, baseline()), died], space(), Stop("enough"), name="s", engine="e").to_json()
    assert summary["recommended"]["trial"] == 0
    assert summary["failures"] == {"crash": 1}


def test_a_value_of_nccl_under_which_launches_hang(tmp_path: Path) -> None:
    """sglang#1270: tensor parallelism hangs now and then; which values do is counted, and learned from three."""
    fault = {"when": {"env.NCCL_ALGO": "Tree"}, "at": "bench", "kind": "hang"}
    file = write(tmp_path, profile={"faults": [fault]})
    tree = Candidate.of({**sized(2, (1, 2, 4)).values, "env.NCCL_ALGO": "Tree"})
    first = launch(file, tree)
    assert failed(first)[0] == "hang"
    others = [replace(launch(file, tree, number=n), trial=n) for n in (1, 2)]
    assert learned([first, others[0]]) == []
    (found,) = learned([first, *others])
    assert found.words == "NCCL_ALGO=Tree failed in 3 of 3 launches"


def test_what_helps_one_parallelism_is_judged_against_the_best_of_all() -> None:
    """sglang#6949: QwQ-32B, 21 → 30 tok/s with one GPU and 61 → 59 with four: four without speculation it is."""

    def on(tp: int, candidate: Candidate) -> Candidate:
        return Candidate.of({**candidate.values, "tp-size": tp})

    one = [record(0, on(1, baseline()), 21.0), record(1, on(1, chain(3)), 30.0, accept=2.2)]
    four = [record(2, on(4, baseline()), 61.0), record(3, on(4, chain(3)), 59.0, accept=2.2)]

    def verdict(records: list[TrialRecord]) -> tuple[str, int]:
        found = summarise(records, space(), Stop("enough"), name="s", engine="e").to_json()
        return found["verdict"], found["recommended"]["trial"]

    assert verdict(one) == ("speculation", 1)
    assert verdict(four)[1] == 2
    assert verdict([*one, *four])[1] == 2


def test_baseline_and_candidate_share_what_decides_about_memory() -> None:
    """sglang#22986: a comparison is one only at the same running requests and memory fraction, both written out."""
    on_gpus = replace(engine(), fixed={"model-path": "org/model", "attention-backend": "triton"}, gpus=8)
    lines = [on_gpus.command(c, host="h", port=1).argv for c in (baseline(), chain(3))]
    for option in ("--max-running-requests", "--mem-fraction-static", "--chunked-prefill-size", "--page-size"):
        first, second = (argv[argv.index(option) + 1] for argv in lines)
        assert first == second


def test_a_process_that_cannot_be_ended_stops_the_study_and_not_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """unsloth#3331: a process stuck in the driver; nothing may be measured beside it, and nothing is lost."""
    file = write(tmp_path, budget={"trials": 3})
    loaded = load_space(file)
    folder = StudyFolder(tmp_path / "studies/sim")
    folder.root.mkdir(parents=True)
    open_study(folder, loaded, open_engine(loaded))

    def run() -> list[TrialRecord]:
        return list(asyncio.run(run_study(folder, loaded, open_engine(loaded), Silent())).records)

    async def stuck(launch: VirtualLaunch, grace_s: float) -> Teardown:
        return Teardown(left=2, forced=True, seconds=60.0)

    with monkeypatch.context() as wedged:
        wedged.setattr(VirtualLaunch, "stop", stuck)
        with pytest.raises(SpectuneError, match=r"2 engine processes of trial 0 cannot be ended.*run the same command"):
            run()
    assert folder.records() == []
    assert [r.trial for r in run()] == [0, 1, 2]
