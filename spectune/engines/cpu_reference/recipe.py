"""What a runtime consists of. One is shipped; tests install smaller ones the same way."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from spectune.errors import SpectuneError

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class TorchSizes:
    """Bytes a build of torch takes with everything else of the runtime; rounded up from real installations."""

    download: int
    installed: int


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what ends up in a runtime's folder.

    Attributes:
        name: The runtime's name.
        torch: Requirement installed first; may come from another index, and with the CUDA libraries it needs.
        lock: Requirements file with every other package of the closure, pinned, installed without dependencies.
        engine: Requirement installed last, without dependencies.
        engine_version: Version of `engine`.
        verification: Python program that imports the engine and computes something.
        content: Folders copied beside the environment: the overlay and the models.
        cpu_build: Sizes with a CPU build of torch.
        cuda_build: Sizes with a CUDA build.
    """

    name: str
    torch: str
    lock: Path
    engine: str
    engine_version: str
    verification: str
    content: tuple[Path, ...]
    cpu_build: TorchSizes
    cuda_build: TorchSizes

    def environment_digest(self) -> str:
        """Hash of all pins: an environment built from others is built anew."""
        return hashlib.sha256(f"{self.torch}\n{self.engine}\n{self.lock.read_text()}".encode()).hexdigest()[:16]

    def content_digest(self) -> str:
        """Hash of the overlay's and the models' files: names the folder they are copied to."""
        digest = hashlib.sha256()
        for folder in self.content:
            files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
            for file in sorted(files):
                digest.update(f"{file.relative_to(folder.parent)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()[:12]


# The server's own modules, so that a missing package shows now and not at the first launch; then one op of the overlay.
_VERIFICATION = """
import sglang.srt.entrypoints.http_server, sglang.srt.managers.scheduler
import sgl_kernel, torch
tokens = torch.zeros(1, dtype=torch.int64)
sgl_kernel.fill_bonus_tokens_cpu(torch.tensor([5, 7]), torch.tensor([2]), tokens, 2)
assert tokens.tolist() == [7], tokens
"""

CPU_REFERENCE = Recipe(
    name="cpu-reference",
    torch="torch==2.13.0",
    lock=PACKAGE / "requirements.lock.txt",
    engine="sglang==0.5.23",
    engine_version="0.5.23",
    verification=_VERIFICATION,
    content=(PACKAGE / "overlay", PACKAGE / "models"),
    cpu_build=TorchSizes(download=450_000_000, installed=1_600_000_000),
    cuda_build=TorchSizes(download=3_500_000_000, installed=8_000_000_000),
)

RECIPES = {recipe.name: recipe for recipe in (CPU_REFERENCE,)}


def recipe_named(name: str) -> Recipe:
    """Find a recipe.

    Raises:
        SpectuneError: When there is none of that name.
    """
    if name not in RECIPES:
        raise SpectuneError(f"there is no runtime {name!r}; choose one of: {', '.join(RECIPES)}")
    return RECIPES[name]
