"""Fixtures of all tests."""

from __future__ import annotations

import pytest

from spectune.engines.cpu_reference import Runtime, install


@pytest.fixture(scope="session")
def cpu_runtime() -> Runtime:
    """The cpu-reference runtime in `$SPECTUNE_HOME`; the first use on a machine installs it."""
    return install()
