"""Run by the engine's interpreter: versions of what decides its speed, from package metadata; nothing is imported."""

import importlib.metadata
import importlib.util
import json
import re

PACKAGES = re.compile(
    r"(sglang|torch|triton|transformers|flashinfer-\w+|sgl-kernel|sglang-kernel|nvidia-(nccl|cuda-runtime|cudnn|cublas)-cu\d+"
    r"|nvidia-cuda-runtime|nvidia-cublas|flash-attn\S*|deep-gemm|deep-ep|mooncake-transfer-engine|numpy|ninja|apache-tvm-ffi)",
)

found = {}
for distribution in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
    if PACKAGES.fullmatch(name):
        found.setdefault(name, distribution.version)  # the first on the path is the one that is imported
try:
    spec = importlib.util.find_spec("sitecustomize")
except (ImportError, ValueError):
    spec = None
print(json.dumps({"packages": dict(sorted(found.items())), "sitecustomize": spec.origin if spec else None}))
