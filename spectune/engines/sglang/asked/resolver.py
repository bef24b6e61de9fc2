"""Runs inside the engine's interpreter: reads launches, a line of JSON each, and prints what SGLang's resolver answers.

A line is `{"argv": […], "machine": {"compute_capability": 90, "memory_mib": 143360} | null}`; a machine stands in for
the probes of a GPU that is not there. The answer is `{"resolved": {…}}` with the engine's field names, or
`{"error": …}`.
"""

import contextlib
import json
import logging
import sys

import torch
from sglang.srt.arg_groups import memory_hook
from sglang.srt.arg_groups.overrides import resolved_view
from sglang.srt.arg_groups.validation_hook import check_server_args
from sglang.srt.model_executor import cuda_graph_config
from sglang.srt.plugins import load_plugins
from sglang.srt.runtime_context import override_platform
from sglang.srt.server_args import prepare_server_args

REPORTED = (
    "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "max_running_requests", "attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size",
    "mem_fraction_static", "chunked_prefill_size", "attn_dp_size", "dp_size", "enable_mixed_chunk",
    "disable_overlap_schedule", "speculative_adaptive", "speculative_use_rejection_sampling",
    "enable_multi_layer_eagle",
)  # fmt: skip
PROBE_MEMORY = memory_hook.get_device_memory_capacity
DEFAULT_PREFILL = cuda_graph_config.default_prefill_backend


def platform_facts(capability: int) -> dict[str, object]:
    """Return what SGLang would find out about a CUDA GPU of this compute capability."""
    return {
        "is_cuda": True, "is_sm90": capability == 90, "is_hopper_with_cuda_12_3": capability == 90,
        "is_sm100": capability == 100, "is_sm100_or_sm110": capability == 100, "is_sm110": False,
        "is_sm120": capability == 120, "is_blackwell": capability in (100, 120), "has_flashinfer": True,
        "has_amx": False, "device_sm": capability, "device_capability": (capability // 10, 0),
    }  # fmt: skip


def answer(argv: list[str]) -> dict[str, object]:
    """Return the resolved arguments of one launch, or SGLang's own words."""
    try:
        server_args = prepare_server_args(argv)
        logging.disable(logging.CRITICAL)
        server_args.resolve_once()
        check_server_args(server_args)
    except SystemExit as error:
        return {"error": f"SystemExit: {error.code}"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    view = resolved_view(server_args)
    resolved = {name: getattr(view, name) for name in REPORTED}
    decode = view.cuda_graph_config.decode
    resolved["decode_cuda_graph"] = {"backend": str(decode.backend), "max_bs": decode.max_bs, "n_bs": len(decode.bs)}
    return {"resolved": resolved}


def main() -> None:
    """Answer every line of standard input."""
    load_plugins()  # as a launch does
    for line in sys.stdin:
        question = json.loads(line)
        machine = question.get("machine")
        with contextlib.ExitStack() as stack:
            memory_hook.get_device_memory_capacity = PROBE_MEMORY
            cuda_graph_config.default_prefill_backend = DEFAULT_PREFILL
            if machine is not None:
                capability = machine["compute_capability"]
                stack.enter_context(override_platform(**platform_facts(capability)))
                torch.cuda.get_device_capability = lambda _device=None, tens=capability // 10: (tens, 0)
                memory_hook.get_device_memory_capacity = lambda _device, mib=machine["memory_mib"]: mib
                cuda_graph_config.default_prefill_backend = lambda: "breakable"
            said = answer(question["argv"])
        print(json.dumps({**said, "memory_mib": memory_hook.get_device_memory_capacity("cpu")}), flush=True)


if __name__ == "__main__":
    main()
