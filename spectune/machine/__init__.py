"""What this machine is, and who uses it."""

from spectune.machine.cores import LOOK_S, CoreMeter, CoresUsed
from spectune.machine.differences import Difference, differences, throttling
from spectune.machine.disks import Disk, read_disks
from spectune.machine.driver import count_gpus
from spectune.machine.finding import Finding, in_order
from spectune.machine.fingerprint import SIMULATED_MACHINE, Fingerprint, take_fingerprint
from spectune.machine.gpu_findings import WAITS, gpu_findings
from spectune.machine.gpus import Gpu, GpuProcess, Gpus, holders, memory_not_back, visible
from spectune.machine.host_findings import cores_in_use, host_findings
from spectune.machine.nvml import read_gpus
from spectune.machine.open_files import users_of
from spectune.machine.others import Others
from spectune.machine.overview import overview
from spectune.machine.place import here, place_of
from spectune.machine.watch import MachineWatch

__all__ = [
    "LOOK_S",
    "SIMULATED_MACHINE",
    "WAITS",
    "CoreMeter",
    "CoresUsed",
    "Difference",
    "Disk",
    "Finding",
    "Fingerprint",
    "Gpu",
    "GpuProcess",
    "Gpus",
    "MachineWatch",
    "Others",
    "cores_in_use",
    "count_gpus",
    "differences",
    "gpu_findings",
    "here",
    "holders",
    "host_findings",
    "in_order",
    "memory_not_back",
    "overview",
    "place_of",
    "read_disks",
    "read_gpus",
    "take_fingerprint",
    "throttling",
    "users_of",
    "visible",
]
