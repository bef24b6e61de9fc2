"""Makes the tiny models of the cpu-reference runtime: `<engine python> train_models.py [OUT]`.

About seven minutes on one core.

One 4-layer Llama target, two EAGLE-3 drafters distilled from it (a strong one, and a weak one that has learned less and
only ever looked one token ahead: its second token is a guess) and a 1-layer Llama as STANDALONE drafter. Deterministic
for one torch build and machine type; the weights in `models/` are what was measured, so retrain only together with new
measurements.

Runs in the engine's interpreter (torch, transformers), which does not have spectune: the language comes in by path.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from eagle3_drafter import DRAFT_VOCABULARY, DrafterRecipe, save_drafter, train_drafter
from llama import save_llama, train_llama
from samples import VOCABULARY, Samples, train_tokenizer
from transformers import LlamaForCausalLM

DRAFTERS = [
    DrafterRecipe("drafter-strong", steps=220, lookahead=4),
    DrafterRecipe("drafter-weak", steps=120, lookahead=1),
]
TARGET_STEPS, STANDALONE_STEPS = 1200, 500


def main(out: Path, *, drafters_only: bool) -> None:
    """Trains and writes all four models below `out`, or only the EAGLE-3 drafters of the target that is there."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # also what makes a rerun give the same weights
    torch.use_deterministic_algorithms(True)
    tokenizer = train_tokenizer()
    if not drafters_only:
        save_llama(train_llama(4, TARGET_STEPS, Samples(tokenizer, seed=1)), tokenizer, out / "target")
        torch.manual_seed(20)
        save_llama(train_llama(1, STANDALONE_STEPS, Samples(tokenizer, seed=20)), tokenizer, out / "drafter-standalone")
    # Read back, so that drafters learn from the rounded weights that will be served.
    target = LlamaForCausalLM.from_pretrained(out / "target").float().eval()
    used = torch.bincount(Samples(tokenizer, seed=2).batch(600).flatten(), minlength=VOCABULARY)
    kept = used.topk(DRAFT_VOCABULARY).indices.sort().values
    for number, recipe in enumerate(DRAFTERS):
        torch.manual_seed(10 + number)
        drafter = train_drafter(recipe, target, kept, Samples(tokenizer, seed=10 + number))
        save_drafter(drafter, kept, tokenizer, out / recipe.name)
    for weights in out.glob("*/model.safetensors"):
        weights.chmod(0o644)  # safetensors writes for the owner only; these are copied to other users' machines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).parents[1] / "models")
    parser.add_argument(
        "--drafters-only", action="store_true", help="keep the target and the standalone drafter in OUT"
    )
    arguments = parser.parse_args()
    main(arguments.out, drafters_only=arguments.drafters_only)
