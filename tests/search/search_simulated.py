"""A small simulated machine, a space for it, and a watcher that says nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml

from spectune.analysis.measurement import LevelMeasurement
from spectune.bench.prompt_stream import PromptStream
from spectune.engines.open import open_engine
from spectune.engines.protocol import Occasion
from spectune.search import Role, Step, StudyFolder, TrialRecord
from spectune.search.launch.canary import SAMPLED, Canaries
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.traffic import open_prompts
from spectune.search.launch.trial import Trial
from spectune.search.planning.prospect import Progress
from spectune.space import Candidate, load_space

PROFILE: dict[str, Any] = {
    "schema": 1, "name": "quick", "source": "made up for tests", "seed": 3,
    "gpu": {"count": 2, "memory_gb": 80},
    "target": {
        "weights_gb": 40, "step_ms": {"graph": 2.0, "eager": 4.0}, "token_ms": 0.02, "kv_mb_per_token": 0.1,
        "prefill_ktok_per_s": 200,
    },
    "draft": {"weights_gb": 1, "step_ms": {"graph": 0.2, "eager": 0.4}, "token_ms": 0.01},
    "host_ms": 0.2,
    "acceptance": {"default": [0.8, 0.7, 0.6], "by_class": {"prose": 1.1}},
    "startup": {"load_s": 0.1, "capture_s_per_graph": 0.001},
}  # fmt: skip

SPACE: dict[str, Any] = {
    "schema": 1, "name": "sim",
    "engine": {
        "kind": "simulated", "profile": "quick.yaml", "virtual": True, "gpus": 2, "startup_timeout": "60s",
        "args": {"model-path": "org/target", "tp-size": 2, "attention-backend": "triton"},
    },
    "search": {
        "speculative-algorithm": ["none", "EAGLE3"], "speculative-draft-model-path": "org/drafter",
        "speculative-num-steps": {"from": 1, "to": 4}, "speculative-eagle-topk": [1, 2],
        "speculative-num-draft-tokens": {"from": 2, "to": 8},
    },
    "workload": {
        "prompts": "builtin:tiny", "chat_template": False, "output_tokens": 48,
        "levels": [{"concurrency": 1}, {"concurrency": 4}], "level_time_limit": "2s",
    },
    "budget": {"trials": 6},
}  # fmt: skip

ALONE: dict[str, Any] = {
    "prompts": "builtin:tiny", "chat_template": False, "output_tokens": 32,
    "levels": [{"concurrency": 1}], "level_time_limit": "1s",
}  # fmt: skip
"""One request at a time: however slow this machine is, none waits for another, and no launch is suspect for that."""


class Silent:
    """A watcher that only keeps notes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def planned(self, progress: Progress) -> None:
        self.lines.append(f"{progress.done} done")

    def launching(self, step: Step) -> None: ...
    def says(self, text: str) -> None: ...
    def measured(self, level: LevelMeasurement) -> None: ...
    def finished(self, record: TrialRecord) -> None: ...

    def notes(self, text: str) -> None:
        self.lines.append(text)


def write(folder: Path, *, virtual: bool = True, profile: dict[str, Any] | None = None, **space: Any) -> Path:
    (folder / "quick.yaml").write_text(yaml.safe_dump(PROFILE | (profile or {})))
    chosen = SPACE | {"engine": SPACE["engine"] | {"virtual": virtual}} | space
    (folder / "sim.yaml").write_text(yaml.safe_dump(chosen, sort_keys=False))
    return folder / "sim.yaml"


def chain(steps: int) -> Candidate:
    return Candidate.of(
        {
            "speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "org/drafter",
            "speculative-num-steps": steps, "speculative-eagle-topk": 1, "speculative-num-draft-tokens": steps + 1,
        }
    )  # fmt: skip


def launch(file: Path, candidate: Candidate, *, number: int = 0, root: Path | None = None) -> TrialRecord:
    """Make one launch of a space as a study would."""
    space = load_space(file)
    engine = open_engine(space)
    folder = StudyFolder(root or file.parent / "studies/one")
    folder.root.mkdir(parents=True, exist_ok=True)
    for name, text in engine.belongings().items():
        (folder.root / name).write_text(text)
    step = Step(number, Role.SEARCH, candidate, "for a test")
    feed = PromptFeed(open_prompts(space), engine.renderer(), chat_template=False, output_tokens=48)
    sampled = PromptStream(open_prompts(space), seed=1).take(SAMPLED)
    canaries = Canaries(sampled, engine, engine.renderer(), chat_template=False)
    occasion = Occasion(number, 0.0, folder.root)
    return asyncio.run(Trial(step, folder.open_trial(step), space, engine, feed, canaries, Silent(), occasion).run())
