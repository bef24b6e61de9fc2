"""A few questions with known answers: what a launch is asked before its speed is worth measuring."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import orjson

from spectune.bench.exchange import speculation_counters
from spectune.bench.prompts import Prompt, TokenizedPrompt

if TYPE_CHECKING:
    import aiohttp

OUTPUT_TOKENS = 48
"""Of every answer: with seven of them, at least 50 verifies whatever is accepted of chains of up to six drafts."""

EASY = Prompt(
    "canary:easy",
    "canary",
    text="Repeat this line again and again, changing nothing: one two three four five six seven eight nine ten\n"
    + "one two three four five six seven eight nine ten\n" * 8,
)
"""What every drafter can continue: it stands there already."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        prompt_id: What was asked.
        output_ids: The tokens; of an engine that gives none, the bytes of its text.
        verifies: Verify passes it took; 0 without speculation.
        correct: Accepted drafts, bonus tokens excluded.
        error: Why there is no answer.
    """

    prompt_id: str
    output_ids: tuple[int, ...]
    verifies: int = 0
    correct: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return an entry of `canary.json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        """Read what `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: It is no such entry.
        """
        ids = tuple(int(token) for token in data["output_ids"])
        return cls(str(data["prompt_id"]), ids, int(data["verifies"]), int(data["correct"]), data["error"])


async def ask(
    url: str,
    prompts: Sequence[TokenizedPrompt],
    *,
    together: bool,
    patience_s: float,
    temperature: float = 0.0,
    headers: Mapping[str, str] | None = None,
) -> list[Answer]:
    """Return a server's answers.

    Args:
        url: `http://host:port`.
        prompts: What to ask.
        together: All at once, so that they run in one batch; otherwise one after the other, until one has no answer.
        patience_s: Seconds an answer may take.
        temperature: Of the sampling; 0 is greedy.
        headers: What every request carries.
    """
    import aiohttp

    sampling = {"temperature": temperature, "max_new_tokens": OUTPUT_TOKENS}
    timeout = aiohttp.ClientTimeout(total=patience_s)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, trust_env=False) as session:
        if together:
            return await asyncio.gather(*(_ask(session, url, prompt, sampling, patience_s) for prompt in prompts))
        answers: list[Answer] = []
        for prompt in prompts:
            answers.append(await _ask(session, url, prompt, sampling, patience_s))
            if answers[-1].error is not None:  # an engine that has fallen silent is not asked, and waited for, again
                break
        return answers


async def _ask(
    session: aiohttp.ClientSession, url: str, prompt: TokenizedPrompt, sampling: Mapping[str, float], patience_s: float
) -> Answer:
    import aiohttp

    name = prompt.prompt.prompt_id
    body = orjson.dumps({"input_ids": prompt.input_ids, "sampling_params": sampling})
    try:
        async with session.post(f"{url}/generate", data=body, headers={"Content-Type": "application/json"}) as response:
            content = await response.read()
            if response.status != 200:
                return Answer(name, (), error=f"HTTP {response.status}: {content[:500].decode('utf-8', 'replace')}")
        return read_answer(name, orjson.loads(content))
    except TimeoutError:
        return Answer(name, (), error=f"no answer within {patience_s:g} s")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return Answer(name, (), error=f"{type(error).__name__}: {error}")


def read_answer(name: str, content: Any) -> Answer:
    """Turn what `/generate` says into an answer.

    Raises:
        ValueError: It is something else.
    """
    meta = content.get("meta_info") if isinstance(content, dict) else None
    if not isinstance(meta, dict):
        raise ValueError("the server's answer has no meta_info")  # noqa: TRY004 (its content is wrong, not our type)
    ids = content.get("output_ids")
    if not (isinstance(ids, list) and all(isinstance(token, int) for token in ids)):
        ids = list(str(content.get("text") or "").encode())
    verifies, correct, _ = speculation_counters(meta, len(ids))
    return Answer(name, tuple(ids), verifies, correct)
