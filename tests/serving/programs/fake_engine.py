"""An engine of a few lines: SGLang's `/ready` and `/generate`, and one misbehaviour chosen with --mode."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLEEPER = "import time; time.sleep(3600)"
mappings: list[mmap.mmap] = []
DEAF_SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"


class Api(BaseHTTPRequestHandler):
    mode = "normal"
    warm = False

    def do_GET(self) -> None:
        if self.path == "/health":
            os._exit(3)  # it costs a token: nobody may ask
        warming_up = Api.mode == "warms-up" and not Api.warm and "urllib" not in self.headers["User-Agent"]
        self._answer(503 if warming_up else 200, {})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        json.loads(self.rfile.read(length))
        if self.mode == "never-generates":
            self._answer(200, {"error": "no tokens today"})
        elif self.mode == "zero-tokens":
            self._answer(200, {"text": "", "meta_info": {"completion_tokens": 0}})
        else:
            self._answer(200, {"text": " world", "meta_info": {"completion_tokens": 4}})

    def _answer(self, status: int, body: dict[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def detach_daemon() -> None:
    """Double fork and setsid: a daemon that is nobody's child and in nobody's session."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", DEAF_SLEEPER])
        os._exit(0)
    os.wait()


def leave_zombies() -> None:
    for _ in range(5):
        if os.fork() == 0:
            os._exit(0)


def map_segments() -> None:
    """Shared memory as SGLang makes it: nobody unlinks it when the process is killed."""
    for name in ("own", "shared"):
        path = f"/dev/shm/sglang_loads_{name}_{os.environ['SEGMENT']}.shm"
        with open(path, "w+b") as file:  # noqa: PTH123 (as the engine does)
            file.write(bytes(4096))
            file.flush()
            mappings.append(mmap.mmap(file.fileno(), 4096))
    if Api.mode == "segments-then-dies":
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)


def map_others() -> None:
    """Shared memory that was there before."""
    if others := os.environ.get("MAPS"):
        with open(others, "r+b") as file:  # noqa: PTH123
            mappings.append(mmap.mmap(file.fileno(), 4096))


def ask_itself() -> None:
    """What SGLang's warm-up does: a request to its own address through whatever proxies the environment names."""
    port = sys.argv[sys.argv.index("--port") + 1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=240) as response:
        print("warm-up request answered", response.status, flush=True)
    Api.warm = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", default="normal")
    arguments = parser.parse_args()
    Api.mode = mode = arguments.mode
    map_others()
    print("\x1b[32mloading weights\x1b[0m", flush=True)
    if mode == "dies":
        try:
            [].pop()
        except IndexError as error:
            raise RuntimeError("selected index k out of range") from error
    if mode == "dies-with-children":
        subprocess.Popen([sys.executable, "-c", DEAF_SLEEPER])
        detach_daemon()
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "never-ready":
        time.sleep(3600)
    if mode == "ignores-sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "children":
        for code in (SLEEPER, DEAF_SLEEPER):
            subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    if mode == "detaches":
        detach_daemon()
    if mode == "zombies":
        leave_zombies()
    if mode.startswith("segments"):
        map_segments()
    if mode == "floods":
        threading.Thread(target=lambda: [print("x" * 1000) for _ in range(64_000)], daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Api)
    if mode == "warms-up":
        threading.Thread(target=ask_itself, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
