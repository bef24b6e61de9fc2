"""What counts as a change of the machine, and what always varies."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_samples import gpu, machine

from spectune.machine import Difference, Gpu, GpuProcess, MachineWatch, differences, take_fingerprint, throttling
from spectune.machine.differences import without_gpus
from spectune.machine.software import ConfigFile

NCCL_CONF = ConfigFile("/etc/nccl.conf", "abc", ("NCCL_ALGO",))
LEAVES = st.none() | st.integers() | st.text(max_size=5)
KEYS = st.sampled_from(["gpus", "devices", "software", "nccl_files", "host", "uuid", "throttle", "processes", "pid"])
FIRST = "gpus.devices.GPU-00000000"


def changes(before: Any, after: Any) -> dict[str, bool]:
    """Field → whether it matters, through the JSON that lies on disk."""
    kept = json.loads(json.dumps(before.to_json()))
    return {change.field: change.matters for change in differences(kept, after.to_json())}


def test_a_machine_does_not_differ_from_itself() -> None:
    assert changes(machine(), machine()) == {}
    assert differences(take_fingerprint().to_json(), take_fingerprint().to_json()) == []


def test_what_always_varies_is_no_difference() -> None:
    busy = gpu(
        0,
        temperature_c=83,
        memory_used_mib=120_000,
        sm_mhz=1700,
        power_w=640.0,
        throttle=(),
        throttled_ms={"thermal": 5},
    )
    later = replace(
        machine(busy, host={"available_gib": 3.0, "swap_used_gib": 0.1}), taken_at="2026-01-01T00:00:00+00:00"
    )
    assert changes(machine(), later) == {}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (gpu(0, power_limit_w=500.0), "power_limit_w"),
        (gpu(0, max_sm_mhz=1500), "max_sm_mhz"),
        (gpu(0, application_sm_mhz=1200), "application_sm_mhz"),
        (gpu(0, pcie_width=8), "pcie_width"),
        (gpu(0, pcie_gen=4, throttle=()), "pcie_gen"),
        (gpu(0, throttle=("hw_slowdown",)), "throttle"),
        (gpu(0, throttle=("sw_thermal_slowdown",)), "throttle"),
        (gpu(0, throttle=("hw_power_brake", "hw_slowdown")), "throttle"),
        (gpu(0, processes=(GpuProcess(77, "python3", 40_000),)), "processes"),
        (gpu(0, problem="GPU is lost"), "problem"),
        (gpu(0, mig=True), "mig"),
    ],
)
def test_what_slows_a_gpu_matters(changed: Gpu, field: str) -> None:
    assert changes(machine(), machine(changed)) == {f"{FIRST}.{field}": True}


@pytest.mark.parametrize(
    ("host", "software", "field"),
    [
        ({"governor": "powersave"}, {}, "host.governor"),
        ({"boot_id": "two"}, {}, "host.boot_id"),
        ({"bound_to": "0-31"}, {}, "host.bound_to"),
        ({}, {"engine": "SGLang 0.5.22"}, "software.engine"),
        ({}, {"packages": {"sglang": "0.5.23", "torch": "2.9.0"}}, "software.packages.torch"),
        ({}, {"nccl_files": (NCCL_CONF,)}, "software.nccl_files./etc/nccl.conf.digest"),
        ({}, {"variables": {"NCCL_ALGO": "Tree"}}, "software.variables.NCCL_ALGO"),
        ({}, {"sitecustomize": "/usr/lib/python3/sitecustomize.py"}, "software.sitecustomize"),
    ],
)  # fmt: skip
def test_what_changes_the_engine_matters(host: dict[str, Any], software: dict[str, Any], field: str) -> None:
    after = machine(host=host, software=software)
    assert changes(machine(), after) == {field: True}
    assert changes(machine(), machine()) == {}


def test_a_driver_update_and_a_lost_gpu_matter() -> None:
    after = machine()
    after = replace(after, gpus=replace(after.gpus, driver="580.1", devices=after.gpus.devices[:-1]))
    assert changes(machine(), after) == {"gpus.driver": True, "gpus.devices.GPU-00000007": True}


def test_an_idle_link_and_a_power_cap_at_the_default_limit_do_not_matter() -> None:
    assert changes(machine(), machine(gpu(0, pcie_gen=1))) == {}
    assert changes(machine(), machine(gpu(0, throttle=("sw_power_cap",)))) == {f"{FIRST}.throttle": False}
    low = gpu(0, power_limit_w=500.0)
    capped = replace(low, throttle=("sw_power_cap",))
    assert changes(machine(low), machine(capped)) == {f"{FIRST}.throttle": True}


def test_a_link_that_woke_up_and_a_stranger_that_left_are_no_harm() -> None:
    before = machine(gpu(0, pcie_gen=1, processes=(GpuProcess(77, "x"),), throttle=("hw_slowdown", "gpu_idle")))
    assert changes(before, machine()) == {}


def test_gpus_are_known_by_uuid_not_by_number() -> None:
    before = machine(gpu(0, uuid="GPU-b"), gpu(1, uuid="GPU-a", power_limit_w=500.0))
    after = machine(gpu(0, uuid="GPU-a", power_limit_w=500.0), gpu(1, uuid="GPU-b"))
    assert changes(before, after) == {}


def test_what_one_side_does_not_know_is_no_difference() -> None:
    blind = machine(gpu(0, power_limit_w=None, pcie_width=None, processes=None, throttle=None))
    assert changes(blind, machine()) == changes(machine(), blind) == {}
    assert changes(machine(), machine(software={"packages": {}, "engine": None})) == {}  # the quick one asks no engine


def test_time_spent_throttled_is_counted_within_a_launch() -> None:
    before, after = (
        machine(),
        machine(gpu(0, throttled_ms={"power": 9000, "thermal": 2500}), gpu(1, throttled_ms={"thermal": 50})),
    )
    found = throttling(before.to_json(), after.to_json())
    assert {change.field: change.matters for change in found} == {
        f"{FIRST}.throttled_ms.power": False,
        f"{FIRST}.throttled_ms.thermal": True,
    }


def test_what_happens_on_the_gpus_of_others_is_left_out() -> None:
    before, after = machine(), machine(gpu(0, power_limit_w=300.0), gpu(5, power_limit_w=300.0))
    kept = [json.loads(json.dumps(one.to_json())) for one in (before, after)]
    assert len(differences(*kept)) == 2
    others = {f"GPU-0000000{index}" for index in range(4)}
    (change,) = differences(*(without_gpus(one, others) for one in kept))
    assert change.field == "gpus.devices.GPU-00000005.power_limit_w"
    assert without_gpus(kept[0], ()) is kept[0]
    assert without_gpus({"gpus": 3}, {"x"}) == {"gpus": {"devices": []}}


@given(st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)))
def test_a_damaged_file_never_stops_a_launch(damaged: Any) -> None:
    before = (
        {"schema": 2, **damaged} if isinstance(damaged, dict) else {"schema": 2, "gpus": damaged, "software": damaged}
    )
    differences({**before, "schema": 2}, machine().to_json())


def test_files_of_an_older_spectune_give_no_differences() -> None:
    assert differences({"schema": 1, "gpus": 8}, machine().to_json()) == []
    assert MachineWatch({}).changes == ()


def test_a_difference_reads_well() -> None:
    change = Difference("host.governor", "performance", "powersave", matters=True, why="slower")
    assert str(change) == "host.governor: performance → powersave (slower)"
    assert "python3 (pid 7)" in str(Difference("x", None, {"pid": 7, "name": "python3"}, matters=True))
