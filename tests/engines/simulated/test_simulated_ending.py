"""How the process ends: refused commands, memory, signals, and every fault at its points."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from simulated_server import Running, engine, speculating

from spectune.engines.sglang.log_signatures import SIGNATURES
from spectune.serving import FailureClass, classify

ALWAYS: dict[str, Any] = {"speculation": False}


def fault(at: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"faults": [{"when": ALWAYS, "at": at, "kind": kind, **more}]}


def classified(running: Running) -> FailureClass:
    return classify(running.log, running.process.returncode, SIGNATURES).failure_class


def test_an_argument_nobody_knows_ends_with_2(tmp_path: Path) -> None:
    with engine(tmp_path, "--speculative-foo", "3") as running:
        assert running.ended() == 2
        refused = "SGLang would refuse this command: unrecognized arguments: --speculative-foo 3"
        assert running.log == f"spectune: {refused}\n"


def test_a_search_is_told_of_an_argument_nobody_knows_in_sglangs_words() -> None:
    argv = [sys.executable, "-m", "spectune.engines.simulated", "--model-path", "target", "--speculative-foo", "3"]
    env = os.environ | {"SPECTUNE_SIM_PROFILE": "llama-3.3-70b-nvlink"}
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert "error: unrecognized arguments: --speculative-foo 3" in ended.stderr
    assert classify(ended.stderr, ended.returncode, SIGNATURES).failure_class == FailureClass.UNSUPPORTED


def test_a_combination_the_resolver_refuses_ends_with_1(tmp_path: Path) -> None:
    words = speculating(3, 4, 8)
    with engine(tmp_path, *words, "--decode-attention-backend", "trtllm_mha") as running:
        assert running.ended() == 1
        assert "ValueError: trtllm_mha backend only supports topk = 1" in running.log
        assert classified(running) == FailureClass.UNSUPPORTED


def test_weights_that_do_not_fit_kill_the_tree(tmp_path: Path) -> None:
    with engine(tmp_path, target={"weights_gb": 200}) as running:
        assert running.ended() == -signal.SIGKILL
        assert "Not enough memory. Please try to increase --mem-fraction-static." in running.log
        assert classified(running) == FailureClass.MEMORY


def test_more_gpus_than_there_are_kill_the_tree(tmp_path: Path) -> None:
    with engine(tmp_path, "--tp-size", "4") as running:
        assert running.ended() == -signal.SIGKILL
        assert classified(running) == FailureClass.CRASH


def test_what_the_rules_know_to_die_dies(tmp_path: Path) -> None:
    with engine(tmp_path, *speculating(2, 4, 60)) as running:
        assert running.ended() == -signal.SIGKILL
        assert "Scheduler hit an exception" in running.log
        assert classified(running) == FailureClass.UNSUPPORTED


def test_graphs_that_do_not_fit_kill_the_tree(tmp_path: Path) -> None:
    with engine(tmp_path, *speculating(3, 4, 13), graphs={"mb_per_token": 5.0}) as running:
        assert running.ended() == -signal.SIGKILL
        assert "Capture cuda graph failed" in running.log
        assert classified(running) == FailureClass.MEMORY


def test_a_port_in_use_ends_with_1(tmp_path: Path) -> None:
    with engine(tmp_path, held=True) as running:
        assert running.ended() == 1
        assert classified(running) == FailureClass.PORT_IN_USE


def test_sigterm_drains_running_requests(tmp_path: Path) -> None:
    with engine(tmp_path, time_scale=0.2) as running:
        running.wait_ready()
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == 0
        assert "SIGTERM received. signum=None frame=None. Draining requests and shutting down..." in running.log
        assert "Gracefully exiting... Remaining number of requests 0." in running.log


def test_forced_shutdown_does_not_drain(tmp_path: Path) -> None:
    with engine(tmp_path, env={"SGL_FORCE_SHUTDOWN": "1"}) as running:
        running.wait_ready()
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == 0
        assert "Signal SIGTERM received while force shutdown flag set. Force exiting." in running.log


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    with engine(tmp_path, time_scale=1.0) as running:
        running.wait_ready()
        address = running.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(address[0], int(address[1]))
        body = json.dumps({"text": "x", "sampling_params": {"max_new_tokens": 100_000}})
        connection.request("POST", "/generate", body, {"Content-Type": "application/json"})
        running.wait_for(lambda: running.log.count("Prefill batch") == 2)
        running.process.send_signal(signal.SIGINT)
        running.wait_for(lambda: "Waiting for connections to close" in running.log)
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == -signal.SIGINT
        connection.close()


def test_killing_the_launcher_kills_its_workers(tmp_path: Path) -> None:
    with engine(tmp_path) as running:
        running.wait_ready()
        workers = psutil.Process(running.process.pid).children(recursive=True)
        running.process.kill()
        assert running.ended() == -signal.SIGKILL
        assert psutil.wait_procs(workers, timeout=120)[1] == []


def test_a_worker_killed_from_outside_ends_the_engine(tmp_path: Path) -> None:
    with engine(tmp_path) as running:
        running.wait_ready()
        psutil.Process(running.process.pid).children()[0].kill()
        assert running.ended() == -signal.SIGKILL
        assert "crashed with exit code -9. Triggering SIGQUIT for cleanup..." in running.log


@pytest.mark.parametrize(
    ("at", "kind", "code", "failure"),
    [
        ("startup", "oom", -9, "memory"),
        ("load", "oom", -9, "memory"),
        ("capture", "oom", -9, "memory"),
        ("ready", "oom", -9, "memory"),
        ("startup", "unsupported", 1, "unsupported"),
        ("capture", "unsupported", -9, "unsupported"),
        ("load", "nccl", -9, "nccl"),
        ("ready", "port_in_use", 1, "port_in_use"),
        ("load", "crash", 1, "crash"),
        ("startup", "port_in_use", 1, "port_in_use"),
    ],
)
def test_faults_that_end_the_start(tmp_path: Path, at: str, kind: str, code: int, failure: str) -> None:
    with engine(tmp_path, **fault(at, kind)) as running:
        assert running.ended() == code
        assert classified(running) == FailureClass(failure)


@pytest.mark.parametrize(
    ("at", "kind", "failure"),
    [
        ("warmup", "oom", "memory"),
        ("warmup", "crash", "crash"),
        ("bench", "nccl", "nccl"),
        ("bench", "unsupported", "unsupported"),
        ("bench", "crash", "crash"),
    ],
)
def test_faults_that_end_the_service(tmp_path: Path, at: str, kind: str, failure: str) -> None:
    with engine(tmp_path, **fault(at, kind)) as running:
        running.wait_ready()
        served = 0
        while running.process.poll() is None and served < 50:
            try:
                running.generate(4)
            except (OSError, AssertionError):
                break
            served += 1
        assert running.ended() == -signal.SIGKILL
        assert served >= (4 if at == "bench" else 0)
        assert classified(running) == FailureClass(failure)


@pytest.mark.parametrize("at", ["startup", "load", "capture", "ready"])
def test_a_hang_in_the_start_never_becomes_ready(tmp_path: Path, at: str) -> None:
    with engine(tmp_path, **fault(at, "hang")) as running:
        running.wait_for(lambda: "server_args=" in running.log)  # a busy machine takes its time over the imports
        time.sleep(2.0)
        assert running.process.poll() is None
        assert "fired up" not in running.log
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == -signal.SIGTERM


def test_a_hang_in_service_is_found_by_the_watchdog(tmp_path: Path) -> None:
    with engine(tmp_path, "--watchdog-timeout", "4", **fault("warmup", "hang")) as running:
        running.wait_ready()
        with pytest.raises(OSError):  # noqa: PT011 (the connection breaks when the engine is killed)
            running.generate(4)
        assert running.ended() == -signal.SIGKILL
        assert classified(running) == FailureClass.HANG


def test_slow_start_comes_up_all_the_same(tmp_path: Path) -> None:
    with engine(tmp_path, time_scale=0.5, **fault("load", "slow_start")) as running:
        began = time.monotonic()
        running.wait_ready()
        assert time.monotonic() - began > 1.0


def test_http_500(tmp_path: Path) -> None:
    with engine(tmp_path, **fault("bench", "http_500")) as running:
        running.wait_ready()
        answers = [running.post("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 2}}) for _ in range(6)]
        assert [status for status, _ in answers] == [200] * 4 + [500] * 2


def test_partial_failure(tmp_path: Path) -> None:
    with engine(tmp_path, **fault("startup", "partial_failure", share=0.5)) as running:
        running.wait_ready()
        answers = [
            running.post("/generate", {"text": "x", "sampling_params": {"max_new_tokens": 9}}) for _ in range(40)
        ]
        failed = [body for status, body in answers if status == 500]
        assert 8 <= len(failed) <= 32
        assert b"simulated partial failure" in failed[0]


def test_garbage_output_begins_with_the_benchmark(tmp_path: Path) -> None:
    with engine(tmp_path, **fault("bench", "garbage_output")) as running:
        running.wait_ready()
        answers = [tuple(running.generate(8)["output_ids"]) for _ in range(6)]
        assert len(set(answers[:4])) == 1
        assert answers[5] != answers[0]


def test_zero_acceptance(tmp_path: Path) -> None:
    faults = [{"when": {"speculative-algorithm": "EAGLE3"}, "at": "startup", "kind": "zero_acceptance"}]
    with engine(tmp_path, *speculating(), faults=faults) as running:
        running.wait_ready()
        assert running.generate(20)["meta_info"]["spec_num_correct_drafts"] == 0


def test_ignored_sigterm_and_a_worker_that_escapes(tmp_path: Path) -> None:
    faults = [
        {"when": ALWAYS, "at": at, "kind": kind} for at, kind in (("load", "daemonize"), ("ready", "ignore_sigterm"))
    ]
    with engine(tmp_path, env={"SPECTUNE_SERVER_ID": "simulated-test"}, faults=faults) as running:
        running.wait_ready()
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert running.process.poll() is None
        lost = [
            one for one in psutil.process_iter(["cmdline"]) if "sglang::scheduler_lost" in (one.info["cmdline"] or [])
        ]
        mine = [one for one in lost if str(running.process.pid) in one.cmdline()]
        assert len(mine) == 1
        assert mine[0].environ()["SPECTUNE_SERVER_ID"] == "simulated-test"
        assert os.getsid(mine[0].pid) != os.getsid(running.process.pid)
        mine[0].kill()


def test_a_flooded_log(tmp_path: Path) -> None:
    with engine(tmp_path, **fault("load", "log_flood")) as running:
        running.wait_ready()
        assert running.log_path.stat().st_size > 2**21


def test_faults_at_shutdown(tmp_path: Path) -> None:
    with engine(tmp_path, **fault("shutdown", "crash")) as running:
        running.wait_ready()
        running.process.send_signal(signal.SIGTERM)
        running.ended()
        assert "Segmentation fault" in running.log


def test_times_counts_over_the_launches_of_a_study(tmp_path: Path) -> None:
    counted = tmp_path / "fired"
    codes = []
    for launch in range(2):
        env = {"SPECTUNE_SIM_FIRED": str(counted), "SPECTUNE_SIM_LAUNCH": str(launch)}
        with engine(tmp_path, env=env, **fault("load", "oom", times=1)) as running:
            if launch == 0:
                codes.append(running.ended())
            else:
                running.wait_ready()
    assert codes == [-signal.SIGKILL]
    assert counted.read_text() == "0\n"
