from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectune.engines.sglang.log_signatures import SIGNATURES
from spectune.serving import EngineDied, Failure, FailureClass, StartupTimeout, classify, classify_requests, log_tail
from spectune.serving.readiness import check_generation, last_stage

CRASH_IN_WARM_UP = """\
[2025-11-29 16:00:01] server_args=ServerArgs(nccl_port=20100, speculative_eagle_topk=4, error_topk='hot')
[2025-11-29 16:00:09] Scheduler hit an exception: Traceback (most recent call last):
  File "scheduler.py", line 6370, in run_scheduler_process
    scheduler.run_event_loop()
  File "spec_utils.py", line 430, in select_top_k
    top_scores = torch.topk(score_list, num_verify_tokens - 1, dim=-1)
RuntimeError: selected index k out of range

[2025-11-29 16:00:09] Received sigquit from a child process. It usually means the child failed.
"""


def traceback_of(line: str) -> str:
    return CRASH_IN_WARM_UP.replace("RuntimeError: selected index k out of range", line)


def test_the_message_has_the_logs_own_words() -> None:
    failure = classify(CRASH_IN_WARM_UP, -9, SIGNATURES)
    assert failure.failure_class is FailureClass.UNSUPPORTED
    assert failure.message.endswith(": RuntimeError: selected index k out of range")
    assert "torch.topk(score_list" in failure.excerpt
    assert "Received sigquit" in failure.excerpt


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AttributeError: 'NoneType' object has no attribute 'hot_token_id'", "drafter"),
        ("ValueError: Loaded weights leave no GPU memory for the KV cache under mem_fraction_static=0.01", "memory"),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "memory"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "memory"),
        ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.", "memory"),
        ("Exception: Capture cuda graph failed: invalid argument", "memory"),
        ("Exception: Capture cuda graph failed: selected index k out of range", "unsupported"),
        (
            "ERROR:    [Errno 98] while attempting to bind on address ('127.0.0.1', 20000): address already in use",
            "port_in_use",
        ),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3356", "nccl"),
        ("[2025-11-29 16:00:09 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", "hang"),
        ("ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.", "unsupported"),
        ("ValueError: Currently FlashMLA only supports topk=1 for speculative decoding", "unsupported"),
        ("ValueError: EAGLE is not supported in decode attention backend flex", "unsupported"),
        ("AssertionError: chunked_prefill_size must be divisible by page_size", "unsupported"),
        ("sglang serve: error: unrecognized arguments: --speculative-foo", "unsupported"),
        ("launch_server.py: error: ambiguous option: --cuda-graph-bs could match", "unsupported"),
        ("ModuleNotFoundError: No module named 'sglang'", "environment"),
        ("OSError: [Errno 28] No space left on device", "environment"),
        ("zmq.error.ZMQError: Too many open files", "environment"),
        ("OSError: [Errno 24] Too many open files: '/m/model.safetensors'", "environment"),
        ("RuntimeError: can't start new thread", "environment"),
        ("libgomp: Thread creation failed: Resource temporarily unavailable", "environment"),
        ("OpenBLAS blas_thread_init: pthread_create failed: Resource temporarily unavailable", "environment"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "environment"),
        ("zmq.error.Again: Resource temporarily unavailable", "crash"),
        (
            "OSError: It looks like the config file at '/m/x/config.json' is not a valid JSON file.",
            "unsupported",
        ),
        (
            "OSError: a/b is not a local folder and is not a valid model identifier listed on 'https://huggingface.co'",
            "unsupported",
        ),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "environment"),
        ("safetensors_rust.SafetensorError: Error while deserializing header: header too small", "unsupported"),
        ("ImportError: libnuma.so.1: cannot open shared object file: No such file or directory", "environment"),
        (
            "[2025-11-29 16:00:09] Subprocess scheduler_0 (pid=6015) crashed with exit code -9. Triggering SIGQUIT.",
            "crash",
        ),
        ("/usr/bin/python3: No module named sglang.launch_server", "environment"),
        (
            "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
            "environment",
        ),
        ("KeyError: 'something nobody has seen before'", "crash"),
    ],
)
def test_what_sglang_says(line: str, expected: str) -> None:
    failure = classify(traceback_of(line), -9, SIGNATURES)
    assert failure.failure_class == expected
    assert failure.message.endswith(" ".join(line.split()))


def test_memory_that_runs_out_during_capture_comes_with_the_order_of_remedies() -> None:
    """sglang#3430, sglang#2863: halve the captured batch, then the memory fraction; never turn graphs off silently."""
    log = traceback_of("Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.")
    words = classify(f"{log}torch.OutOfMemoryError: CUDA out of memory.\n", -9, SIGNATURES).message
    assert words.startswith(
        "GPU memory ran out while capturing graphs (halve cuda-graph-max-bs-decode, then lower mem-"
    )
    while_serving = classify(traceback_of("torch.OutOfMemoryError: CUDA out of memory."), -9, SIGNATURES).message
    assert "(lower mem-fraction-static, then max-running-requests)" in while_serving


def test_a_cause_outranks_the_symptoms_after_it() -> None:
    log = traceback_of("torch.OutOfMemoryError: CUDA out of memory.") + traceback_of("ValueError: then this happened")
    assert classify(log, 1, SIGNATURES).failure_class is FailureClass.MEMORY


HARMLESS = """\
[2025-11-29 16:00:03] OpenAI Responses API (/v1/responses) disabled: OpenAIServingResponses init failed \
(ModuleNotFoundError: No module named 'openai_harmony')
[2025-11-29 16:00:05] Ignore import error when loading sglang.srt.models.x: No module named 'x'
Traceback (most recent call last):
  File "optional.py", line 1, in <module>
    import nice_to_have
ModuleNotFoundError: No module named 'nice_to_have'
[2025-11-29 16:00:06] The server is fired up and ready to roll!
"""


def test_a_killed_scheduler_is_a_crash_whatever_the_engine_does_without() -> None:
    killed = (
        "[2025-11-29 16:00:09] Subprocess scheduler_0 (pid=6015) crashed with exit code -9. Triggering SIGQUIT for "
        "cleanup...\n[2025-11-29 16:00:09] Received sigquit from a child process. It usually means the child failed.\n"
    )
    failure = classify(HARMLESS + killed, -9, SIGNATURES)
    assert failure.failure_class is FailureClass.CRASH
    assert "Subprocess scheduler_0 (pid=6015) crashed with exit code -9" in failure.message


def test_a_warning_about_a_missing_module_is_no_failure() -> None:
    warnings = "\n".join(HARMLESS.splitlines()[:2])
    assert classify(warnings, -9, SIGNATURES).failure_class is FailureClass.CRASH


def test_time_that_is_up_says_so_and_adds_what_the_log_knows() -> None:
    late = StartupTimeout(10, "Load weight begin.\n", "nothing listens on port 20000")
    failure = late.failure(SIGNATURES)
    assert failure.failure_class is FailureClass.STARTUP_TIMEOUT
    assert failure.message == (
        "the engine was not ready within 10 s: nothing listens on port 20000. Allow more with engine.startup_timeout"
    )
    assert failure.excerpt == "Load weight begin."
    failure = StartupTimeout(10, CRASH_IN_WARM_UP, "it\nfails").failure(SIGNATURES)
    assert failure.failure_class is FailureClass.UNSUPPORTED
    assert failure.message.startswith("the engine was not ready within 10 s: it fails. Allow more with")
    assert failure.message.endswith("RuntimeError: selected index k out of range")


def test_a_killed_guard_is_not_held_against_the_candidate() -> None:
    died = EngineDied(None, CRASH_IN_WARM_UP)
    failure = died.failure(SIGNATURES)
    assert failure.message == str(died)
    assert "the process that supervises the engine was killed" in failure.message
    assert not failure.failure_class.blames_candidate
    assert "Received sigquit" in failure.excerpt
    assert EngineDied(None, "").failure(SIGNATURES).excerpt == ""


@pytest.mark.parametrize(
    ("error", "hangs", "expected"),
    [
        ('HTTP 400: {"error":{"message":"The input (6002 tokens) is longer than the model\'s context length"}}', False,
         "unsupported"),
        ("the server reported: Requested token count exceeds the model's maximum context length of 512 tokens.", False,
         "unsupported"),
        ("the engine aborted the request: Input length (6002 tokens) exceeds the maximum allowed length (5 tokens)",
         False, "unsupported"),
        ("HTTP 422: no such field", False, "unsupported"),
        ("HTTP 429: too many", False, "crash"),
        ("HTTP 500: boom", False, "crash"),
        ("ServerDisconnectedError: Server disconnected", False, "crash"),
        ("no new token for 5 s", True, "hang"),
    ],
)  # fmt: skip
def test_what_failed_requests_mean(error: str, hangs: bool, expected: str) -> None:
    failure = classify_requests([error, "another", error], "c4", 7, hangs=hangs, excerpt="log")
    assert failure.failure_class == expected
    assert failure.message.startswith(f"at c4 3 of 7 requests failed: {error}")
    assert failure.excerpt == "log"


def test_no_request_at_all_is_said() -> None:
    failure = classify_requests([], "c4", 0, hangs=False)
    assert failure.message == "at c4 0 of 0 requests failed: no request was answered"


def test_an_unknown_failure_quotes_the_last_traceback() -> None:
    log = traceback_of("KeyError: 1") + traceback_of("KeyError: 2") + "goodbye\n"
    assert classify(log, 1, ()).message == "the engine ended with exit code 1: KeyError: 2"


@pytest.mark.parametrize(
    ("returncode", "words"),
    [(-9, "SIGKILL"), (-11, "SIGSEGV"), (0, "exit code 0"), (-200, "signal 200"), (None, "no exit code")],
)
def test_without_a_log_the_ending_speaks(returncode: int | None, words: str) -> None:
    failure = classify("", returncode, SIGNATURES)
    assert failure.failure_class is FailureClass.CRASH
    assert words in failure.message
    assert "without a word" in failure.message


LOG_TEXTS = st.one_of(
    st.text(max_size=2000),
    st.lists(
        st.sampled_from([*CRASH_IN_WARM_UP.splitlines(), "", "\r", "\x00", "Traceback (most recent call last)"])
    ).map("\n".join),
)


@given(LOG_TEXTS, st.none() | st.integers(-300, 300), st.sampled_from(FailureClass))
def test_any_text_gives_a_failure(text: str, returncode: int | None, default: FailureClass) -> None:
    failure = classify(text, returncode, SIGNATURES, default)
    assert isinstance(failure, Failure)
    assert failure.message
    assert "\n" not in failure.message
    assert len(failure.message) < 700
    assert classify(text, returncode, (), default).failure_class is default


@given(
    st.integers(),
    st.text()
    | st.sampled_from(["{}", "[]", '{"meta_info": 1}', '{"text": "", "meta_info": {"completion_tokens": null}}']),
)
def test_no_answer_of_a_server_breaks_the_probe(status: int, text: str) -> None:
    complaint, answer = check_generation(status, text)
    assert complaint
    assert answer is None


@given(st.binary(max_size=3000), st.integers(1, 4000))
def test_the_tail_of_any_file_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, max_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(content)
    assert len(log_tail(path, max_bytes)) <= max_bytes
    assert "\n" not in last_stage(path)


def test_the_tail_starts_with_a_whole_line_and_reads_no_more_than_asked(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.truncate(3 << 30)  # a sparse file of 3 GiB
        file.seek(0, 2)
        file.write(b"\nfirst\n 10%\r 50%\r100% done\nl\xe4st\n")
    assert log_tail(log, 40) == "first\n100% done\nl�st\n"
    assert log_tail(tmp_path / "missing.log") == ""


def test_progress_skips_what_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "\x1b[32m[2025-11-29 16:00:01 TP0] Load weight begin.\x1b[0m\n/lib/x.py:1: UserWarning: old\n  warnings.warn(\n"
        '[2025-11-29 16:00:02] INFO:     127.0.0.1:44570 - "GET /ready HTTP/1.1" 503 Service Unavailable\n-----\n'
        "  Example: sglang serve --model-path <model> [options]\n"
        "[2025-11-29 16:00:02] Ignore import error when loading sglang.srt.models.mamba: cannot import name 'f'\n"
    )
    assert last_stage(log) == "Load weight begin."


@pytest.mark.parametrize(
    "line",
    [
        "Multi-thread loading shards: 100% Completed | 1/1 [00:00<00:00, 892.22it/s]",
        "Loading safetensors checkpoint shards: 50% Completed | 2/4 [00:01<00:01, 1.2it/s]",
        "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 16384, K size: 0.01 GB, V size: 0.01 GB",
        "Memory pool end. avail mem=21.46 GB",
        "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, avail mem=9.00 GB",
        "Capturing batches (bs=8 avail_mem=9.00 GB): 50%",
        "The server is fired up and ready to roll!",
    ],
)
def test_progress_tells_the_stages_of_a_start(tmp_path: Path, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"[2025-11-29 16:00:01 TP0] {line}\nOverlap schedule is not implemented on CPU.\n")
    assert last_stage(log) == line


def test_only_the_candidates_own_failures_are_held_against_it() -> None:
    assert FailureClass.MEMORY.blames_candidate
    assert not FailureClass.PORT_IN_USE.blames_candidate


def test_one_request_is_one() -> None:
    assert classify_requests(["closed"], "c1", 1, hangs=False).message == "at c1 1 of 1 request failed: closed"
