"""A program that owns one Server and waits to be killed: prints the server's mark and pids as JSON once it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

from spectune.serving import Server, reserve_ports


async def own(log: Path, mode: str, moment: str) -> None:
    with reserve_ports() as ports:
        program = Path(__file__).with_name("fake_engine.py")
        argv = [sys.executable, str(program), "--port", str(ports.http), "--mode", mode]
        server = Server(argv, os.environ, port=ports.http, log_path=log)
        await server.start()
        if moment != "starting":
            await server.wait_ready(240)
        assert server._guard is not None
        facts = {"server_id": server.server_id, "guard": server._guard.pid, "pids": server.pids()}
        print(json.dumps(facts), flush=True)
        if moment == "stopping":
            await server.stop(grace_s=3600)
        await asyncio.sleep(3600)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(own(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
