"""What is wrong with the machine around the GPUs, as pure functions of what was read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spectune.machine.cores import CoresUsed
from spectune.machine.disks import Disk
from spectune.machine.finding import Finding, Severity
from spectune.machine.fingerprint import Fingerprint
from spectune.machine.host import Host
from spectune.machine.software import Software

LISTING = "ps -eo pcpu,user,pid,etime,args --sort=-pcpu | head"
OPEN_FILES = 8192  # SGLang asks for 65,535 and goes on with less; a few files a request in flight are what it needs
# Role → GiB below which a search fails, and below which it may.
ROOM = {"studies": (0.1, 2.0), "temporary files": (0.05, 1.0), "shared memory": (0.03, 1.0), "model cache": (0.0, 20.0)}
_ROOM_FOR = {
    "studies": "records, logs and requests of every launch are written there",
    "temporary files": "engines keep sockets and compiled kernels there",
    "shared memory": "an engine's processes and NCCL's ranks exchange data through it",
    "model cache": "models named by their hub name are downloaded to it",
}
_TOOL_FOR = {
    "cc": ("a C compiler", "Triton compiles the launcher of every kernel with it", "apt install gcc"),
    "g++": ("g++", "SGLang and FlashInfer build kernels at first use with it", "apt install g++"),
    "ninja": ("ninja", "FlashInfer builds kernels at first use with it", "apt install ninja-build"),
    "nvcc": ("nvcc", "kernels built at first use need CUDA's compiler", "apt install cuda-nvcc-12-8"),
}  # fmt: skip


def host_findings(fingerprint: Fingerprint, disks: Sequence[Disk], used: CoresUsed | None = None) -> list[Finding]:
    """Return what is wrong with disks, limits, settings and tools.

    Args:
        fingerprint: What was read.
        disks: Likewise.
        used: What the cores do now, while no engine of ours runs; None where nobody looked.
    """
    cuda = bool(fingerprint.gpus.devices)
    return [
        *cores_in_use(used),
        *_disks(disks, cuda=cuda),
        *_tools(fingerprint.software, cuda=cuda),
        *_interference(fingerprint.software),
        *_processor(fingerprint.host),
        *_limits(fingerprint.host),
    ]


def cores_in_use(used: CoresUsed | None) -> list[Finding]:
    """Return that others use the cores, where a launch would miss them."""
    if used is None or not used.busy_before:
        return []
    why = "figures of launches beside other work scatter more than the engine does, and verdicts stay undecided"
    way_out = f"{LISTING}  # then end or pause what need not run; spectune never does"
    return [Finding("cores-in-use", "warning", f"other programs use {used}", why, way_out)]


def _disks(disks: Sequence[Disk], *, cuda: bool) -> Iterator[Finding]:
    for disk in disks:
        fails, may_fail = ROOM[disk.role]
        why = _ROOM_FOR[disk.role]
        if not disk.writable:
            way_out = f"ls -ld {disk.path}  # run spectune where you may write"
            severity: Severity = "fatal" if disk.role in ("studies", "temporary files") else "warning"
            yield Finding("not-writable", severity, f"{disk.role}: {disk.path} cannot be written to", why, way_out)
        elif disk.free_gib < fails or (disk.free_gib < may_fail and (cuda or disk.role != "model cache")):
            seen = f"{disk.role}: {disk.free_gib:g} of {disk.total_gib:g} GiB are free in {disk.path}"
            way_out = f"du -xh --max-depth=1 {disk.path} | sort -h | tail"
            if disk.role == "shared memory":
                way_out = "docker run --shm-size 32g …  # or: mount -o remount,size=32g /dev/shm"
            yield Finding("little-room", "fatal" if disk.free_gib < fails else "warning", seen, why, way_out)


def _tools(software: Software, *, cuda: bool) -> Iterator[Finding]:
    for name, path in software.tools.items():
        if path is None and cuda and name not in software.packages:
            called, why, way_out = _TOOL_FOR[name]
            yield Finding("no-compiler", "warning", f"{called} is missing", why, way_out)


def _interference(software: Software) -> Iterator[Finding]:
    for file in software.nccl_files:
        named = ", ".join(file.variables) or "nothing"
        why = "NCCL reads it on its own: a launch that leaves these variables unset gets them all the same"
        yield Finding("nccl-file", "warning", f"{file.path} sets {named}", why, f"mv {file.path} {file.path}.off")
    for name, value in software.variables.items():
        if name in ("NCCL_ALGO", "NCCL_PROTO"):
            kills = (
                " NCCL has no Tree for AllGather: Tree alone can end every launch." if value.lower() == "tree" else ""
            )
            why = f"every launch inherits it, baselines included, unless the space names env.{name}.{kills}"
            yield Finding("nccl-variable", "warning", f"{name}={value} is set in this shell", why, f"unset {name}")
        elif name == "SGLANG_SIMULATE_ACC_LEN" and value not in ("", "-1"):
            why = "SGLang then pretends to accept so many tokens: no measured accept length would be real"
            yield Finding("faked-acceptance", "fatal", f"{name}={value} is set in this shell", why, f"unset {name}")
    for path in (software.engine_sitecustomize, software.sitecustomize):
        if path is not None:
            why = "it runs at every start of this Python, and can change what a launch does"
            yield Finding("sitecustomize", "info", f"there is {path}", why, f"less {path}")


def _processor(host: Host) -> Iterator[Finding]:
    if host.governor and set(host.governor.split(",")) & {"powersave", "conservative"}:
        why = "the host's part of every cycle runs at low clocks: drafting looks slower than it is"
        yield Finding(
            "governor",
            "warning",
            f"the frequency governor is {host.governor}",
            why,
            "sudo cpupower frequency-set -g performance",
        )
    if host.cgroup_cores is not None and host.cgroup_cores < host.cores:
        seen = f"this container may use {host.cgroup_cores:g} of the {host.cores} cores it sees"
        why = "engines start as many threads as they see cores, and are then stopped in turns"
        yield Finding("core-quota", "warning", seen, why, "docker run --cpuset-cpus … instead of --cpus …")
    if host.swap_used_gib >= 0.5:
        why = "an engine whose memory is swapped out pauses at random"
        yield Finding(
            "swap", "warning", f"{host.swap_used_gib:g} GiB are swapped out", why, "sudo swapoff -a && sudo swapon -a"
        )


def _limits(host: Host) -> Iterator[Finding]:
    if 0 <= host.open_files < OPEN_FILES:
        seen = f"a process may open {host.open_files} files"
        why = "engines need several for each request in flight: connections fail at high concurrency"
        yield Finding("open-files", "warning", seen, why, "docker run --ulimit nofile=65535:65535 …  # or: limits.conf")
