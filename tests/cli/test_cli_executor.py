"""Options of a search that starts workers: what does not go together is said before anything begins."""

from __future__ import annotations

import shlex

import pytest
from readme_commands import ROOT

from spectune.cli.crewing import Crew, crew_by
from spectune.cli.opening import Shared
from spectune.cli.program import ExecutorKind
from spectune.cli.sharing import _joining
from spectune.errors import SpectuneError
from spectune.search.shared.storage import Address
from spectune.space import load_space

SHARED = Shared("postgresql://u:planted-secret@db/x", 600.0, other_engine=True, place="rack")
LOCAL, SLURM = ExecutorKind.LOCAL, ExecutorKind.SLURM


@pytest.mark.parametrize(
    ("kind", "nodes", "slurm", "shared", "said"),
    [
        (None, 2, [], SHARED, "--nodes says how workers are started: add --executor"),
        (None, None, ["time=1"], SHARED, "--slurm says how workers are started: add --executor"),
        (LOCAL, 2, [], None, "--executor local starts workers, .* add --storage URL"),
        (SLURM, None, [], SHARED, "--executor slurm needs --nodes N"),
        (SLURM, 100, [], SHARED, "--nodes 100: at most 99 workers share a folder of studies"),
        (LOCAL, 2, ["time=1"], SHARED, "--slurm time=1 is for --executor slurm"),
        (SLURM, 2, ["Time=1"], SHARED, "KEY=VALUE"),
    ],
)
def test_what_does_not_go_together(
    kind: ExecutorKind | None, nodes: int | None, slurm: list[str], shared: Shared | None, said: str
) -> None:
    with pytest.raises(SpectuneError, match=said):
        crew_by(kind, nodes=nodes, slurm=slurm, shared=shared)


def test_more_workers_on_this_machine_than_the_space_allows() -> None:
    crew, space = Crew(LOCAL, 2, {}), load_space(ROOT / "search_spaces/eagle3.yaml")
    with pytest.raises(SpectuneError, match=r"--nodes 2 .* allows 1 at once here; write engine.parallel: 2"):
        crew.executor("eagle3", space)
    virtual = space.with_engine(space.engine.simulated(None, virtual=True))
    assert crew.executor("eagle3", virtual), "which takes no room"


def test_without_these_options_no_workers_are_started() -> None:
    assert crew_by(None, nodes=None, slurm=[], shared=SHARED) is None


def test_a_worker_is_told_the_storage_where_nobody_reads_it_off() -> None:
    crew = crew_by(SLURM, nodes=4, slurm=["partition=gpu"], shared=SHARED)
    assert crew == Crew(SLURM, 4, {"partition": "gpu"})
    command = crew.command("study", SHARED, "https://me:planted-secret@index.example/simple")
    assert command.argv[1:] == [
        "-m", "spectune", "worker", "study", "--allow-other-engine", "--place", "rack",
    ]  # fmt: skip
    assert command.env == {
        "SPECTUNE_STORAGE": SHARED.storage,
        "SPECTUNE_TORCH_INDEX": "https://me:planted-secret@index.example/simple",
    }
    assert not any("planted-secret" in word for word in command.argv)


def test_the_command_that_joins_a_study_can_be_pasted_and_holds_no_secret() -> None:
    words = shlex.split(_joining("multi", Address.of("sqlite:////tmp/a b.db")).strip("`"))
    assert words == ["spectune", "worker", "multi", "--storage", "sqlite:////tmp/a b.db"]
    told = _joining("multi", Address("postgresql://u:planted-secret@db/x", "shown", frozenset(), {}))
    assert told == "`spectune worker multi` with the same --storage or $SPECTUNE_STORAGE"
