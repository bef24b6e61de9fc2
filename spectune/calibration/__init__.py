"""From a measured study to a profile of its machine: what was measured, as the simulated engine's cost model."""

from spectune.calibration.calibrate import Calibration, calibrate
from spectune.calibration.check import Checked, check, unfit

__all__ = ["Calibration", "Checked", "calibrate", "check", "unfit"]
