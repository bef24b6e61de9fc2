"""`spectune breakeven` for a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from spectune.analysis.break_even_input import check_inputs
from spectune.analysis.why import DrafterPoint
from spectune.cli.break_even_request import Asked, Given
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


def run_break_even_of(study: str, given: Given, asked: Asked, *, targets: Sequence[float], as_json: bool) -> int:
    """Print what a study says; returns the exit code.

    Raises:
        SpectuneError: Figures were given too, or something of it cannot be.
    """
    if any(value is not None for value in astuple(given)):
        raise SpectuneError("give either a STUDY or figures (--baseline, --cycle-ms, --accept, --steps, --speed)")
    return _of_study(study, asked, targets=targets, as_json=as_json)


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
    answer = break_even_of(
        records,
        space,
        targets=targets or None,
        engine_cycles=cycles,
        candidate_id=wanted,
        engine=folder.engine_title,
        study=folder.name,
    )
    if wanted is not None and answer.candidate_id not in (None, wanted):
        raise SpectuneError(f"--candidate {asked.candidate}: no launch of it was measured as asked for")
    trained = training_of(
        answer, records, space, points, tokens_per_sample=asked.tokens_per_sample or 1
    ) if points else None  # fmt: skip
    simulated = space.engine.is_simulated
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
    """Return the id of the candidate that is named by its label, words or parts of it, a launch, or how its id begins.

    Raises:
        SpectuneError: It is none of the study's speculative ones, or more than one.
    """
    speculative = [record for record in records if record.candidate.speculative]
    by_trial = {str(record.trial): record.candidate.candidate_id for record in speculative}
    candidates = {record.candidate.candidate_id: record.candidate for record in speculative}
    labels = {one: space.label(candidate) for one, candidate in candidates.items()}
    asked = set(named.split())
    found = (
        {by_trial[named]} if named in by_trial
        else {one for one, label in labels.items() if label == named}
        or {one for one, candidate in candidates.items() if asked and asked <= set(candidate.label.split())}
        or {one for one in labels if named and one.startswith(named)}
        or {one for one, label in labels.items() if asked and all(part in label for part in asked)}
    )  # fmt: skip
    if len(found) != 1:
        fits = "fits none" if not found else f"fits {len(found)} of them"
        listed = sorted((label, one) for one, label in labels.items() if not found or one in found)
        raise SpectuneError(
            "--candidate takes words or parts of a label that no other has, the number of a launch with speculation, "
            f"or how an id begins, but {named!r} {fits}; candidates with speculation:"
            + ("".join(f"\n  {label} ({one})" for label, one in listed) or " none")
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
