#!/usr/bin/env bash
# EAGLE3 strong 5,1,6 (written by spectune)
# study example, trial 1, 2026-11-30T00:18:22+00:00, SGLang 0.5.23 on the CPU reference runtime, candidate e90ebc328fb9
# measured on the CPU reference runtime: these figures say nothing about a GPU
# measured in this trial, with 95 % intervals where known:
# c1: decode speed 663.7 tok/s [563.7, 781.5], output throughput 635.1 tok/s [532.2, 757.9], accept length 4.57 [4.42, 4.71], TTFT p95 10.8 ms
# c8: decode speed 418.5 tok/s [343.4, 510.1], output throughput 3190.1 tok/s [2568.6, 3961.9], accept length 4.51 [4.43, 4.59], TTFT p95 17.2 ms
# needs the folder /opt/spectune/engines/cpu-reference/content-49e96bf731ff/models/target (model-path)
# needs the folder /opt/spectune/engines/cpu-reference/content-49e96bf731ff/models/drafter-strong (speculative-draft-model-path)
# NOT CONFIRMED by its study: the figures are of the search alone, where the best of many is partly luck; to launch it again beside the best baseline: spectune check studies/example/export/launch-eagle3-drafter-strong-s5-k1-n6.sh
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
  --speculative-num-draft-tokens 6 \
  --speculative-num-steps 5 \
  "$@"
