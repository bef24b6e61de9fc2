"""Facts of the kernel, read from made trees; whatever is missing or odd is None."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.errors import SpectuneError
from spectune.machine import read_disks, take_fingerprint, users_of
from spectune.machine.host import (
    cgroup_cores,
    chosen,
    container_of,
    cpu_model,
    governors,
    memory_limit,
    nodes_of,
    port_range,
    read_host,
)
from spectune.machine.reading import as_ranges, number_ranges
from spectune.machine.software import HIDDEN, find_tools, nccl_files, told_variables

B, C = "b" * 64, "c" * 64  # ids of containers


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@given(st.sets(st.integers(0, 300)))
def test_ranges_there_and_back(numbers: set[int]) -> None:
    assert number_ranges(as_ranges(list(numbers))) == sorted(numbers)


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    number_ranges(text)
    chosen(text)
    port_range(text)
    cpu_model(text)


@pytest.mark.parametrize(
    ("files", "cores", "gib"),
    [
        ({"cpu.max": "max 100000", "memory.max": "max"}, None, None),
        ({"cpu.max": "150000 100000", "memory.max": str(8 << 30)}, 1.5, 8.0),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, None),
        ({"memory/memory.limit_in_bytes": str(1 << 62)}, None, None),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4.0, None),
        ({"cpu.max": "broken"}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_control_groups_of_both_versions(
    files: dict[str, str], cores: float | None, gib: float | None, tmp_path: Path
) -> None:
    tree(tmp_path, files)
    assert (cgroup_cores(tmp_path), memory_limit(tmp_path)) == (cores, gib)


def test_nodes_and_governors(tmp_path: Path) -> None:
    node, cpu = "devices/system/node/node{}/cpulist", "devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    tree(
        tmp_path,
        {node.format(0): "0-3\n", node.format(1): "4-7\n", cpu.format(0): "performance", cpu.format(5): "powersave"},
    )
    assert nodes_of(tmp_path, [5]) == [1]
    assert nodes_of(tmp_path, [0, 7]) == [0, 1]
    assert governors(tmp_path, [0, 5]) == "performance,powersave"
    assert governors(tmp_path, [1]) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (None, None)),
        ({".dockerenv": "", "proc/self/cgroup": "0::/"}, ("docker", None)),
        ({"proc/self/cgroup": f"12:cpu:/docker/{'a1' * 32}\n"}, ("docker", "a1a1a1a1a1a1")),
        ({"run/.containerenv": ""}, ("podman", None)),
        ({"var/run/secrets/kubernetes.io/x": "", "proc/self/cgroup": f"0::/kubepods/pod1/{B}"}, ("kubernetes", B[:12])),
        ({".dockerenv": "", "proc/self/mountinfo": f"1 2 /docker/containers/{C}/x"}, ("docker", C[:12])),
    ],
)  # fmt: skip
def test_containers(files: dict[str, str], expected: tuple[str | None, str | None], tmp_path: Path) -> None:
    assert container_of(tree(tmp_path, files)) == expected


def test_nccl_files_keep_names_and_a_digest(tmp_path: Path) -> None:
    home = tree(tmp_path / "home/me", {".nccl.conf": "NCCL_DEBUG=INFO\n"})
    root = tree(tmp_path, {"etc/nccl.conf": "# by the admin\nNCCL_ALGO=Tree\n NCCL_PROTO = LL\nNCCL_X_TOKEN=hunter2\n"})
    system, own = nccl_files(root, {"HOME": str(home)})
    assert (system.path, system.variables) == ("/etc/nccl.conf", ("NCCL_ALGO", "NCCL_PROTO", "NCCL_X_TOKEN"))
    assert (own.path, own.variables) == ("~/.nccl.conf", ("NCCL_DEBUG",))
    assert "hunter2" not in str(system)
    elsewhere = tree(tmp_path, {"other.conf": "NCCL_ALGO=Ring"})
    assert nccl_files(tmp_path / "none", {"HOME": str(home), "NCCL_CONF_FILE": str(elsewhere / "other.conf")})[
        0
    ].variables


def test_variables_that_change_an_engine_are_recorded_and_secrets_are_not() -> None:
    """sglang#12411: whether SGLANG_ENABLE_SPEC_V2 was set decides the figures, so it stands in the fingerprint."""
    told = told_variables(
        {
            "SGLANG_ENABLE_SPEC_V2": "1", "NCCL_ALGO": "Ring", "CUDA_VISIBLE_DEVICES": "0,1", "HF_TOKEN": "hf_abcdefgh",
            "SGLANG_API_KEY": "k", "NCCL_PROXY": "http://me:pw@host", "TORCH_X": "hf_" + "x" * 34, "PATH": "/bin",
            "SGLANG_LONG": "x" * 500,
        }
    )  # fmt: skip
    assert told == {
        "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_ALGO": "Ring", "NCCL_PROXY": HIDDEN, "SGLANG_API_KEY": HIDDEN,
        "SGLANG_ENABLE_SPEC_V2": "1", "SGLANG_LONG": HIDDEN, "TORCH_X": HIDDEN,
    }  # fmt: skip


def test_tools_are_found_where_they_are(tmp_path: Path) -> None:
    tree(tmp_path, {"cuda/bin/nvcc": "", "bin/gcc": "", "bin/ninja": ""})
    for name in ("cuda/bin/nvcc", "bin/gcc", "bin/ninja"):
        (tmp_path / name).chmod(0o755)
    found = find_tools({"PATH": str(tmp_path / "bin"), "CUDA_HOME": str(tmp_path / "cuda")})
    assert found == {
        "cc": str(tmp_path / "bin/gcc"), "g++": None, "ninja": str(tmp_path / "bin/ninja"),
        "nvcc": str(tmp_path / "cuda/bin/nvcc"),
    }  # fmt: skip


def test_disks_are_those_above_folders_that_do_not_exist_yet(tmp_path: Path) -> None:
    disks = {disk.role: disk for disk in read_disks(tmp_path, {"HOME": str(tmp_path / "nobody")})}
    assert disks["studies"].path == disks["model cache"].path == str(tmp_path)
    assert disks["studies"].writable


def test_users_of_a_file_are_found_by_descriptor(tmp_path: Path) -> None:
    opened, not_opened = tmp_path / "opened", tmp_path / "not"
    not_opened.touch()
    with opened.open("w"):
        users = users_of([str(opened), str(not_opened)])
    assert users == {str(opened): {os.getpid()}, str(not_opened): set()}


def test_this_machine_is_read_whole() -> None:
    taken = take_fingerprint("SGLang 0.5.23").to_json()
    assert taken["schema"] == 2
    assert taken["engine"] == taken["software"]["engine"] == "SGLang 0.5.23"
    assert taken["host"]["cores"] >= 1
    assert taken["software"]["libraries"]["optuna"]


def test_users_of_a_semaphore_are_found_although_it_is_mapped_under_another_name() -> None:
    """Live locks of multiprocessing must not look like leftovers: glibc maps them before it gives them their name."""
    before = set(Path("/dev/shm").glob("sem.mp-*"))
    lock = multiprocessing.get_context("spawn").Lock()
    made = [str(path) for path in set(Path("/dev/shm").glob("sem.mp-*")) - before]
    assert os.getpid() in set().union(*users_of(made).values())
    del lock


def test_what_is_no_file_of_nccl_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".nccl.conf")
    assert nccl_files(tmp_path, {"HOME": str(tmp_path)}) == ()
    assert nccl_files(tmp_path, {"NCCL_CONF_FILE": "~nobody-has-this-name/x"}) == ()


def test_a_machine_without_proc_is_said_to_lack_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    with pytest.raises(SpectuneError, match=r"cannot read .*/meminfo: No such file or directory; .*mount -t proc proc"):
        read_host()
