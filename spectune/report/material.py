"""What all sections of a report are made of: a study's summary and records, without its secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spectune.analysis.why import BreakEvenOfStudy
from spectune.blotting import blotted
from spectune.export import secret_values
from spectune.search import Summary
from spectune.search.answer.sentence import unconfirmed
from spectune.search.answer.summary_fields import CandidateLevel
from spectune.search.storage.records import TrialRecord
from spectune.search.why import break_even_of
from spectune.space import SearchSpace


@dataclass(frozen=True)
class Material:
    """A study as it may be shown.

    Attributes:
        told: Its answer, secrets blotted out.
        trials: All launches, failed and suspect ones too, secrets blotted out.
        environment: Content of `environment.json`, secrets blotted out; may be empty.
        records: The same as they were.
        space: The search space.
        secrets: What must not be shown.
    """

    told: Summary
    trials: Sequence[TrialRecord]
    environment: Mapping[str, Any]
    records: Sequence[TrialRecord]
    space: SearchSpace
    secrets: frozenset[str]

    @classmethod
    def of(
        cls, summary: Summary, records: Sequence[TrialRecord], environment: Mapping[str, Any], space: SearchSpace
    ) -> Material:
        """Return the material of a study, its secrets blotted out."""
        secrets = secret_values(record.command for record in records)
        return cls(
            told=blotted(summary, secrets),
            trials=[record.without(secrets) for record in records],
            environment=blotted(environment, secrets),
            records=records,
            space=space,
            secrets=secrets,
        )

    def shown(self, text: str) -> str:
        """Return a text without secrets."""
        return blotted(text, self.secrets)

    @property
    def rows(self) -> Sequence[CandidateLevel]:
        """Candidates at levels."""
        return self.told.candidates

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Names of candidates by their id."""
        return {r.candidate.candidate_id: self.shown(self.space.label(r.candidate)) for r in self.records}

    @cached_property
    def baselines(self) -> frozenset[str]:
        """Ids of candidates without speculation."""
        return frozenset(r.candidate.candidate_id for r in self.records if not r.candidate.speculative)

    @cached_property
    def pareto(self) -> frozenset[str]:
        """Ids of candidates that nothing beats in every objective."""
        best = set(self.told.pareto)
        return frozenset(r.candidate.candidate_id for r in self.records if r.trial in best)

    def doubt(self, candidate_id: str) -> str:
        """Return what is to be known of a candidate that was not relaunched after it was picked; empty if it was."""
        row = next((row for row in self.rows if row.candidate_id == candidate_id), None)
        return "" if row is None or row.confirmed else unconfirmed(row.trials)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Levels in the order of the file, as far as they were measured."""
        measured = {level.level for trial in self.trials for level in trial.levels}
        return tuple(name for name in self.space.workload.level_names if name in measured)

    @property
    def recommended(self) -> str | None:
        """Id of the candidate to run."""
        return None if self.told.recommended is None else self.told.recommended.candidate_id

    @cached_property
    def break_even(self) -> BreakEvenOfStudy:
        """What the study says about whether speculation pays and why not more, secrets blotted out."""
        found = break_even_of(self.records, self.space, engine=self.told.engine, study=self.told.study)
        return blotted(found, self.secrets)

    @cached_property
    def remarks(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """What wanted speeds ask for, and figures that do not fit together, by candidate and level, in sentences."""
        whole = [row for row in self.break_even.rows if row.prompt_class is None]
        return {
            (row.candidate_id, row.level): [*(n.words for n in row.needed), *(c.words for c in row.contradictions)]
            for row in whole
        }

    @cached_property
    def focus(self) -> str | None:
        """Id of the speculating candidate that the report looks at closely: the one in question."""
        if self.break_even.candidate_id is not None:
            return self.break_even.candidate_id
        speculating = [row for row in self.rows if row.candidate_id not in self.baselines]
        first = self.space.objectives[0].level
        ranked = sorted(speculating, key=lambda row: (row.level != first, -row.figures.decode_speed.est))
        return ranked[0].candidate_id if ranked else None

    @cached_property
    def _places(self) -> Mapping[tuple[str | None, str], CandidateLevel]:
        return {(row.candidate_id, row.level): row for row in self.rows}

    def row(self, candidate_id: str | None, level: str) -> CandidateLevel | None:
        """Return a candidate's figures at a level."""
        return self._places.get((candidate_id, level))

    def rows_of(self, candidate_id: str) -> list[CandidateLevel]:
        """Return a candidate's figures at the levels it was measured at, in the order of the file."""
        return [row for level in self.levels if (row := self.row(candidate_id, level)) is not None]

    def baseline_at(self, level: str) -> CandidateLevel | None:
        """Return the fastest candidate without speculation at a level."""
        found = [row for row in self.rows if row.candidate_id in self.baselines and row.level == level]
        return max(found, key=lambda row: row.figures.decode_speed.est, default=None)


def speedup_of(row: CandidateLevel) -> float:
    """Return the speedup that a row is ranked by; 0 where it was not compared."""
    return 0.0 if row.figures.speedup is None else row.figures.speedup.est
