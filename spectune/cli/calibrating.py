"""`spectune calibrate`: a profile of the machine that a study was measured on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from spectune.calibration import Checked, calibrate, check, unfit
from spectune.cli.exit_codes import ExitCode
from spectune.cli.terminal import busy, print_json, print_line
from spectune.errors import SpectuneError
from spectune.files import write_whole
from spectune.search import StudyFolder

LONGEST_NAME = 100
COLUMNS = ("figure", "requests", "speculation", "candidates", "median error", "90 % below", "bias")


def run_calibrate(study: str, *, output: Path | None, as_json: bool) -> int:
    """Write the profile and say how well it predicts; returns the exit code.

    Raises:
        SpectuneError: The study is too small, or the file is there already.
    """
    folder = StudyFolder.named(study).require()
    path = output or Path(f"{folder.name}-profile.yaml")
    if path.exists():
        raise SpectuneError(f"{path} exists already; name another file with -o, or remove it")
    space, records, environment = folder.space(), folder.records(), folder.environment()
    with busy("fitting, and checking the fit on candidates left out of it"):
        fitted = calibrate(records, space, environment, name=_name(path, folder), study=folder.name)
        fitted.profile()  # what is written can be read
        errors, alone = check(records, space, environment)
    write_whole(path, fitted.to_yaml())
    if as_json:
        print_json({
            "schema": 1, "study": fitted.study, "path": str(path), "launches": fitted.launches,
            "simulated": fitted.simulated, "launch_sd": fitted.noise.launch_sd, "assumed": fitted.assumed,
            "errors": [one.to_json() for one in errors], "not_left_out": alone, "not_for_prediction": unfit(errors),
        })  # fmt: skip
        return ExitCode.DONE
    origin = "SIMULATED launches" if fitted.simulated else "launches"
    print_line(f"{path}: fitted to {fitted.launches} {origin} of {folder.name}")
    _print_errors(errors)
    for what in alone:
        print_line(f"{what} was measured too little to leave any of it out: how well it is predicted is not known")
    print_line(f"launches of one configuration differ by {fitted.noise.launch_sd:.1%} from each other")
    for line in fitted.assumed:
        print_line(f"assumed: {line}")
    if (why := unfit(errors)) is not None:
        print_line(f"NOT FOR PREDICTION: {why}; measure more candidates, or use it to try out commands only")
    print_line(f"next: spectune search SPACE --engine simulated --profile {shlex.quote(str(path))} --virtual")
    return ExitCode.DONE


def _name(path: Path, folder: StudyFolder) -> str:
    """Return what the profile is called: as its file, as far as a profile can be."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:LONGEST_NAME] or folder.name


def _print_errors(errors: Sequence[Checked]) -> None:
    if not errors:
        print_line("too few candidates to leave any out of the fit")
        return
    print_line("predicted for launches that were left out of the fit:")
    rows = [COLUMNS, *((one.figure, str(one.batch), "yes" if one.speculative else "no", str(one.candidates),
                        f"{one.median:.1%}", f"{one.p90:.1%}", f"{one.bias:+z.1%}") for one in errors)]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    for row in rows:
        cells = [text.rjust(width) if at else text.ljust(width)
                 for at, (text, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        print_line("  " + "  ".join(cells))
    print_line("cycle_ms is a cycle between prefills; speed and throughput are as measured, others' prefills included")
