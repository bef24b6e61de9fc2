#!/usr/bin/env bash
# EAGLE3 strong 4,1,5 (written by spectune)
# study example, trial 8, 2026-11-30T00:21:41+00:00, SGLang 0.5.23 on the CPU reference runtime, candidate 9e17eb41ebb7
# measured on the CPU reference runtime: these figures say nothing about a GPU
# measured, speeds as the geometric mean over trials 7, 8, with 95 % intervals where known:
# c1: decode speed 620.6 tok/s [551.2, 698.8], output throughput 590.6 tok/s [523.1, 666.7], accept length 4.04 [3.85, 4.21], TTFT p95 11.5 ms
# c8: decode speed 404.0 tok/s [350.5, 465.7], output throughput 3075.4 tok/s [2648.3, 3571.5], accept length 4.08 [4.02, 4.15], TTFT p95 17.0 ms
# needs the folder /opt/spectune/engines/cpu-reference/content-49e96bf731ff/models/target (model-path)
# needs the folder /opt/spectune/engines/cpu-reference/content-49e96bf731ff/models/drafter-strong (speculative-draft-model-path)
# HOST and PORT choose the address, 127.0.0.1:30000 otherwise; more arguments are passed on
set -euo pipefail

set -- --host "${HOST:-127.0.0.1}" --port "${PORT:-30000}" "$@"
export HF_HUB_OFFLINE=1
export OMP_NUM_THREADS=1
export PYTHONPATH=/opt/spectune/engines/cpu-reference/content-49e96bf731ff/overlay
export SGLANG_USE_CPU_ENGINE=1
export TOKENIZERS_PARALLELISM=false
export TORCHDYNAMO_DISABLE=1

exec /opt/spectune/engines/cpu-reference/venv/bin/python -m sglang.launch_server \
  --model-path /opt/spectune/engines/cpu-reference/content-49e96bf731ff/models/target \
  --attention-backend intel_amx \
  --device cpu \
  --max-running-requests 16 \
  --max-total-tokens 16384 \
  --mem-fraction-static 0.1 \
  --speculative-algorithm EAGLE3 \
  --speculative-draft-model-path /opt/spectune/engines/cpu-reference/content-49e96bf731ff/models/drafter-strong \
  --speculative-eagle-topk 1 \
  --speculative-num-draft-tokens 5 \
  --speculative-num-steps 4 \
  "$@"
