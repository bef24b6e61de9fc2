from __future__ import annotations

from pathlib import Path

import pytest
from fake_driver import FakeDriver, compiled


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def driver(driver_library: Path, tmp_path: Path) -> FakeDriver:
    fake = FakeDriver(driver_library, tmp_path / "state")
    fake.says("count 2")
    return fake
