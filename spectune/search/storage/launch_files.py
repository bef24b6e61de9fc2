"""Which launches a study's folder holds, by their files."""

from __future__ import annotations

from pathlib import Path

from spectune.errors import SpectuneError

RESULT = "result.json"
BEGUN = "candidate.json"
SCRIPT = "launch.sh"  # never copied: who has it made the launch


def launch_files(trials: Path, name: str) -> list[Path]:
    """Return the file of that name of every launch that has one, in the order of the launches.

    Raises:
        SpectuneError: A folder cannot be looked into: a launch that cannot be seen is not one that was never made.
    """
    try:
        folders = sorted(path for path in trials.iterdir() if path.name[0].isdigit())
        return [folder / name for folder in folders if (folder / name).exists()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SpectuneError(
            f"cannot look into {error.filename or trials}: {error.strerror or error}; the study's launches are there: "
            "let yourself read it"
        ) from None
