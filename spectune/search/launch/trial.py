"""One launch: start the engine, measure every level, end it, and say what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from spectune import files
from spectune.blotting import blot_file, blotted
from spectune.engines.address import DEFAULT_PORT, Address
from spectune.engines.protocol import Effective, Engine, LaunchCommand, Mismatch, Occasion
from spectune.engines.simulated.engine import SimulatedEngine
from spectune.errors import SpectuneError
from spectune.machine import MachineWatch
from spectune.search.launch.canary import Canaries
from spectune.search.launch.dominated import Dominated
from spectune.search.launch.feed import PromptFeed
from spectune.search.launch.launch_script import launch_script
from spectune.search.launch.launch_time import Account
from spectune.search.launch.launched import Launched, ServedLaunch, TrialFailed
from spectune.search.launch.level_measuring import Levels
from spectune.search.launch.room import Room, room_for_launch
from spectune.search.launch.traffic import longest_measuring_s
from spectune.search.launch.virtual import VirtualLaunch
from spectune.search.storage.folder import StudyFolder
from spectune.search.storage.launch_files import SCRIPT
from spectune.search.storage.records import Status, TrialRecord
from spectune.search.storage.steps import Step
from spectune.search.storage.worker_variables import GPUS, Reached, read_back
from spectune.search.watcher import Watcher
from spectune.serving import EngineFailed, Failure, FailureClass, PortHeldError, reserve_ports
from spectune.serving.waiting import PROGRAM_S
from spectune.space import SearchSpace
from spectune.withheld import secret_values, secret_variables

HANG_S = 45.0  # without a token for any request; with the 10 s an engine may take to die, known within a minute
STOP_GRACE_S = 8.0


class Trial:
    """A launch under way."""

    def __init__(
        self,
        step: Step,
        folder: Path | None,
        space: SearchSpace,
        engine: Engine,
        feed: PromptFeed,
        canaries: Canaries,
        watcher: Watcher,
        occasion: Occasion,
        dominated: Dominated | None = None,
        room: Room | None = None,
    ) -> None:
        """Prepare a launch.

        Args:
            step: What to launch.
            folder: Where its files go; None to keep none, for studies that only count by their outcome.
            space: The search space.
            engine: The engine.
            feed: Where prompts come from.
            canaries: What every launch is asked before it is measured.
            watcher: Who is told.
            occasion: Where in the study it stands.
            dominated: Ends levels early where other launches are better; None measures all of them in full.
            room: What whoever makes the launch holds for it; None takes it for this launch alone.
        """
        self._room = room
        self._step, self._folder, self._space, self._canaries = step, folder, space, canaries
        self._engine, self._feed, self._watcher, self._occasion = engine, feed, watcher, occasion
        self._levels = Levels(step, space, engine, feed, watcher, dominated, hang_s=HANG_S, keep=self._keep)
        self._suspect: list[Mismatch] = []
        self._reached: tuple[Reached, ...] = ()
        self._gpu_variables: Mapping[str, str] = {}  # this machine's alone: in no record's command, in no export
        self._effective = Effective()
        self._notes: list[str] = []
        self._secrets: frozenset[str] = frozenset()  # of this launch: no file and no line of ours holds them

    async def run(self) -> TrialRecord:
        """Make the launch and return its record; the engine is gone when this returns or raises."""
        async with self._launch() as (command, launched):
            started_at, account = datetime.now(UTC).isoformat(timespec="seconds"), Account(launched.now)
            try:
                failure = await self._failure(launched, command, account)
            finally:
                await self._end(launched, account)
            seconds = account.closed()
        suspect = (*self._suspect, *self._levels.suspect)
        record = TrialRecord(
            trial=self._step.trial,
            role=self._step.role,
            candidate=self._step.candidate,
            launch_index=self._occasion.number,
            why=self._step.why,
            look=self._step.look,
            started_at=started_at,
            status=Status.FAILED if failure else Status.SUSPECT if suspect else Status.OK,
            seconds=seconds,
            command=command,
            prompts_end=self._feed.position,
            failure=failure,
            suspect=suspect,
            levels=tuple(self._levels.measured),
            environment_reached=self._reached,
            effective=self._effective,
            notes=(*self._notes, *self._levels.notes),
            environment_changes=launched.machine_changes(),
            others=self._levels.others,
            place=self._step.place,
        )
        return record.without(self._secrets)

    @contextlib.asynccontextmanager
    async def _launch(self) -> AsyncIterator[tuple[LaunchCommand, Launched]]:
        """Yield the command and its launch, which holds its ports and GPUs meanwhile."""
        wanted = self._space.engine.args.get("port")
        port = wanted if isinstance(wanted, int) else None
        address = Address.for_launch(self._space.engine.args)
        candidate, engine = self._step.candidate, self._engine
        if isinstance(engine, SimulatedEngine) and engine.virtual:
            command = engine.command(candidate, host=address.host, port=port or DEFAULT_PORT, api_key=address.api_key)
            self._write_launch(command, address)
            launch = VirtualLaunch(engine.profile, command, engine.study_variables(self._occasion))
            yield command, launch
            self._keep("server.log", lambda: blotted(launch.log_tail(1 << 20) + "\n", self._secrets))
            return
        assert self._folder is not None, "a process tree needs a folder for its log"
        notes, parallel = self._watcher.notes, self._space.engine.parallel
        taken = await room_for_launch(self._room, self._occasion.folder, engine, parallel, notes)
        with taken as room, reserve_ports(port, study=StudyFolder(self._occasion.folder).name) as ports:
            command = engine.command(
                candidate, host=address.host, port=ports.http, nccl_port=ports.nccl, api_key=address.api_key
            )
            self._write_launch(command, address)
            self._gpu_variables = room.group.variables
            supervised = engine.supervised(command, self._occasion).with_variables(self._gpu_variables)
            log = self._folder / "server.log"
            machine = MachineWatch(
                StudyFolder(self._occasion.folder).environment(), engine.title,
                gpus=engine.gpus_held,
                variable=supervised.environment(os.environ).get(GPUS),
            )  # fmt: skip
            yield command, ServedLaunch(
                engine, supervised, address=address, port=ports.http, log=log, hang_s=HANG_S, notes=notes,
                machine=machine,
            )  # fmt: skip

    @property
    def _start_s(self) -> float:
        """Seconds the engine may take to start."""
        return self._space.engine.startup_timeout + self._engine.start_allowance_s(self._step.candidate)

    async def _failure(self, launched: Launched, command: LaunchCommand, account: Account) -> Failure | None:
        """Serve and measure; return why that could not be done."""
        start_s = PROGRAM_S + self._start_s
        longest_s = start_s + longest_measuring_s(self._space, self._feed.workload, hang_s=HANG_S)
        try:
            async with asyncio.timeout(longest_s) as patience:
                await self._serve(launched, command, account)
        except EngineFailed as died:
            return self._engine.classify(died)
        except PortHeldError as held:
            return Failure(FailureClass.PORT_IN_USE, str(held), launched.log_tail())
        except TrialFailed as failed:
            return failed.failure
        except TimeoutError:
            if not patience.expired():
                raise
            words = f"the launch was not done after {longest_s:.0f} s, although each of its parts has a limit"
            return Failure(FailureClass.HANG, words, launched.log_tail())
        return None

    async def _serve(self, launched: Launched, command: LaunchCommand, account: Account) -> None:
        self._watcher.says("starting the engine")
        with account.spending_on("startup"):
            info = await launched.start(self._start_s, lambda text: self._watcher.says(blotted(text, self._secrets)))
        if self._folder is not None:
            files.write_json(self._folder / "server_info.json", blotted(dict(info), self._secrets))
        self._suspect = self._engine.mismatches(self._step.candidate, info)
        self._effective = launched.effective(info)
        self._suspect += self._engine.differences(self._step.candidate, self._effective)
        self._read_back(launched, command)
        self._watcher.says("asking the canaries")
        with account.spending_on("checking"):
            for note in await self._canaries.check(launched, self._step.candidate, self._folder):
                self._notes.append(note)
                self._watcher.notes(note)
        for level in self._space.workload.levels:
            with account.spending_on("measuring"):
                measured = await self._levels.measure(launched, level, self._effective.max_running_requests)
            self._watcher.measured(measured)

    def _read_back(self, launched: Launched, command: LaunchCommand) -> None:
        """Raise if a variable of the launch is not what the workers have."""
        workers = launched.workers(self._engine.worker_title)
        self._reached = read_back(command.with_variables(self._gpu_variables), workers, self._engine.set_by_launcher)
        self._suspect += self._engine.falsified(workers)
        if not workers:
            self._suspect.append(Mismatch("worker environments", "readable", "no worker process was found"))
            return
        lost = [reached.words for reached in self._reached if reached.workers < reached.of]
        if lost:
            raise TrialFailed(Failure(FailureClass.ENVIRONMENT, "; ".join(lost), ""))

    async def _end(self, launched: Launched, account: Account) -> None:
        self._watcher.says("ending the engine")
        with account.spending_on("shutdown"):
            try:
                teardown = await asyncio.shield(asyncio.ensure_future(launched.stop(STOP_GRACE_S)))
            finally:  # also when a second Ctrl-C does not wait for the engine's end
                if self._folder is not None:
                    await asyncio.to_thread(blot_file, self._folder / "server.log", self._secrets)
        if teardown.left:
            raise SpectuneError(
                f"{teardown.left} engine processes of trial {self._step.trial} cannot be ended; "
                "see `ps -ef | grep sglang`, then run the same command again"
            )

    def _write_launch(self, command: LaunchCommand, address: Address) -> None:
        self._secrets = secret_values([command]) | secret_variables(os.environ)
        script = launch_script(command, self._engine, address.api_key)
        self._keep(SCRIPT, lambda: blotted(script, self._secrets), executable=True)

    def _keep(self, name: str, content: Callable[[], str | bytes], *, executable: bool = False) -> None:
        if self._folder is not None:
            files.write_whole(self._folder / name, content(), executable=executable)
