"""`spectune breakeven`: for figures somebody has, or for a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from spectune.analysis.break_even_input import check_inputs
from spectune.analysis.why import DrafterPoint
from spectune.cli.arithmetic import print_break_even
from spectune.cli.break_even_table import print_break_even_of, print_training
from spectune.cli.drafter_points import parse_points
from spectune.cli.exit_codes import ExitCode
from spectune.cli.measuring_what_if import measure_what_if
from spectune.cli.terminal import print_json, print_simulated, told_when_slow
from spectune.errors import SpectuneError
from spectune.search import StudyFolder, TrialRecord
from spectune.search.why import break_even_of, engine_cycles, training_of
from spectune.space import SearchSpace

MOST_TOKENS = 10_000_000


@dataclass(frozen=True)
class Given:
    """Figures somebody has."""

    baseline: float | None
    cycle_ms: float | None
    accept_length: float | None
    num_steps: int | None
    measured: float | None


@dataclass(frozen=True)
class Asked:
    """What is asked of a study.

    Attributes:
        candidate: The candidate in question, by its label, by a trial or by the beginning of its id.
        measure: Whether to launch it with forced accept lengths, instead of printing what is known.
        points: SAMPLES:ACCEPT_LENGTH of other drafters.
        tokens_per_sample: Tokens of one training sample; None unless points are given.
        space_file: Beside which the prompts to measure with lie.
    """

    candidate: str | None
    measure: bool
    points: Sequence[str]
    tokens_per_sample: int | None
    space_file: str | None


def run_break_even(study: str | None, given: Given, asked: Asked, *, targets: Sequence[float], as_json: bool) -> int:
    """Print the arithmetic of figures, or what a study says; returns the exit code.

    Raises:
        SpectuneError: Neither or both were given, or something of it cannot be.
    """
    if study is not None:
        if any(value is not None for value in astuple(given)):
            raise SpectuneError("give either a STUDY or figures (--baseline, --cycle-ms, --accept, --steps, --speed)")
        return _of_study(study, asked, targets=targets, as_json=as_json)
    if any((asked.candidate, asked.measure, asked.points, asked.tokens_per_sample, asked.space_file)):
        raise SpectuneError(
            "--candidate, --measure, --space, --drafter-points and --tokens-per-sample are about a STUDY: name one"
        )
    if given.baseline is None or given.accept_length is None or (given.cycle_ms is None and given.measured is None):
        raise SpectuneError(
            "give a STUDY (`spectune studies` lists those there are), or figures: --baseline, --accept, and --cycle-ms "
            "or --speed"
        )
    print_break_even(
        baseline=given.baseline, cycle_ms=given.cycle_ms, accept_length=given.accept_length,
        num_steps=given.num_steps, targets=targets, measured=given.measured, as_json=as_json,
    )  # fmt: skip
    return ExitCode.DONE


def _of_study(study: str, asked: Asked, *, targets: Sequence[float], as_json: bool) -> int:
    check_inputs(targets=targets)
    if asked.space_file is not None and not asked.measure:
        raise SpectuneError("--space says where the prompts of --measure lie: give both")
    points = _points(asked)
    folder = StudyFolder.named(study).require()
    space, records = folder.space(), folder.records()
    wanted = None if asked.candidate is None else candidate_of(records, space, asked.candidate)
    if asked.measure:
        return measure_what_if(study, candidate_id=wanted, space_file=asked.space_file, as_json=as_json)
    with told_when_slow("reading the engine's logs"):
        cycles = engine_cycles(folder, records, space)
    engine = str(folder.environment().get("engine", ""))
    answer = break_even_of(
        records, space, targets=targets or None, engine_cycles=cycles, candidate_id=wanted, engine=engine
    )
    if wanted is not None and answer.candidate_id not in (None, wanted):
        raise SpectuneError(f"--candidate {asked.candidate}: no launch of it was measured as asked for")
    trained = training_of(
        answer, records, space, points, tokens_per_sample=asked.tokens_per_sample or 1
    ) if points else None  # fmt: skip
    simulated = space.engine.kind == "simulated"
    if as_json:
        told = {"study": folder.name, "simulated": simulated, "break_even": answer.to_json()}
        print_json(told | ({} if trained is None else {"training": trained.to_json()}))
    else:
        if simulated:
            print_simulated()
        print_break_even_of(answer)
        if trained is not None:
            print_training(trained)
    return ExitCode.DONE if answer.missing is None else ExitCode.NO


def candidate_of(records: Sequence[TrialRecord], space: SearchSpace, named: str) -> str:
    """Return the id of the candidate that is named by its label, one of its trials, or the beginning of its id.

    Raises:
        SpectuneError: It is none of the study's speculative ones, or more than one.
    """
    speculative = [record for record in records if record.candidate.speculative]
    by_trial = {str(record.trial): record.candidate.candidate_id for record in speculative}
    labels = {record.candidate.candidate_id: space.label(record.candidate) for record in speculative}
    labelled = {one for one, label in labels.items() if label == named}
    found = {by_trial[named]} if named in by_trial else labelled or {
        one for one in labels if named and one.startswith(named)
    }  # fmt: skip
    if len(found) != 1:
        raise SpectuneError(
            "--candidate takes a label, the number of a trial with speculation, or the beginning of an id, "
            f"but got {named!r}; candidates with speculation: "
            + ("; ".join(f"{label} ({one})" for one, label in sorted(labels.items())) or "none")
        )
    return found.pop()


def _points(asked: Asked) -> list[DrafterPoint]:
    """Return the points that were given; none where none were.

    Raises:
        SpectuneError: They cannot be, or what belongs to them is missing.
    """
    tokens = asked.tokens_per_sample
    if tokens is not None and not 1 <= tokens <= MOST_TOKENS:
        raise SpectuneError(f"--tokens-per-sample must be from 1 to {MOST_TOKENS:,}, but got {tokens}")
    if bool(asked.points) != (tokens is not None):
        raise SpectuneError("--drafter-points SAMPLES:ACCEPT… and --tokens-per-sample N go together")
    return parse_points(asked.points) if asked.points else []
