"""How fast the rules are: candidates a second through the adapter, and a dry run's count of a large space.

python benchmarks/rules_speed.py [--candidates 100000]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from itertools import islice
from pathlib import Path

from spectune.engines.sglang.adapter import SGLangEngine
from spectune.engines.sglang.interpreter import Interpreter
from spectune.search.guided.enumeration import census, legal_candidates
from spectune.space import SearchSpace, parse_space

SPACE = """
schema: 1
name: large
engine: {python: python3, gpus: 8, args: {model-path: org/model, tp-size: 8}}
search:
  speculative-algorithm: [none, EAGLE3]
  speculative-draft-model-path: [org/drafter-a, org/drafter-b]
  speculative-num-steps: {from: 1, to: 8}
  speculative-eagle-topk: [1, 2, 4, 8]
  speculative-num-draft-tokens: {from: 2, to: 40}
  prefill-attention-backend: [triton, flashinfer, trtllm_mha]
  decode-attention-backend: [triton, fa3]
  speculative-attention-mode: [prefill, decode]
  disable-decode-cuda-graph: [false, true]
  page-size: [1, 16]
  env.NCCL_PROTO: [unset, LL, Simple]
forbid:
  - {speculative-eagle-topk: ">4", decode-attention-backend: fa3}
workload: {prompts: builtin:tiny, levels: [{concurrency: 1}, {concurrency: 32}]}
objectives: [{maximize: decode_speed, level: c1}]
"""


def space() -> SearchSpace:
    return parse_space(SPACE, Path("large.yaml"))


def engine(of: SearchSpace) -> SGLangEngine:
    return SGLangEngine(Interpreter(sys.executable), "0.5.23", of.engine.args, {}, 8, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=100_000)
    options = parser.parse_args()
    large = space()
    speculative = large.branches[1]
    every = max(1, speculative.size // options.candidates)
    assignments = list(islice(speculative.assignments(), 0, None, every))
    rules = engine(large)
    started = time.perf_counter()
    for assignment in assignments:
        rules.canonical(assignment)
    seconds = time.perf_counter() - started
    print(f"canonical         {len(assignments):9} assignments {len(assignments) / seconds:12,.0f} a second")
    fresh = engine(large)
    started = time.perf_counter()
    found = census(large, fresh)
    seconds = time.perf_counter() - started
    print(f"census            {found.raw:9} assignments {seconds:12.2f} s: {found.candidates} candidates")
    for title, counts in (("folded", found.folded), ("excluded", found.excluded), ("forbidden", found.forbidden)):
        for rule, count in counts.most_common():
            print(f"    {title:10}{count:9} {rule}")
    fresh = engine(large)
    started = time.perf_counter()
    listed = sum(1 for _ in legal_candidates(large, fresh))
    seconds = time.perf_counter() - started
    print(f"legal_candidates  {listed:9} candidates  {seconds:12.2f} s")
    print(f"greatest memory   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:9.0f} MiB")


if __name__ == "__main__":
    main()
