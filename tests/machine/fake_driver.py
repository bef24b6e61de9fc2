"""The fake driver library: compiled once, loaded by a real dlopen in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class FakeDriver:
    """A driver whose state is a text file."""

    library: Path
    state: Path

    def says(self, *lines: str) -> None:
        self.state.write_text("".join(f"{line}\n" for line in lines))

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        return {**kept, "LD_LIBRARY_PATH": str(self.library.parent), "FAKE_NVML": str(self.state)}

    def run(self, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments, env=self.environment(), cwd=cwd, capture_output=True, text=True, timeout=240, check=False
        )

    def answer(self, program: str) -> Any:
        """What a Python program prints as JSON, run where this driver is."""
        done = self.run(sys.executable, "-W", "error", "-c", program)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def gpus(self) -> dict[str, Any]:
        return self.answer(
            "import dataclasses, json; from spectune.machine import read_gpus\n"
            "print(json.dumps(dataclasses.asdict(read_gpus())))"
        )


def compiled(folder: Path, *flags: str) -> Path:
    """Compile the library; returns its path."""
    library = folder / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", *flags, "-o", library, source], check=True)
    return library
