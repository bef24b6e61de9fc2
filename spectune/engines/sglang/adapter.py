"""SGLang behind the Engine protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from spectune.engines.parts import Assignment, Illegal, Part, joined
from spectune.engines.protocol import Effective, EngineSoftware, LaunchCommand, Mismatch, Occasion, Renderer
from spectune.engines.served import Served
from spectune.engines.sglang import arguments, effective
from spectune.engines.sglang.arguments import CompleteLaunch
from spectune.engines.sglang.drafting import capture_allowance_s, causes_of_nothing_accepted
from spectune.engines.sglang.echo import echoed_otherwise
from spectune.engines.sglang.forced_acceptance import LENGTH, forced_lengths
from spectune.engines.sglang.interpreter import Interpreter
from spectune.engines.sglang.lacks import lacks
from spectune.engines.sglang.legality import Legality
from spectune.engines.sglang.log_signatures import SIGNATURES
from spectune.engines.sglang.named_models import NamedModels
from spectune.engines.sglang.options import SHIPPED_VERSION, Options
from spectune.engines.sglang.preflight.drafters import Drafters
from spectune.engines.sglang.rules.folding import Rulebook, nearest_legal
from spectune.engines.sglang.rules.judging import Finding
from spectune.engines.sglang.rules.names import ALGORITHM, MODEL, reported_algorithm
from spectune.engines.sglang.tokenizer import Tokenizer
from spectune.engines.sglang.versions.translation import translate
from spectune.errors import Problem
from spectune.serving import EngineFailed, Failure
from spectune.space import DRAFTER, Candidate, is_speculative


@dataclass(frozen=True)
class SGLangEngine:
    """The one real engine.

    Attributes:
        interpreter: The Python that has SGLang.
        version: Its SGLang's version; None when it is not there.
        fixed: Arguments every launch shares, the runtime's own included.
        env: Variables every launch shares.
        gpus: GPUs a launch needs; 0 on the cpu-reference runtime.
        most_running: Requests the workload keeps running at its busiest level.
        unset: Variables absent from every launch.
        models: Folder that `runtime:NAME` model references stand for; None without a runtime.
        options: The options of its SGLang.
        check_drafters: Whether drafters that cannot work are kept from being launched.
    """

    interpreter: Interpreter
    version: str | None
    fixed: Mapping[str, Any]
    env: Mapping[str, str]
    gpus: int
    most_running: int
    unset: tuple[str, ...] = ()
    models: Path | None = None
    simulated: bool = False
    options: Options = field(default_factory=Options.shipped)
    check_drafters: bool = True

    @property
    def title(self) -> str:
        """Name and version, as shown to people."""
        return f"SGLang {self.version or '(not installed)'}" + ("" if self.gpus else " on the CPU reference runtime")

    @property
    def program(self) -> str:
        """The interpreter that a launch command names: its path, so that PATH does not decide which one runs."""
        return self.interpreter.path() or self.interpreter.python

    @property
    def cuda(self) -> bool:
        """Whether launches run on CUDA GPUs."""
        return bool(self.fixed.get("device", "cuda") == "cuda")

    @property
    def gpus_held(self) -> int:
        """GPUs of this machine whose memory a launch fills."""
        return self.gpus if self.cuda and not self.simulated else 0

    def software(self) -> EngineSoftware:
        """Return the versions in its interpreter; nothing where there is no SGLang."""
        return EngineSoftware() if self.version is None else self.interpreter.software()

    def missing(self) -> list[Problem]:
        """Return what this machine lacks for launching SGLang."""
        said = list(lacks(self.interpreter, self.version, self.gpus if self.cuda else 0))
        if (beyond := self._legality.beyond_gpus({})) is not None:
            said.append(f"{beyond.reason}; raise engine.gpus")
        return [Problem(one) for one in said]

    def missing_model(self, reference: Any) -> str | None:
        """Say that a model folder does not exist; names of a hub pass, they are the engine's to find."""
        return self._named.missing(reference)

    def canonical(self, assignment: Assignment) -> Candidate | Illegal:
        """Return the one candidate that stands for every assignment SGLang would treat alike."""
        names = self.draft_names(assignment.keys())
        draft = self.draft_part({name: value for name, value in assignment.items() if name in names})
        if draft.illegal is not None:
            return draft.illegal
        rest = self.rest_part(draft.key, {name: value for name, value in assignment.items() if name not in names})
        return rest.illegal or joined(draft, rest)

    def draft_names(self, names: Collection[str]) -> frozenset[str]:
        """Return S, K, N, the algorithm and an older SGLang's overlap variable; all where rules couple them to more."""
        return self._legality.draft_names(names)

    def draft_part(self, values: Assignment) -> Part:
        """Judge S, K, N and the algorithm, whatever else is chosen."""
        return self._legality.draft_part(values)

    def rest_part(self, key: Any, values: Assignment) -> Part:
        """Judge everything else beside any draft with this key."""
        return self._legality.rest_part(key, values)

    def preflight(self, values: Assignment, longest_request: int | None = None) -> list[Finding]:
        """Say what is wrong with the drafter of an assignment, from config.json and tensor headers."""
        return self._legality.drafters.findings(values, longest_request)

    def repaired(self, assignment: Assignment) -> Assignment:
        """Return the assignment with N moved into the bounds that S and K set."""
        return nearest_legal(assignment)

    def command(
        self, candidate: Candidate, *, host: str, port: int, nccl_port: int | None = None, api_key: str | None = None
    ) -> LaunchCommand:
        """Return the launch with every argument explicit on which a default could silently differ."""
        launch = self._launch(candidate)
        given = self._named.placed(launch.arguments)
        given |= {"host": host, "port": port, "nccl-port": nccl_port, "api-key": api_key}  # what is None is left out
        there = translate(given, launch.env, self.options, launch.unset)
        argv = (self.program, *arguments.LAUNCHER, *arguments.to_argv(there.arguments))
        return LaunchCommand(argv, there.env, launch.unset)

    def supervised(self, command: LaunchCommand, occasion: Occasion) -> LaunchCommand:  # noqa: ARG002 (the protocol's)
        """Let SIGTERM end the engine at once, instead of after the last running request."""
        return replace(command, env={**command.env, "SGL_FORCE_SHUTDOWN": "1"})

    @property
    def worker_title(self) -> str:
        """Schedulers; the kernel keeps 15 characters of a name."""
        return "sglang::schedul"

    @property
    def set_by_launcher(self) -> frozenset[str]:
        """What `entrypoints/engine.py` sets before it spawns the schedulers (facts, section 1.3)."""
        return effective.SET_BY_LAUNCHER

    def falsified(self, workers: Sequence[Mapping[str, str]]) -> list[Mismatch]:
        """Return simulated acceptance that somebody left on."""
        return [Mismatch(LENGTH, "unset", f"{length:g}") for length in forced_lengths(workers)]

    @property
    def known_start_s(self) -> float | None:
        """Nothing: how long weights take to load is the machine's to say."""
        return None

    def start_allowance_s(self, candidate: Candidate) -> float:
        """Return how many seconds longer than a plain launch a candidate's may take to start."""
        return capture_allowance_s(self._launch(candidate).arguments)

    def unaccepted(self, candidate: Candidate) -> Sequence[str]:
        """Return why nothing that a candidate drafts may be accepted, most likely first, in words."""
        return causes_of_nothing_accepted(str(candidate.values[ALGORITHM]), candidate.values.get(DRAFTER))

    def belongings(self) -> Mapping[str, str]:
        """Return nothing: the engine's version is in the study's environment."""
        return {}

    def notes(self, candidate: Candidate) -> tuple[str, ...]:
        """Say what the installed version takes under another name, or does not do quite as SGLang 0.5.23 does."""
        launch = self._launch(candidate)
        return translate(launch.arguments, launch.env, self.options, launch.unset).notes

    def added(self, candidate: Candidate) -> dict[str, Any]:
        """Return the arguments of a launch that neither the space nor the candidate names."""
        named = {*self.fixed, *candidate.arguments}
        return {name: value for name, value in self._launch(candidate).arguments.items() if name not in named}

    def unseen(self, reference: Any) -> bool:
        """Whether nothing is known of a model, as its config.json is not on this machine."""
        return self._named.model(reference).architecture is None

    def mismatches(self, candidate: Candidate, server_info: Mapping[str, Any]) -> list[Mismatch]:
        """Compare every argument that was passed, as SGLang rewrites it, with the one the running engine reports."""
        wanted = self._named.placed(self._rules.expected(self._launch(candidate).arguments))
        found = echoed_otherwise(wanted, server_info)
        if not candidate.speculative and (algorithm := reported_algorithm(server_info)) is not None:
            found.append(Mismatch(ALGORITHM, None, algorithm))
        return found

    def effective(self, log: Path, server_info: Mapping[str, Any]) -> Effective:
        """Return what a launch really runs, from its log and from `/server_info`."""
        return effective.effective(log, server_info)

    def differences(self, candidate: Candidate, found: Effective) -> list[Mismatch]:
        """Compare captured graphs, running requests and what NCCL logs with what was asked for."""
        launch = self._launch(candidate)
        return [
            *effective.differences(launch.arguments, found, speculative=candidate.speculative),
            *effective.nccl_differences(launch.env, launch.unset, found.nccl),
        ]

    def served(self, log: Path, begin_s: float, end_s: float, running: int | None) -> Served:
        """Return what the decode lines of the log say of a time."""
        return effective.served(log, begin_s, end_s, running)

    def unwise(self, candidate: Candidate) -> list[str]:
        """Return the warnings of the table of rules on a candidate's launch, likely-fatal variables included."""
        launch = self._launch(candidate)
        found = self._rules.findings(launch.arguments, launch.env)
        return [f"{f.message}; {f.advice}" if f.advice else f.message for f in found if f.severity == "warning"]

    def classify(self, failed: EngineFailed) -> Failure:
        """Say from the end of its log why a launch failed."""
        return failed.failure(SIGNATURES)

    def renderer(self) -> Renderer:
        """Start the tokenizer of the served model."""
        model = self._named.place(self.fixed.get("tokenizer-path") or self.fixed[MODEL])
        return Tokenizer(self.interpreter, model, trust_remote_code=bool(self.fixed.get("trust-remote-code")))

    @cached_property
    def _rules(self) -> Rulebook:
        return Rulebook(self._base, self.env, self.version or SHIPPED_VERSION, self._named.model)

    @cached_property
    def _base(self) -> dict[str, Any]:
        """The arguments of a launch of which the candidate names none."""
        fixed_draft = {name: value for name, value in self.fixed.items() if is_speculative(name)}
        return {**self._complete({}), **fixed_draft}

    def _launch(self, candidate: Candidate) -> CompleteLaunch:
        env, unset = {**self.env, **candidate.env}, (*self.unset, *candidate.unset_env)
        return CompleteLaunch(self._complete(candidate.arguments), env, unset)

    def _complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return arguments.complete(values, self.fixed, cuda=self.cuda, most_running=self.most_running)

    @cached_property
    def _legality(self) -> Legality:
        on = self.check_drafters and not self.simulated
        drafters = Drafters(self.fixed, self.env, self.version or SHIPPED_VERSION, self._named.place, on=on)
        return Legality(self._rules, drafters, self.fixed, self.env, self.options, self.gpus_held)

    @cached_property
    def _named(self) -> NamedModels:
        return NamedModels(self.models)
