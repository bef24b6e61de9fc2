"""The canaries of a study: asked of every launch before it is measured, compared with the first baseline's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from spectune import files
from spectune.analysis import canary as judging
from spectune.analysis.acceptance import NOTHING_ACCEPTED
from spectune.bench.canary import EASY, Answer
from spectune.bench.prompts import Prompt, TokenizedPrompt
from spectune.engines.protocol import Engine, Renderer
from spectune.errors import SpectuneError
from spectune.search.launch.feed import render
from spectune.search.launch.launched import Launched, TrialFailed
from spectune.serving import Failure, FailureClass, classify_requests
from spectune.space import Candidate

SAMPLED = 6  # of the workload's prompts
SEED = 1  # another order than the one the levels go through
HOT = 5.0  # temperature at which no two answers are alike, also of a model that is sure of itself at the workload's
FILE = "canary.json"
# Keys of it: greedy in one batch, and one by one; sampled, and how greedy decoding goes on from each first token.
TOGETHER, ALONE, SAMPLES, CONTINUED = "together", "alone", "sampled", "continued"


class Canaries:
    """The same questions for every launch of a study."""

    def __init__(
        self,
        sampled: Sequence[Prompt],
        engine: Engine,
        renderer: Renderer,
        *,
        chat_template: bool,
        temperature: float = 0.0,
        judged: bool = True,
    ) -> None:
        """Render the questions.

        Args:
            sampled: Prompts of the workload; an easy one is added to them.
            engine: What is asked.
            renderer: Its tokenizer.
            chat_template: Whether the prompts go through it.
            temperature: Of the workload; above 0 the launch has to sample.
            judged: False where the answers are not the model's: they are asked for all the same, since a launch is slow
                until it has answered a few.
        """
        self._engine, self._temperature, self._judged = engine, temperature, judged
        self._prompts = render(renderer, [*sampled, EASY], chat_template=chat_template)
        self._baseline: Mapping[str, Sequence[Answer]] | None = None

    @property
    def has_baseline(self) -> bool:
        """Whether there are answers to compare with."""
        return self._baseline is not None

    def remember(self, trial_folder: Path) -> None:
        """Take the answers of an earlier baseline as those to compare with, where they can be read."""
        try:
            content = files.read_json(trial_folder / FILE)
            kept = {key: content[key] for key in (TOGETHER, ALONE)}
            kept |= {key: content.get(key, ()) for key in (SAMPLES, CONTINUED)}
            told = {key: [Answer.from_json(entry) for entry in entries] for key, entries in kept.items()}
        except (SpectuneError, KeyError, TypeError, ValueError, AttributeError):
            return
        self._baseline = told

    async def check(self, launched: Launched, candidate: Candidate, trial_folder: Path | None) -> list[str]:
        """Ask a launch; returns what is worth knowing of its answers.

        Raises:
            EngineFailed: The engine died of it.
            TrialFailed: It does not answer, answers rubbish, or accepts nothing.
        """
        if not self._judged:
            await self._asked(launched, self._prompts, together=True)
            return []
        first = not candidate.speculative and self._baseline is None
        together = await self._asked(launched, self._prompts, together=True)
        alone = await self._asked(launched, self._prompts, together=False) if first else []
        sampled = await self._sampled(launched)
        kept = {TOGETHER: together, ALONE: alone, SAMPLES: sampled, CONTINUED: await self._continued(launched, sampled)}
        if first:
            self._baseline = kept
        if trial_folder is not None:
            content = {name: [answer.to_json() for answer in answers] for name, answers in kept.items()}
            files.write_json(trial_folder / FILE, {"schema": 1, **content})
        notes = self._compared(kept)
        if candidate.speculative:
            self._accepts(together, candidate)
        return notes

    async def _sampled(self, launched: Launched) -> list[Answer]:
        """Return a sampled answer to each prompt; none for a workload that is greedy."""
        if self._temperature <= 0:
            return []
        return await self._asked(launched, self._prompts, together=True, temperature=max(HOT, self._temperature))

    async def _continued(self, launched: Launched, sampled: Sequence[Answer]) -> list[Answer]:
        """Return how greedy decoding goes on with the first token of each sampled answer."""
        first = {answer.prompt_id: answer.output_ids[:1] for answer in sampled}
        prompts = [
            replace(prompt, input_ids=[*prompt.input_ids, *first[prompt.prompt.prompt_id]])
            for prompt in self._prompts
            if first.get(prompt.prompt.prompt_id)
        ]
        return await self._asked(launched, prompts, together=True) if prompts else []

    async def _asked(
        self, launched: Launched, prompts: Sequence[TokenizedPrompt], *, together: bool, temperature: float = 0.0
    ) -> list[Answer]:
        answers = await launched.answers(prompts, together=together, temperature=temperature)
        if (died := launched.died()) is not None:
            raise died
        errors = [answer.error for answer in answers if answer.error is not None]
        if errors:
            excerpt = launched.log_tail()
            silent = all("no answer within" in error for error in errors)
            raise TrialFailed(classify_requests(errors, "the canary", len(answers), hangs=silent, excerpt=excerpt))
        if not any(answer.output_ids for answer in answers):
            raise _failed(FailureClass.CORRUPT, "every answer is empty")
        return answers

    def _compared(self, told: Mapping[str, Sequence[Answer]]) -> list[str]:
        """Return how the answers agree with the baseline's; nothing where all are the same.

        Raises:
            TrialFailed: They are corrupt.
        """
        if self._baseline is None:
            return []
        answers, baseline = told[TOGETHER], self._baseline[TOGETHER]
        found = judging.agreement(answers, baseline, self._baseline[ALONE] or None)
        if found.corrupt:
            raise _failed(FailureClass.CORRUPT, f"{found.words}: this is corruption, not numeric drift")
        if judging.repeats_itself(answers, baseline):
            raise _failed(FailureClass.CORRUPT, "most greedy answers repeat themselves, and the baseline's do not")
        share, own = (judging.greedy_share(one[SAMPLES], one[CONTINUED]) for one in (told, self._baseline))
        if judging.ignores_temperature(share, own):
            raise _failed(
                FailureClass.CORRUPT,
                f"sampled at temperature {max(HOT, self._temperature):g}, the answers go on as greedy ones after their "
                "first token, and the baseline's do not: the verify is greedy whatever is asked for, as SGLang's is on "
                "a CPU, on XPU, and on ROCm without speculative-use-rejection-sampling; measure at temperature 0, or "
                f"do without speculation at {self._temperature:g}",
            )
        return [] if found.same == found.answers else [found.words]

    def _accepts(self, answers: Sequence[Answer], candidate: Candidate) -> None:
        """Raise if the drafter is running for nothing."""
        length = judging.accept_length(answers)
        if length is None or length > NOTHING_ACCEPTED:
            return
        verifies = sum(answer.verifies for answer in answers)
        causes = "; ".join(f"({n}) {cause}" for n, cause in enumerate(self._engine.unaccepted(candidate), start=1))
        raise _failed(
            FailureClass.DRAFTER,
            f"accept length {length:.2f} after {verifies} verifies, one of seven prompts being easy: nothing that is "
            f"drafted is accepted. Likely causes, in this order: {causes}",
        )


def _failed(kind: FailureClass, message: str) -> TrialFailed:
    return TrialFailed(Failure(kind, message, ""))
