"""Ready means: one real generation came back, from a process of ours."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectune.printable import one_line
from spectune.serving.failures import log_tail
from spectune.serving.ports import PortHeldError, holder_of

if TYPE_CHECKING:
    import aiohttp

PROBE: Mapping[str, Any] = {"text": "Hello", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}
POLL_S = 0.2
STATUS_TIMEOUT_S = 5.0
STRANGER_POLLS = 5  # answers without an owner in our tree before the port counts as a stranger's
PROGRESS_S = 1.0
PROGRESS_CHARS = 200
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TIME_STAMP = re.compile(r"^\[\d{4}-\d\d-\d\d [^\]]*\]")
_STAGE = re.compile(
    r"load(?:ing)? weight|(?:loading|fetching) .*\b(?:shards|files)\b|download|init (?:parallel|torch distributed)|"
    r"kv cache is allocated|memory pool (?:begin|end)|captur(?:e|ing)\b|autotun|warm.?up|compil(?:e|ing|ation)\b|"
    r"^max_total_num_tokens=|server process|startup complete|uvicorn running|ready to roll",
    re.IGNORECASE,
)
"""Lines that tell how far an engine's start is: fetching, loading, memory, compiling, capturing graphs, ready."""
_NO_STAGE = re.compile(r"warnings?\b", re.IGNORECASE)


class ReadinessProbe:
    """Asks one server for its first generation.

    `/ready` is only a cheap hint not to ask yet (it answers 503 during the engine's own warm-up; engines without it
    answer 404). `/health` is never asked: each call of it generates a token.

    Attributes:
        last_answer: What came back most recently, for the message when time is up.
    """

    def __init__(self, host: str, port: int, is_ours: Callable[[], bool], headers: Mapping[str, str]) -> None:
        self._host = host
        self._port = port
        self._is_ours = is_ours
        self._headers = headers
        self.last_answer = f"nothing listens on port {port}"

    async def first_generation(self) -> dict[str, Any]:
        """Poll until a generation comes back; returns the engine's answer.

        Raises:
            PortHeldError: Somebody else answers on the port.
        """
        strangers = 0
        import aiohttp

        # trust_env is off: a proxy of the environment must not stand between us and the loopback interface.
        address = f"http://{self._host}:{self._port}"
        async with aiohttp.ClientSession(address, headers=self._headers, trust_env=False) as session:
            while True:
                if await self._port_is_open():
                    if self._is_ours():
                        strangers = 0
                        if (answer := await self._ask(session)) is not None:
                            return answer
                    elif (strangers := strangers + 1) >= STRANGER_POLLS:
                        raise PortHeldError(
                            f"port {self._port} is held by {holder_of(self._port)}, not by the engine just launched. "
                            "End that process or name another port."
                        )
                await asyncio.sleep(POLL_S)

    async def _port_is_open(self) -> bool:
        try:
            # Not wait_for: in Python 3.11 it loses a cancellation that comes as the connection is refused, and the
            # probe would go on for ever after its engine has died.
            async with asyncio.timeout(STATUS_TIMEOUT_S):
                _, writer = await asyncio.open_connection(self._host, self._port)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    async def _ask(self, session: aiohttp.ClientSession) -> dict[str, Any] | None:
        import aiohttp

        try:
            async with session.get("/ready", timeout=aiohttp.ClientTimeout(STATUS_TIMEOUT_S)) as response:
                if response.status == 503:
                    self.last_answer = "it is still warming up (/ready answers 503)"
                    return None
            self.last_answer = "/generate has not answered"
            # No limit of its own: the first generation may compile kernels for minutes.
            async with session.post("/generate", json=PROBE, timeout=aiohttp.ClientTimeout(None)) as response:
                text = await response.text(errors="replace")
                complaint, answer = check_generation(response.status, text)
        except (aiohttp.ClientError, TimeoutError) as error:
            self.last_answer = f"its HTTP server fails ({type(error).__name__}: {error})"
            return None
        if complaint:
            self.last_answer = f"/generate {complaint}"
        return answer


def check_generation(status: int, text: str) -> tuple[str, dict[str, Any] | None]:
    """Whether an answer of `/generate` is a generation: returns ("", the answer) or (what is wrong with it, None)."""
    if status != 200:
        return f"answered HTTP {status}: {text[:200]}", None
    try:
        answer = json.loads(text)
    except ValueError:
        return f"answered something that is not JSON: {text[:200]!r}", None
    meta = answer.get("meta_info") if isinstance(answer, dict) else None
    if not isinstance(meta, dict) or not ({"text", "output_ids"} & answer.keys()):
        return f"answered JSON that is not a generation: {text[:200]}", None
    tokens = meta.get("completion_tokens")
    if not isinstance(tokens, int) or tokens < 1:
        return f"answered without generating a token: {text[:200]}", None
    return "", answer


async def tell_progress(log: Path, tell: Callable[[str], None]) -> None:
    """Pass on the last stage in the log every second, the one before while there is no other, for ever."""
    stage = ""
    while True:
        stage = last_stage(log) or stage
        tell(stage)
        await asyncio.sleep(PROGRESS_S)


def last_stage(log: Path) -> str:
    """The last line of a log that tells a stage of the start, without colours and time stamp, cut to `PROGRESS_CHARS`.

    Empty where the end of the log has none: the stage told before is still under way. What a terminal could obey is
    left out.
    """
    lines = (_TIME_STAMP.sub("", _plain(line)).strip() for line in reversed(log_tail(log, 8192).split("\n")))
    telling = (line for line in lines if _STAGE.search(line) and not _NO_STAGE.search(line))
    return next(telling, "")[:PROGRESS_CHARS]


def _plain(line: str) -> str:
    return one_line(_COLOUR.sub("", line))
