from __future__ import annotations

import pytest
from machine_samples import gpu, gpus

from spectune.machine import GpuProcess, Gpus, holders, memory_not_back, overview, visible

EIGHT = gpus().devices


@pytest.mark.parametrize(
    ("variable", "numbers"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("", []),
        ("3,1", [3, 1]),
        (" 2 , 5 ", [2, 5]),
        ("0,9,1", [0]),  # CUDA stops at the first entry that is no device
        ("-1", []),
        ("1,-1,2", [1]),
        ("GPU-00000006,0", [6, 0]),
        ("GPU-0", []),  # stands for more than one
        ("2,2,3", [2]),  # CUDA stops at one that stands there already
    ],
)
def test_cuda_visible_devices(variable: str | None, numbers: list[int]) -> None:
    assert [one.index for one in visible(EIGHT, variable)] == numbers


def test_slices_are_known_by_their_names_alone() -> None:
    shown = visible(EIGHT, "MIG-a,MIG-GPU-1/2/0,MIG-a,0")
    assert [one.called for one in shown] == ["MIG-a", "MIG-GPU-1/2/0"]
    assert [one.called for one in visible(EIGHT, "GPU-00000006")] == ["6"]


def test_memory_is_back_when_only_the_drivers_own_is_left() -> None:
    before = gpus(gpu(0, memory_used_mib=600))
    assert memory_not_back(before, gpus(gpu(0, memory_used_mib=900))) == {}
    assert memory_not_back(before, gpus(gpu(0, memory_used_mib=101_000))) == {"GPU-00000000": 100_400}
    assert memory_not_back(before, gpus(gpu(0, memory_used_mib=None))) == {}
    assert memory_not_back(Gpus(problem="none"), Gpus(problem="none")) == {}


def test_a_process_on_several_gpus_is_one_holder() -> None:
    one, other = GpuProcess(5, None, 100), GpuProcess(5, "train", 50)
    assert holders([gpu(0, processes=(one,)), gpu(1), gpu(3, processes=(other,))]) == {
        GpuProcess(5, "train", 150): [0, 3]
    }


def test_an_overview_of_any_environment() -> None:
    assert overview({"schema": 1, "cpu": "EPYC", "libraries": {"optuna": "5"}, "boot_id": "x"}) == [
        ("cpu", "EPYC"),
        ("libraries", "optuna 5"),
    ]
    assert overview({}) == []
    for damaged in ({"gpus": 5}, {"gpus": {"devices": [3]}}, {"host": [], "software": {"nccl_files": [1]}}):
        assert isinstance(overview({"schema": 2, **damaged}), list)
