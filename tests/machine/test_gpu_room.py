"""A launch on two of four GPUs: what its processes see, what its record says, and what its files keep to themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_driver import FakeDriver
from two_gpus import write_study

pytestmark = pytest.mark.services
# The simulated engine as one that fills the GPUs of this machine.
STUDY = """
import asyncio, json, os
from dataclasses import dataclass
from pathlib import Path
from spectune.engines.open import open_engine
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.machine import take_fingerprint
from spectune.search import StudyFolder, run_study
from spectune.search.launch.room import room_for
from spectune.space import load_space

class OnGpus(SimulatedEngine):
    gpus_held = property(lambda self: self.gpus)

class Watcher:
    def __init__(self): self.lines = []
    def planned(self, progress): pass
    def launching(self, step): pass
    def says(self, text): pass
    def finished(self, record): pass
    def notes(self, text): self.lines.append(text)
    def measured(self, level): Path(os.environ["FAKE_NVML"]).write_text(AFTER)

AFTER = {after!r}
space = load_space("sim.yaml")
plain = open_engine(space)
engine = OnGpus(**{{name: getattr(plain, name) for name in plain.__dataclass_fields__}})
folder, watcher = StudyFolder(Path("studies/sim")), Watcher()
folder.begin(space.text, space.resolved_yaml(), take_fingerprint(engine.title).to_json(), engine.belongings())
with asyncio.run(room_for("neighbour", "neighbour", engine, 1, print)) as neighbour:
    ended = asyncio.run(run_study(folder, space, engine, watcher))
    record = ended.records[0]
    print(json.dumps(dict(
        neighbour=neighbour.group.variables, places=[neighbour.place],
        failures=[str(record.failure) for record in ended.records if record.failure],
        reached=[[one.name, one.wanted, one.workers, one.of] for one in record.environment_reached],
        changed=[change.field for change in ended.records[-1].environment_changes if change.matters])))
"""


def test_a_launch_has_its_group_and_looks_at_nothing_else(driver: FakeDriver, tmp_path: Path) -> None:
    write_study(tmp_path, trials=2)
    driver.says("count 4")
    after = "count 4\n0.power_limit 350000\n1.processes 1:40000\n1.memory_used 41000\n3.power_limit 500000\n"
    program = f"import os; os.chdir({str(tmp_path)!r}); os.environ['SPECTUNE_LOCKS'] = 'locks'\n"
    told = driver.answer(program + STUDY.format(after=after))
    assert told["failures"] == []
    assert told["neighbour"]["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert told["places"][0].endswith(":gpu0-1")
    assert ["CUDA_VISIBLE_DEVICES", "2,3", 1, 1] in told["reached"]
    assert ["CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1, 1] in told["reached"]
    assert told["changed"] == ["gpus.devices.GPU-00000003-aaaa.power_limit_w"], "not what happens on the neighbour's"
    for trial in (tmp_path / "studies/sim/trials").iterdir():
        assert "CUDA" not in (trial / "launch.sh").read_text()
        result = json.loads((trial / "result.json").read_text())
        assert "CUDA" not in json.dumps(result["command"])
    left = [path.name for path in (tmp_path / "locks").iterdir()]
    assert all(name.startswith("port-") for name in left), "of ports it stays known which was used last"
