"""Reference CPU ops for SGLang, in plain PyTorch.

PyPI's sglang-kernel holds CUDA binaries only. SGLang's CPU engine (`SGLANG_USE_CPU_ENGINE=1`) imports these names from
`sgl_kernel` and looks two of them up under `torch.ops`; norms, rotary embedding and MLPs need nothing from here.
"""

import torch

from .attention import decode_attention_cpu, extend_attention_cpu
from .cache_slots import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    copy_all_layer_kv_cache_cpu,
    fill_accept_out_cache_loc_cpu,
)
from .draft_tokens import fill_bonus_tokens_cpu, rotate_input_ids_cpu
from .speculative import reconstruct_indices_from_tree_mask
from .tree import build_tree_kernel_efficient_cpu, verify_tree_greedy_cpu

__version__ = "0.4.10+torch.reference"  # SGLang 0.5.23 checks for sglang-kernel 0.4.10

__all__ = [
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "decode_attention_cpu",
    "extend_attention_cpu",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "reconstruct_indices_from_tree_mask",
    "rotate_input_ids_cpu",
    "verify_tree_greedy_cpu",
]

# The attention backend fetches its ops by these names. Plain attributes do: nothing here is traced or compiled.
torch.ops.sgl_kernel.decode_attention_cpu = decode_attention_cpu
torch.ops.sgl_kernel.extend_attention_cpu = extend_attention_cpu
