"""What an engine's answers have, in which words it refuses, and how the lines of its log are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Kinds = Mapping[str, tuple[type, ...]]
NONE = type(None)
META: Kinds = {
    "id": (str,),
    "finish_reason": (dict, NONE),
    "prompt_tokens": (int,),
    "weight_version": (str,),
    "num_retractions": (int,),
    "reasoning_tokens": (int,),
    "completion_tokens": (int,),
    "cached_tokens": (int,),
    "cached_tokens_details": (dict, NONE),
    "dp_rank": (NONE,),
}
FINISHED: Kinds = {"weight_versions": (list,), "e2e_latency": (float,)}
SPECULATED: Kinds = {
    "spec_accept_rate": (float,),
    "spec_accept_length": (float,),
    "spec_num_correct_drafts": (int,),
    "spec_num_proposed_drafts": (int,),
    "spec_verify_ct": (int,),
    "spec_correct_drafts_histogram": (list,),
}
STAMPED_BY_SOME = {"response_sent_to_client_ts"}
SERVER_INFO: Kinds = {
    "model_path": (str,),
    "speculative_algorithm": (str,),
    "speculative_num_steps": (int,),
    "speculative_eagle_topk": (int,),
    "speculative_num_draft_tokens": (int,),
    "speculative_draft_model_path": (str,),
    "max_running_requests": (int,),
    "mem_fraction_static": (float,),
    "chunked_prefill_size": (int,),
    "page_size": (int,),
    "attention_backend": (str,),
    "tp_size": (int,),
    "cuda_graph_config": (dict,),
    "launch_command": (str,),
    "status": (str,),
    "max_total_num_tokens": (int,),
    "max_req_input_len": (int,),
    "startup_time": (dict,),
    "internal_states": (list,),
    "kv_events": (NONE,),
    "version": (str,),
    "frontend": (str,),
    "host": (str,),
    "port": (int,),
}
STATE: Kinds = {
    "world_size": (int,),
    "startup_time": (dict,),
    "effective_max_running_requests_per_dp": (int,),
    "last_gen_throughput": (float,),
    "memory_usage": (dict,),
    "decode_cuda_graph_bs": (list,),
    "decode_cuda_graph_memory_gb": (float,),
    "avg_spec_accept_length": (float,),
}
MODEL_INFO: Kinds = {
    "model_path": (str,),
    "served_model_name": (str,),
    "tokenizer_path": (str,),
    "is_generation": (bool,),
    "preferred_sampling_params": (NONE,),
    "weight_version": (str,),
}

OBJECT, MESSAGE, WORDS = "object", "message", "words"  # the three forms in which SGLang says no
REFUSALS: tuple[tuple[Any, str, str], ...] = (
    (b"{nonsense", OBJECT, "JSON decode error"),
    (b'{"text": "\xff\xfe"}', OBJECT, "JSON decode error"),
    (b"[1, 2]", OBJECT, ""),
    ({"text": 5}, OBJECT, "text"),
    ({"text": "x", "stream": "maybe"}, OBJECT, "stream"),
    ({"text": "x", "stream": None}, OBJECT, "stream"),
    ({"text": "x", "rid": 5}, OBJECT, "rid"),
    ({"input_ids": ["a"]}, OBJECT, "input_ids"),
    ({"text": "x", "sampling_params": "hot"}, OBJECT, "sampling_params"),
    ({"text": "x", "sampling_params": {"max_new_tokens": "many"}}, WORDS, 'invalid type: string "many", expected i64'),
    ({"text": "x", "sampling_params": {"max_new_tokens": 2.5}}, WORDS, "invalid type: floating point `2.5`"),
    ({"text": "x", "sampling_params": {"temperature": True}}, WORDS, "invalid type: boolean `true`, expected f64"),
    ({"text": "x", "sampling_params": {"nonsense": 1}}, WORDS, "unknown field `nonsense`, expected one of"),
    ({}, MESSAGE, "Either text, input_ids or input_embeds should be provided."),
    ({"input_ids": []}, MESSAGE, "input_ids cannot be empty."),
    ({"input_ids": [5] * 3000}, MESSAGE, "The input (3004 tokens) is longer than the model's context length (2048 tok"),
    ({"input_ids": [5], "sampling_params": {"max_new_tokens": 10**9}}, MESSAGE, "requested a total of 1000000005 tok"),
    ({"text": "x", "sampling_params": {"max_new_tokens": -1}}, MESSAGE, "max_new_tokens must be at least 0, got -1."),
    ({"text": "x", "sampling_params": {"temperature": -1}}, MESSAGE, "temperature must be a non-negative finite numb"),
    ({"text": "x", "sampling_params": {"top_p": 7}}, MESSAGE, "top_p must be in (0, 1], got 7."),
    ({"text": ["x", "y"], "rid": ["a"]}, MESSAGE, "The specified rids length mismatch with the batch_size"),
)

STAMP = r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: TP\d+)?\] "
GB = r"\d+\.\d\d GB"
LINES = {
    "arguments": r"server_args=\{.+\}$",
    "load begins": rf"Load weight begin\. avail mem={GB}$",
    "load ends": rf"Load weight end\. elapsed=\d+\.\d\d s, type=\w+, avail mem={GB}, mem usage={GB}\.$",
    "memory": rf"Memory pool end\. avail mem={GB}$",
    "sizes": r"max_total_num_tokens=16384, chunked_prefill_size=\d+, max_prefill_tokens=\d+, "
    rf"max_running_requests=48, context_len=2048, available_[cg]pu_mem={GB}$",
    "timings": r"Engine startup timings \(s\): load_weight=\d+\.\d\d, kv_cache_allocation=\d+\.\d\d, "
    r"scheduler_e2e=\d+\.\d\d, cuda_graph=\{prefill=.*, target_verify=.*\}, tokenizer_e2e=\d+\.\d\d$",
    "process": r"INFO:     Started server process \[\d+\]$",
    "address": r"INFO:     Uvicorn running on http://127\.0\.0\.1:\d+ \(Press CTRL\+C to quit\)$",
    "ready": r"The server is fired up and ready to roll!$",
    "prefill": r"Prefill batch, #new-seq: \d+, #new-token: \d+, #cached-token: \d+, token usage: \d\.\d\d, "
    r"#running-req: \d+, #queue-req: \d+, #pending-token: \d+, (?:cuda|cpu) graph: (?:True|False), "
    r"input throughput \(token/s\): \d+\.\d\d$",
    "decode": r"Decode batch, #running-req: \d+, #token: \d+, token usage: \d\.\d\d, accept len: \d\.\d\d, "
    r"accept rate: \d\.\d\d, (?:cuda|cpu) graph: (?:True|False), gen throughput \(token/s\): \d+\.\d\d, "
    r"#queue-req: \d+$",
    "access": r'INFO:     127\.0\.0\.1:\d+ - "POST /generate HTTP/1\.1" 200 OK$',
}
CAPTURE = (
    rf"Capture target (?:verify|decode) CUDA graph (?:begin\. backend=\w+, num_tokens_per_req=\d+, avail mem={GB}"
    rf"|end\. bs=\[[\d, ]+\], elapsed=\d+\.\d\d s, mem usage={GB}, avail mem={GB}\.)$"
)
