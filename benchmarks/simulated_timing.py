"""How punctual the simulated engine's HTTP form is: `python -m benchmarks.simulated_timing [--concurrency 64]`.

All requests run at once on a profile without noise, so the cost model says exactly when each cycle ends: one cycle
after the last one. A chunk's delay is how much later than that it reaches the client, counted from the most punctual
chunk of all. The client only takes the time of what arrives; everything is taken apart afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

from spectune.engines.simulated.profile import load_profile
from spectune.engines.simulated.start import open_launch
from spectune.serving import Server, reserve_ports

TARGET_MS = 2.0
SLOW = 8  # first requests, which a profile may slow down
ENGINE = (
    "--model-path", "moonshotai/Kimi-K2.5", "--tp-size", "8", "--mem-fraction-static", "0.85", "--attention-backend",
    "triton", "--max-running-requests", "128", "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path",
    "1.4m", "--speculative-num-steps", "3", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "4",
)  # fmt: skip
_TOKENS = re.compile(rb'"completion_tokens":(\d+)')


class Listener(asyncio.Protocol):
    """One request; notes when what arrives."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.arrivals: list[tuple[float, bytes]] = []
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Take the time."""
        self.arrivals.append((time.monotonic(), data))

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.closed.set_result(exc)

    def chunks_s(self) -> list[float]:
        """When each chunk was there; those that came together count with the last byte of them."""
        return [at for at, data in self.arrivals for _ in _TOKENS.findall(data)]


def request(number: int, tokens: int, host: str) -> bytes:
    ids = ",".join(str(1000 * number + index) for index in range(32))
    body = f'{{"input_ids":[{ids}],"stream":true,"sampling_params":{{"max_new_tokens":{tokens}}}}}'
    head = f"POST /generate HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


async def measure(profile: Path, concurrency: int, tokens: int, scale: float) -> tuple[list[list[float]], str]:
    """Return when the chunks of each request arrived, and the engine's complaints about its clock."""
    with reserve_ports() as ports:
        argv = [sys.executable, "-m", "spectune.engines.simulated", *ENGINE, "--port", str(ports.http)]
        env = {**os.environ, "SPECTUNE_SIM_PROFILE": str(profile), "SPECTUNE_SIM_TIME_SCALE": str(scale)}
        async with Server(argv, env, port=ports.http, log_path=profile.with_name("server.log")) as server:
            await server.wait_ready(120)
            for number in range(SLOW):
                await (await listen(server, request(1000 + number, 2, server.host))).closed
            listeners = [await listen(server, request(number, tokens, server.host)) for number in range(concurrency)]
            await asyncio.gather(*(listener.closed for listener in listeners))
            complaints = [line for line in server.log_path.read_text().splitlines() if "behind its clock" in line]
    return [listener.chunks_s() for listener in listeners], "\n".join(complaints)


async def listen(server: Server, data: bytes) -> Listener:
    """Send a request on a connection of its own."""
    _, listener = await asyncio.get_running_loop().create_connection(lambda: Listener(data), server.host, server.port)
    return listener


def delays_ms(chunks: list[list[float]], cycle_s: float) -> np.ndarray:
    """Return the delay of each chunk while all requests run, shape (cycles, requests)."""
    began, ended = max(times[0] for times in chunks), min(times[-1] for times in chunks)
    steady = [[at for at in times if began + 2 * cycle_s < at < ended - cycle_s / 2] for times in chunks]
    cycles = min(map(len, steady))
    # A late chunk may fall over either edge; the last of each request belong to the same cycles.
    at = np.array([times[-cycles:] for times in steady]).T
    late = at - cycle_s * np.arange(cycles)[:, None]
    return np.asarray(1000 * (late - late.min()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="kimi-k2.5-pcie")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=400, help="of each answer")
    parser.add_argument("--time-scale", type=float, nargs="+", default=[1.0, 0.25])
    options = parser.parse_args()
    print(f"profile {options.profile} without noise, concurrency {options.concurrency}; "
          f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")  # fmt: skip
    print("time scale   cycle ms   chunks   delay ms: p50     p95     max   complaints of the engine")
    met = True
    with tempfile.TemporaryDirectory() as name:
        file = yaml.safe_load(load_profile(options.profile).path.read_text())
        file["noise"] = {"launch_sd": 0.0, "window_sd": 0.0}
        profile = Path(name) / "quiet.yaml"
        profile.write_text(yaml.safe_dump(file))
        _, launch, _ = open_launch(load_profile(str(profile)), ENGINE, {})
        for scale in options.time_scale:
            cycle_s = launch.cycle_ms(options.concurrency, 0) / 1000 * scale
            chunks, complaints = asyncio.run(measure(profile, options.concurrency, options.tokens, scale))
            delays = delays_ms(chunks, cycle_s)
            p50, p95 = np.percentile(delays, [50, 95])
            met = met and p95 <= TARGET_MS
            print(f"{scale:10g} {1000 * cycle_s:10.2f} {delays.size:8d} {p50:15.2f} {p95:7.2f} {delays.max():7.2f}"
                  f"   {len(complaints.splitlines())}")  # fmt: skip
    print(f"target: p95 within {TARGET_MS:g} ms on an idle core: {'met' if met else 'missed'}; "
          f"load average {os.getloadavg()[0]:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
