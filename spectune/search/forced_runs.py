"""Launches with SGLang's simulated acceptance, beside a study: does what the arithmetic predicts come true?

They lie under `what-if/`, apart from the trials, and leave no record that anything scores or exports; the engine's
read-back would make it suspect all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spectune import files
from spectune.analysis.why.forced import ForcedRound, ForcedRuns, against_predictions, forced_lengths
from spectune.bench.prompt_stream import PromptStream
from spectune.counts import count
from spectune.engines.open import open_engine
from spectune.engines.protocol import Mismatch, Occasion
from spectune.engines.sglang.forced_acceptance import ALGORITHMS, LENGTH, OFF
from spectune.errors import SpectuneError
from spectune.search.evidence.setting import Setting
from spectune.search.launch.canary import SAMPLED, Canaries
from spectune.search.launch.canary import SEED as CANARY_SEED
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.traffic import open_prompts
from spectune.search.launch.trial import Trial
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.kept_prompts import refuse_other_prompts
from spectune.search.storage.records import TrialRecord
from spectune.search.storage.steps import Role, Step
from spectune.search.watcher import Watcher
from spectune.space import Candidate, SearchSpace

WHAT_IF = "what-if"
OPEN = "at a rate or a trace the accept length changes how many requests share a cycle, so its cycle predicts no other"
SCHEMA = 1


async def run_forced(
    folder: StudyFolder,
    space: SearchSpace,
    records: Sequence[TrialRecord],
    candidate: Candidate,
    watcher: Watcher,
    *,
    rounds: int = 1,
) -> ForcedRuns:
    """Launch a candidate as it is, once for each accept length it is made to have, and as it is again; and compare.

    Every launch is asked the same prompts, and answers to `output_tokens` whatever it says: forced answers are rubbish.

    Args:
        folder: Of the study.
        space: Its space.
        records: Its launches.
        candidate: With speculation.
        watcher: Who is told.
        rounds: How often, in alternating order; more say more on a machine whose launches differ.

    Raises:
        SpectuneError: SGLang cannot force this candidate's acceptance, no level keeps requests in flight, the prompts
            are not those of the study, or a launch failed.
    """
    if candidate.algorithm not in ALGORITHMS:
        raise SpectuneError(
            f"SGLang forces acceptance for {', '.join(sorted(ALGORITHMS))}, not for {candidate.algorithm}"
        )
    space, left_out = at_closed_loops(space)
    if left_out:
        watcher.notes(f"not compared: {', '.join(left_out)}; {OPEN}")
    own = folder.root / WHAT_IF / candidate.candidate_id
    runs = _Runs(space, records, candidate, folder, watcher)
    lengths = forced_lengths(Setting.of({**space.engine.args, **candidate.values}).depth + 1)
    before, made = await runs.launch(own / "as-it-is-0", None), []
    for number in range(1, rounds + 1):
        order = lengths if number % 2 else lengths[::-1]
        forced = {length: (await runs.launch(own / f"accept-{length}-{number}", length)).levels for length in order}
        after = await runs.launch(own / f"as-it-is-{number}", None)
        made.append(ForcedRound(before.levels, forced, after.levels))
        before = after
    found = against_predictions(made)
    content = {"schema": SCHEMA, "study": folder.name, **candidate.to_json(), **found.to_json()}
    files.write_json(own / "what-if.json", content)
    return found


def at_closed_loops(space: SearchSpace) -> tuple[SearchSpace, list[str]]:
    """Return a space without its open loops, and their names.

    Raises:
        SpectuneError: It has no other levels.
    """
    levels = tuple(level for level in space.workload.levels if not level.open_loop)
    if not levels:
        raise SpectuneError(f"there is no level to compare at; {OPEN}")
    workload = space.workload.model_copy(update={"levels": levels})
    left_out = [level.name for level in space.workload.levels if level.open_loop]
    return replace(space, file=space.file.model_copy(update={"workload": workload})), left_out


class _Runs:
    """Launches of one candidate with the study's workload."""

    def __init__(
        self,
        space: SearchSpace,
        records: Sequence[TrialRecord],
        candidate: Candidate,
        study: StudyFolder,
        watcher: Watcher,
    ) -> None:
        workload = space.workload.model_copy(update={"ignore_eos": True})
        self._space = replace(space, file=space.file.model_copy(update={"workload": workload}))
        self._prompts = open_prompts(space)
        refuse_other_prompts(study, self._prompts)
        self._records, self._candidate, self._study, self._watcher = records, candidate, study, watcher
        self._made = 0

    async def launch(self, folder: Path, accept_length: int | None) -> TrialRecord:
        """Make one launch; None forces nothing.

        Raises:
            SpectuneError: It failed.
        """
        section = self._space.engine
        forced = {LENGTH: OFF if accept_length is None else str(accept_length)}
        space = self._space.with_engine(section.model_copy(update={"env": {**section.env, **forced}}))
        engine = open_engine(space)
        number = len(self._records) + self._made
        self._made += 1
        what = "as it is" if accept_length is None else f"made to accept {count(accept_length, 'token')} a verify"
        step = Step(number, Role.SEARCH, self._candidate, f"what if: {what}")
        self._watcher.launching(step)
        renderer = engine.renderer()
        try:
            feed = PromptFeed(
                self._prompts, renderer,
                chat_template=space.workload.chat_template, output_tokens=space.workload.output_tokens,
                start=max((record.prompts_end for record in self._records), default=0),
            )  # fmt: skip
            hours = math.fsum(record.seconds.total for record in self._records) / 3600.0
            occasion = Occasion(number, hours, self._study.root)
            sampled = PromptStream(self._prompts, seed=CANARY_SEED).take(SAMPLED)
            canaries = Canaries(sampled, engine, renderer, chat_template=space.workload.chat_template, judged=False)
            record = await Trial(step, folder, space, engine, feed, canaries, self._watcher, occasion).run()
        finally:
            renderer.close()
        if record.failure is not None:
            raise SpectuneError(f"the launch {what} failed: {record.failure.message}; see {folder / 'server.log'}")
        mine = Mismatch(LENGTH, "unset", str(accept_length))  # kept with the launch, but nobody left this one on
        self._watcher.finished(replace(record, suspect=tuple(found for found in record.suspect if found != mine)))
        return record
