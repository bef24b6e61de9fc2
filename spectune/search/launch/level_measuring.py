"""The levels of one launch: measured one after the other, each judged by what client and engine saw of it."""

from __future__ import annotations

from collections.abc import Callable

from spectune.analysis.acceptance import NOTHING_ACCEPTED
from spectune.analysis.canary import ENOUGH_VERIFIES
from spectune.analysis.level_notes import too_short
from spectune.analysis.measure import NothingMeasuredError, measure_level
from spectune.analysis.measurement import LevelMeasurement
from spectune.bench.level import LevelRun
from spectune.bench.records import dump_records
from spectune.engines.protocol import Engine, Mismatch
from spectune.engines.served import Served
from spectune.machine import Others
from spectune.search.launch.crosschecks import LevelSeen
from spectune.search.launch.dominated import Dominated
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.launched import Launched, TrialFailed
from spectune.search.launch.traffic import level_plan
from spectune.search.storage.steps import Step
from spectune.search.watcher import Watcher
from spectune.serving import Failure, FailureClass, classify_requests
from spectune.space import Level, SearchSpace

MOST_BLIND = 0.05  # of the time in which a level is measured; what arrives meanwhile seems to come late
MOST_FAILED = 0.02  # of a level's requests; with more, its figures are about the failures


class Levels:
    """What was measured of a launch so far.

    Attributes:
        measured: The levels, in order.
        suspect: What client and engine counted differently.
        notes: What a reader should know of the levels, in sentences.
        others: Level → what other programs used of the machine meanwhile, as far as it was missed.
    """

    def __init__(
        self,
        step: Step,
        space: SearchSpace,
        engine: Engine,
        feed: PromptFeed,
        watcher: Watcher,
        dominated: Dominated | None,
        *,
        hang_s: float,
        keep: Callable[[str, Callable[[], bytes]], None],
    ) -> None:
        """Prepare them.

        Args:
            step: What is launched.
            space: The search space.
            engine: The engine.
            feed: Where prompts come from.
            watcher: Who is told.
            dominated: Ends levels early where other launches are better; None measures all of them in full.
            hang_s: Seconds without a token for any request that count as a hang.
            keep: Takes the name and the content of a file of the launch.
        """
        self.measured: list[LevelMeasurement] = []
        self.suspect: list[Mismatch] = []
        self.notes: list[str] = []
        self.others: dict[str, Others] = {}
        self._step, self._space, self._engine, self._feed = step, space, engine, feed
        self._watcher, self._dominated, self._hang_s, self._keep = watcher, dominated, hang_s, keep
        self._retractions = 0  # in the engine's log so far

    async def measure(self, launched: Launched, level: Level, most_running: int | None) -> LevelMeasurement:
        """Measure a level.

        Args:
            launched: The launch.
            level: The load.
            most_running: Requests the engine runs at once; None where it does not say.

        Raises:
            EngineFailed: The engine died of it.
            TrialFailed: What was measured is not the engine's speed.
        """
        plan = level_plan(self._space, level, self._feed.workload, hang_s=self._hang_s)
        give_up = None if self._dominated is None else self._dominated.by_anyone(self.measured, level.name)
        run = await launched.measure(
            plan, self._feed, lambda text: self._watcher.says(f"{level.name}: {text}"), give_up
        )
        self._keep(level.file_name, lambda: dump_records(run.records))
        self._judge(launched, level, run)
        served = Served()
        if run.measured_s is not None:
            level_began = launched.now() - run.wall_s
            begin_s, end_s = (level_began + at for at in run.measured_s)
            served = launched.served(begin_s, end_s, level.concurrency)
        try:
            measured = measure_level(
                level.name, run.records, run.measured_s,
                client_cpu=run.client_cpu, graph_used=served.graph_used, shares_prefix=self._space.workload.shares_text,
            )  # fmt: skip
        except NothingMeasuredError as error:
            excerpt = launched.log_tail()
            raise TrialFailed(Failure(FailureClass.CRASH, str(error), excerpt)) from None
        if (said := self._nothing_accepted(measured, run)) is not None:
            self.notes.append(said)
        self.measured.append(measured)
        limited = run.stop_reason == "time"
        if limited and (said := too_short(measured, plan.time_limit_s, plan.min_requests)) is not None:
            self.notes.append(said)
        self._cross_check(level, run, measured, served, most_running, launched.others())
        return measured

    def _judge(self, launched: Launched, level: Level, run: LevelRun) -> None:
        """Raise if what was measured is not the engine's speed at this level."""
        if (died := launched.died()) is not None:
            raise died
        errors = [record.error for record in run.records if record.error is not None]
        begin_s, end_s = run.measured_s or (0.0, run.wall_s)
        stood_still = run.blind_s > MOST_BLIND * (end_s - begin_s)
        hangs = run.stop_reason == "hang"
        failed = not run.records or len(errors) > MOST_FAILED * len(run.records)
        # What keeps this process from looking may well silence the engine, too.
        if (hangs and not stood_still) or (failed and not hangs):
            excerpt = launched.log_tail()
            raise TrialFailed(classify_requests(errors, level.name, len(run.records), hangs=hangs, excerpt=excerpt))
        if stood_still:
            said = (
                f"spectune itself stood still for {run.blind_s:.0f} s while {level.name} was measured (stopped, or "
                "without a processor), so nobody knows how fast the engine was"
            )
            raise TrialFailed(Failure(FailureClass.ENVIRONMENT, said, ""))

    def _nothing_accepted(self, measured: LevelMeasurement, run: LevelRun) -> str | None:
        """Say that the drafter is never right here, although the canary's answers were drafted; the figures hold."""
        verifies = sum(record.spec_verify_ct for record in run.records)
        length = measured.accept_length.est
        if not self._step.candidate.speculative or verifies < ENOUGH_VERIFIES or length > NOTHING_ACCEPTED:
            return None
        causes = "; ".join(self._engine.unaccepted(self._step.candidate))
        return (
            f"accept length {length:.2f} after {verifies} verifies at {measured.level}: nothing that is drafted for "
            f"this workload is accepted, although an easy prompt's drafts were. Likely causes, in this order: {causes}"
        )

    def _cross_check(
        self, level: Level, run: LevelRun, measured: LevelMeasurement, served: Served, most_running: int | None,
        others: Others,
    ) -> None:  # fmt: skip
        self.others[level.name] = others
        seen = LevelSeen(
            measured, run.records, level.concurrency, served,
            retractions_before=self._retractions,
            most_running=most_running,
            distinct_prompts=self._space.workload.distinct_prompts and not self._feed.reused,
            others=others,
        )  # fmt: skip
        self._retractions = served.retractions
        self.suspect += seen.contradictions()
        self.notes += seen.notes()
        if run.stop_reason == "dominated":
            self.notes.append(
                f"{level.name} was ended early: another launch is better in every objective, beyond noise"
            )
        if run.measured_s is not None and not run.warmup_converged:
            self.notes.append(f"{level.name} was still warming up when it began to count: two windows never agreed")
