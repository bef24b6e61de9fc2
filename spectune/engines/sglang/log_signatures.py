"""What SGLang's log says when a launch fails, and what it means.

Each entry is (regular expression for one log line, failure class by name, sentence). The order is the verdict: the
first entry that matches anywhere decides, so causes stand before the symptoms they also produce. Quoted from
SGLang 0.5.23; its exit code says nothing, because a failing scheduler takes the whole tree down with SIGKILL.
"""

from __future__ import annotations

SIGNATURES: tuple[tuple[str, str, str], ...] = (
    # Not the candidate's fault.
    (
        r"(?i)address already in use|\bEADDRINUSE\b|Port is already in use|is not available in \d+ seconds",
        "port_in_use",
        "a port the engine needs is held by another process",
    ),
    (r"No space left on device", "environment", "a disk is full"),
    (
        r"Too many open files|\[?Errno 24\b",
        "environment",
        "the limit of open files is too low, raise it with `ulimit -n`",
    ),
    (
        r"can't start new thread|(?i:thread creation failed|pthread_create failed)|BlockingIOError: \[Errno 11\]",
        "environment",
        "the limit of processes and threads is too low, raise it with `ulimit -u`, or that of the container",
    ),
    (
        r"Some GPUs may be occupied by other processes",
        "environment",
        "other processes occupy part of the GPU memory",
    ),
    # What the space names is damaged or not there: trying again changes nothing.
    (
        (
            r"is not a valid JSON file|does not appear to have a file named|Error while deserializing header|"
            r"^ValueError: (?:Unrecognized model in|The checkpoint you are trying to load has model type)"
        ),
        "unsupported",
        "a model or drafter is damaged, or of a kind this SGLang does not know",
    ),
    (
        r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError",
        "unsupported",
        "there is no model or drafter where the space says it is",
    ),
    (
        r"^OSError: .*(?:huggingface\.co|config\.json)|LocalEntryNotFoundError|GatedRepoError",
        "environment",
        "a model or drafter cannot be loaded from where the space says it is",
    ),
    # The drafter does not fit its target.
    (
        r"hot_token_id",
        "drafter",
        "EAGLE-3 needs an EAGLE-3 drafter: speculative-draft-model-path is missing or names another kind of model",
    ),
    (
        (
            r"requires the draft model to share the same vocabulary|does not implement set_eagle3_layers_to_capture|"
            r"(?i:draft) (?:model|vocab)\S*.*(?:mismatch|must (?:equal|match))"
        ),
        "drafter",
        "the drafter does not fit the target",
    ),
    # Memory, before the capture errors that quote it.
    (
        r"(?i)Capture cuda graph failed.*out of memory",
        "memory",
        "GPU memory ran out while capturing graphs (halve cuda-graph-max-bs-decode, then lower mem-fraction-static)",
    ),
    (
        r"(?i)CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|\[CUDA\]: out of memory",
        "memory",
        "GPU memory ran out (lower mem-fraction-static, then max-running-requests)",
    ),
    (
        r"Loaded weights leave no GPU memory for the KV cache|Not enough memory\. Please try to increase",
        "memory",
        "nothing is left for the KV cache (raise mem-fraction-static, or use more GPUs)",
    ),
    (r"DefaultCPUAllocator: can't allocate memory|^MemoryError\b", "memory", "host memory ran out"),
    # What the engine cannot do.
    (
        r"The expanded size of the tensor \(\d+\) must match the existing size \(\d+\) at non-singleton dimension 1",
        "unsupported",
        "a tensor has another shape than SGLang needs; for a draft tree: fewer draft tokens than steps + 1",
    ),
    (
        r"selected index k out of range",
        "unsupported",
        "the draft tree has more nodes than num_steps and eagle_topk can fill",
    ),
    (
        r"kv_indices flat offset would overflow int32",
        "unsupported",
        "running requests × eagle_topk × context length is too large for this attention backend",
    ),
    (
        r"(?i)\bonly supports? topk ?[=<]|speculative_eagle_topk(?:\(\d+\))? > 1 with page_size|supports topk",
        "unsupported",
        "the attention backend cannot verify a draft tree (eagle_topk > 1)",
    ),
    (
        (
            r"is not supported in (?:decode )?attention backend|Speculative decoding is currently not supported|"
            r"Unknown speculative algorithm name|does not support dp attention|chunked_prefill_size must be divisible"
        ),
        "unsupported",
        "the engine refuses this combination",
    ),
    (r"^(?:sglang serve|\S+\.py): error: ", "unsupported", "this SGLang does not know these arguments"),
    (r"flashinfer.*(?:Unsupported|not supported)|no kernel image is available", "unsupported", "a kernel is missing"),
    # Communication and hangs.
    (
        (
            r"NCCL error|ncclInternalError|ncclUnhandledCudaError|ncclSystemError|ncclInvalidUsage|ncclRemoteError|"
            r"ncclInvalidArgument|DistBackendError|Watchdog caught collective operation timeout"
        ),
        "nccl",
        "communication between the GPUs failed",
    ),
    (r"watchdog timeout", "hang", "a forward pass did not come back"),
    # Symptoms: only when no cause was found above.
    (
        r"Capture cuda graph failed",
        "memory",
        "capturing the CUDA graphs failed, mostly for want of memory (halve cuda-graph-max-bs-decode)",
    ),
    # A process that ended without raising anything: exceptions that stand in the log were survived.
    (r"\bSubprocess \S+ \(pid=\d+\) crashed with exit code -\d", "crash", "a process of the engine was killed"),
    # Only as the last line of a traceback: SGLang mentions in passing what it does without.
    (
        (
            r"^(?:ModuleNotFoundError|ImportError)\b|^(?:\S*/)?python[\d.]*: No module named |"
            r"^OSError: .*cannot open shared object file"
        ),
        "environment",
        "the engine's installation lacks something",
    ),
    (
        r"^(?:ValueError|NotImplementedError|AssertionError|TypeError)\b",
        "unsupported",
        "the engine refuses this combination",
    ),
    (r"Segmentation fault|crashed with exit code|CUDA error: ", "crash", "the engine crashed"),
)
