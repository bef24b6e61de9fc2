"""GPUs read through the real nvidia-ml-py from a driver library found by the real loader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_driver import FakeDriver, compiled
from readme_commands import SPECTUNE
from two_gpus import write_study

pytestmark = pytest.mark.services
NOT_SUPPORTED, LOST, MISMATCH, NOT_LOADED, UNKNOWN = 3, 15, 18, 9, 999


def test_everything_a_healthy_driver_tells(driver: FakeDriver) -> None:
    driver.says(
        "count 2", "1.name NVIDIA L4", "throttle 68", "violation_ms_1 1234", f"0.processes {os.getpid()}:2048,4000000:7"
    )
    gpus = driver.gpus()
    assert (gpus["driver"], gpus["cuda"], gpus["problem"]) == ("570.124.06", "12.8", None)
    first, second = gpus["devices"]
    assert (first["name"], second["name"]) == ("NVIDIA H200", "NVIDIA L4")
    assert first["uuid"] == "GPU-00000000-aaaa"
    assert first["pci"] == "00000000:1b:00.0"
    assert (first["memory_total_mib"], first["memory_used_mib"]) == (143771, 4)
    assert (first["max_sm_mhz"], first["max_memory_mhz"], first["application_sm_mhz"]) == (1980, 3201, 1980)
    assert (first["power_limit_w"], first["default_power_limit_w"]) == (700, 700)
    assert first["throttle"] == ["sw_power_cap", "hw_thermal_slowdown"]
    assert first["throttled_ms"] == {"power": 0, "thermal": 1234, "board": 0, "reliability": 0}
    assert (first["pcie_gen"], first["pcie_width"], first["mig"], first["ecc"]) == (5, 16, False, True)
    assert first["unread"] == {}
    ours, unseen = first["processes"]
    assert (ours["pid"], ours["memory_mib"]) == (os.getpid(), 2048)
    assert ours["name"].startswith("py")
    assert unseen == {"pid": 4_000_000, "name": None, "memory_mib": 7, "busy_percent": None}
    assert second["processes"] == []


def test_what_a_gpu_does_not_support_is_nothing_with_the_reason(driver: FakeDriver) -> None:
    driver.says(
        f"fail.nvmlDeviceGetApplicationsClock {NOT_SUPPORTED}",
        f"fail.nvmlDeviceGetEccMode {NOT_SUPPORTED}",
        f"fail.nvmlDeviceGetViolationStatus {NOT_SUPPORTED}",
        f"fail.nvmlSystemGetCudaDriverVersion_v2 {UNKNOWN}",
    )
    gpus = driver.gpus()
    (gpu,) = gpus["devices"]
    assert gpus["cuda"] is None
    assert gpu["ecc"] is gpu["application_sm_mhz"] is None
    assert gpu["unread"]["ecc"] == "Not Supported"
    assert gpu["throttled_ms"] == {}
    assert gpu["name"] == "NVIDIA H200"


def test_an_old_driver_without_the_newer_functions(tmp_path: Path) -> None:
    old = FakeDriver(compiled(tmp_path, "-DOLD_DRIVER"), tmp_path / "state")
    old.says("driver 470.57", "throttle 32", f"processes {os.getpid()}:10")
    (gpu,) = old.gpus()["devices"]
    assert gpu["throttle"] == ["sw_thermal_slowdown"]
    assert [process["pid"] for process in gpu["processes"]] == [os.getpid()]


def test_which_gpus_nvlink_joins(driver: FakeDriver) -> None:
    driver.says("count 4", "0.nvlink 1", "1.nvlink 1", "3.nvlink 2")
    assert [gpu["nvlink"] for gpu in driver.gpus()["devices"]] == [[1], [0], [], []]
    driver.says("count 2", f"fail.nvmlDeviceGetP2PStatus {NOT_SUPPORTED}")
    assert [gpu["nvlink"] for gpu in driver.gpus()["devices"]] == [None, None]


def test_a_lost_gpu_leaves_the_others(driver: FakeDriver) -> None:
    driver.says("count 3", f"fail.1.nvmlDeviceGetHandleByIndex_v2 {LOST}", f"fail.2.nvmlDeviceGetMemoryInfo {LOST}")
    first, second, third = driver.gpus()["devices"]
    assert first["problem"] is None
    assert second["problem"] == third["problem"] == "GPU is lost"
    assert third["uuid"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"init {MISMATCH}", "different versions"),
        (f"init {NOT_LOADED}", "not loaded"),
        (f"init {UNKNOWN}", "does not answer"),
        (f"fail.nvmlDeviceGetCount_v2 {UNKNOWN}", "does not answer"),
    ],
)
def test_a_driver_that_does_not_answer_is_said(driver: FakeDriver, line: str, said: str) -> None:
    driver.says(line)
    gpus = driver.gpus()
    assert gpus["devices"] == []
    assert said in gpus["problem"]


def test_a_library_that_is_none(driver: FakeDriver, tmp_path: Path) -> None:
    """A truncated library, as an interrupted driver update leaves it."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/libnvidia-ml.so.1").write_bytes(driver.library.read_bytes()[:100])
    driver.library = tmp_path / "broken/libnvidia-ml.so.1"
    assert "no NVIDIA driver library" in driver.gpus()["problem"]


def test_memory_that_does_not_come_back_after_a_launch(driver: FakeDriver) -> None:
    """sglang#31645 #16756: memory that is still held after an engine ended is seen per GPU, and so is its return."""
    program = f"""
import json, pathlib
from spectune.machine import memory_not_back, read_gpus
state = pathlib.Path({str(driver.state)!r})
before = read_gpus()
state.write_text("count 2\\n1.memory_used 101000\\n")
held = memory_not_back(before, read_gpus())
state.write_text("count 2\\n1.memory_used 300\\n")
print(json.dumps([held, memory_not_back(before, read_gpus())]))
"""
    assert driver.answer(program) == [{"GPU-00000001-aaaa": 100_996}, {}]


def test_what_happens_to_the_gpus_during_a_launch_is_noted(driver: FakeDriver) -> None:
    """A stranger on a GPU, heat, a lower power limit and a narrower link, each seen in the launch it happened in."""
    stranger = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    program = f"""
import json, os, pathlib
from spectune.machine import MachineWatch, take_fingerprint
state = pathlib.Path({str(driver.state)!r})
began = json.loads(json.dumps(take_fingerprint().to_json()))
watch = MachineWatch(began)
calm = len(watch.changes)
state.write_text(
    f"count 2\\n0.processes {{os.getpid()}}:90000\\nmemory_used 90000\\n0.power_limit 500000\\nclock_sm 1200\\n"
    "throttle 0\\ntemperature 80\\n1.pcie_width 8\\n1.violation_ms_1 2500\\n1.throttle 32\\n"
    "1.processes {stranger.pid}:512,4000000:1\\n"
)
watch.look({{os.getpid()}})
state.write_text("count 2\\n")  # the heat is gone by the next look, and stays noted
watch.look({{os.getpid()}})
print(json.dumps([calm, [[change.field, change.matters] for change in watch.changes]]))
"""
    try:
        calm, changes = driver.answer(program)
    finally:
        stranger.communicate()
    assert calm == 0
    assert changes == [
        ["gpus.devices.GPU-00000000-aaaa.power_limit_w", True],
        ["gpus.devices.GPU-00000001-aaaa.pcie_width", True],
        ["gpus.devices.GPU-00000001-aaaa.processes", True],
        ["gpus.devices.GPU-00000001-aaaa.throttle", True],
        ["gpus.devices.GPU-00000001-aaaa.throttled_ms.thermal", True],
    ]


def test_doctor_on_a_machine_with_gpus(driver: FakeDriver, tmp_path: Path) -> None:
    """sglang#23627: memory held by a process of somebody else is named with its holder, and left alone."""
    stranger = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        driver.says("count 8", f"3.processes {stranger.pid}:101000", "3.memory_used 101500", "5.power_limit 450000")
        done = driver.run(SPECTUNE, "doctor", "--json", cwd=tmp_path)
        assert stranger.poll() is None
    finally:
        stranger.communicate()
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    by_name = {finding["name"]: finding for finding in told["findings"]}
    assert told["would_fail"]
    assert by_name["gpu-in-use"]["severity"] == "fatal"
    assert f"(pid {stranger.pid}) with 98.6 GiB is on GPU 3" in by_name["gpu-in-use"]["seen"]
    assert by_name["power-limit"]["way_out"] == "sudo nvidia-smi -i 5 -pl 700"
    assert "no-gpu" not in by_name
    shown = driver.run(SPECTUNE, "doctor", cwd=tmp_path).stdout
    assert "NVIDIA H200" in shown
    assert "GPU 0, 1, 2, 3, 4, 6, 7" in shown


def test_a_study_whose_machine_changes_between_launches_says_so(driver: FakeDriver, tmp_path: Path) -> None:
    """The power limit was lowered overnight, and somebody started to train on one of the GPUs."""
    write_study(tmp_path, trials=1)
    first = driver.run(SPECTUNE, "search", "sim.yaml", cwd=tmp_path)
    assert first.returncode in (0, 1), first.stderr
    assert "the machine is not as it was" not in first.stderr
    environment = json.loads((tmp_path / "studies/sim/environment.json").read_text())
    assert [gpu["name"] for gpu in environment["gpus"]["devices"]] == ["NVIDIA H200"] * 2
    stranger = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        driver.says("count 2", "power_limit 450000", f"1.processes {stranger.pid}:60000")
        second = driver.run(SPECTUNE, "search", "sim.yaml", "--trials", "2", cwd=tmp_path)
        assert stranger.poll() is None
    finally:
        stranger.communicate()
    assert "power_limit_w: 700.0 → 450.0 (clocks under load follow the power limit)" in second.stderr
    assert f"(pid {stranger.pid}) (another process uses the GPU)" in second.stderr
    results = sorted((tmp_path / "studies/sim/trials").glob("*/result.json"))
    changes = [json.loads(path.read_text())["environment_changes"] for path in results]
    assert [len(each) for each in changes] == [0, 3]
    assert all(change["matters"] for change in changes[1])
