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
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import tiny_language

VOCABULARY, DRAFT_VOCABULARY = 512, 256
HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, MLP = 128, 4, 2, 32, 256
CONTEXT = 2048
WINDOW = 320  # tokens per training sample: prompt and answer of a served request fit in
NORM_EPSILON, ROPE_THETA = 1e-5, 10_000.0
# The outputs of these target layers feed a drafter. SGLang's own choice needs a target of at least 6 layers.
AUX_LAYERS = [0, 1, 2]
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
SPECIAL_IDS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


@dataclass(frozen=True)
class DrafterRecipe:
    """How much an EAGLE-3 drafter gets to learn: training steps, and how many tokens ahead it looks while learning."""

    name: str
    steps: int
    lookahead: int


DRAFTERS = [
    DrafterRecipe("drafter-strong", steps=220, lookahead=4),
    DrafterRecipe("drafter-weak", steps=120, lookahead=1),
]
TARGET_STEPS, STANDALONE_STEPS = 1200, 500


def train_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE on the tiny language, digits split so that counting can be learned."""
    rng = random.Random(0)
    corpus = [tiny_language.document(rng, cls, 20) for _ in range(300) for cls in tiny_language.CLASSES]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=list(SPECIAL_TOKENS.values()),
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=CONTEXT, **SPECIAL_TOKENS)
    # A chat is its messages, one per line: the text the models know, with nothing around it.
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% if not loop.last %}\n{% endif %}{% endfor %}"
    return fast


class Samples:
    """An endless, seeded stream of training windows; the classes take turns."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, seed: int) -> None:
        self._tokenizer = tokenizer
        self._rng = random.Random(seed)
        self._classes = self._turns()

    def batch(self, size: int) -> Tensor:
        """Token ids [size, WINDOW]; half the windows begin a document, as prompts do."""
        return torch.tensor([self._window() for _ in range(size)])

    def _window(self) -> list[int]:
        text = tiny_language.document(self._rng, next(self._classes), 60)
        ids = self._tokenizer.encode(text)
        start = self._rng.choice([0, self._rng.randrange(len(ids) - WINDOW)])
        return ids[start : start + WINDOW]

    @staticmethod
    def _turns() -> Iterator[tiny_language.PromptClass]:
        while True:
            yield from tiny_language.CLASSES


def optimise(
    parameters: Iterator[nn.Parameter], steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a short warm-up and a cosine decay to zero."""
    optimizer = torch.optim.AdamW(parameters, 3e-3, weight_decay=0.01)
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps, pct_start=0.1)


def train_llama(layers: int, steps: int, samples: Samples) -> LlamaForCausalLM:
    """A Llama of `layers` layers trained on the language itself."""
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=MLP, num_hidden_layers=layers,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HEAD_SIZE, max_position_embeddings=CONTEXT,
        rms_norm_eps=NORM_EPSILON, tie_word_embeddings=False, **SPECIAL_IDS,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    optimizer, schedule = optimise(model.parameters(), steps)
    for step in range(steps):
        ids = samples.batch(8)
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"{layers} layers, step {step}: loss {loss.item():.3f}", flush=True)
    return model.eval()


def save_llama(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes a model folder in bfloat16."""
    model.to(torch.bfloat16)
    model.config.dtype = "bfloat16"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class Eagle3Drafter(nn.Module):
    """EAGLE-3 (arXiv:2503.01840) as SGLang's `LlamaForCausalLMEagle3` computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(len(AUX_LAYERS) * HIDDEN, HIDDEN, bias=False)
        self.q = nn.Linear(2 * HIDDEN, HEADS * HEAD_SIZE, bias=False)
        self.k = nn.Linear(2 * HIDDEN, KV_HEADS * HEAD_SIZE, bias=False)
        self.v = nn.Linear(2 * HIDDEN, KV_HEADS * HEAD_SIZE, bias=False)
        self.o = nn.Linear(HEADS * HEAD_SIZE, HIDDEN, bias=False)
        self.gate = nn.Linear(HIDDEN, MLP, bias=False)
        self.up = nn.Linear(HIDDEN, MLP, bias=False)
        self.down = nn.Linear(MLP, HIDDEN, bias=False)
        self.head = nn.Linear(HIDDEN, DRAFT_VOCABULARY, bias=False)
        self.embedding_norm, self.hidden_norm, self.mlp_norm, self.final_norm = (
            nn.RMSNorm(HIDDEN, NORM_EPSILON) for _ in range(4)
        )

    def forward(self, embeddings: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings and hidden [batch, tokens, HIDDEN] → new hidden, logits over the draft vocabulary."""
        batch, tokens, _ = hidden.shape
        inputs = torch.cat([self.embedding_norm(embeddings), self.hidden_norm(hidden)], -1)
        q, k, v = (
            project(inputs).view(batch, tokens, -1, HEAD_SIZE).transpose(1, 2) for project in (self.q, self.k, self.v)
        )
        attended = functional.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True, enable_gqa=True)
        hidden = hidden + self.o(attended.transpose(1, 2).reshape(batch, tokens, -1))
        normed = self.mlp_norm(hidden)
        hidden = hidden + self.down(functional.silu(self.gate(normed)) * self.up(normed))
        return hidden, self.head(self.final_norm(hidden))


def rotary(x: Tensor) -> Tensor:
    """Rotary position embedding of [batch, heads, tokens, HEAD_SIZE], in Llama's half-split layout."""
    frequencies = ROPE_THETA ** -(torch.arange(0, HEAD_SIZE, 2) / HEAD_SIZE)
    angles = (torch.arange(x.shape[2])[:, None] * frequencies).repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


def train_drafter(recipe: DrafterRecipe, target: LlamaForCausalLM, kept: Tensor, samples: Samples) -> Eagle3Drafter:
    """Distils a drafter: from the target's features of token i and the embedding of i+1, the target's choice for i+2.

    At lookahead d the features are the drafter's own, d tokens old, as they are when it drafts a chain.

    Args:
        recipe: How long and how far ahead it learns.
        target: The trained target, rounded as it is served.
        kept: The target ids in the draft vocabulary, ascending.
        samples: Where training windows come from.
    """
    drafter = Eagle3Drafter()
    optimizer, schedule = optimise(drafter.parameters(), recipe.steps)
    to_draft = torch.full((VOCABULARY,), -1)
    to_draft[kept] = torch.arange(DRAFT_VOCABULARY)
    embedding = target.model.embed_tokens.weight.detach()
    for _ in range(recipe.steps):
        ids = samples.batch(8)
        with torch.no_grad():
            output = target(ids, output_hidden_states=True)
            choices = to_draft[output.logits.argmax(-1)]
            features = torch.cat([output.hidden_states[layer + 1] for layer in AUX_LAYERS], -1)
        hidden, loss, correct = drafter.fc(features)[:, :-1], torch.zeros(()), []
        for ahead in range(recipe.lookahead):
            seen = slice(1 + ahead, 1 + ahead + hidden.shape[1])
            hidden, logits = drafter(embedding[ids[:, seen]], hidden)
            wanted = choices[:, seen]
            loss = loss + 0.8**ahead * functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-1)
            correct.append(round((logits.argmax(-1) == wanted).float().mean().item(), 3))
            hidden = hidden[:, :-1]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(f"{recipe.name}: agrees with the target {correct} tokens ahead", flush=True)
    return drafter


def save_drafter(drafter: Eagle3Drafter, kept: Tensor, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the drafter under the names and with the config SGLang's EAGLE-3 loader reads."""
    layer = "midlayer."
    named = {
        "fc": drafter.fc,
        layer + "self_attn.q_proj": drafter.q,
        layer + "self_attn.k_proj": drafter.k,
        layer + "self_attn.v_proj": drafter.v,
        layer + "self_attn.o_proj": drafter.o,
        layer + "mlp.gate_proj": drafter.gate,
        layer + "mlp.up_proj": drafter.up,
        layer + "mlp.down_proj": drafter.down,
        layer + "hidden_norm": drafter.hidden_norm,
        layer + "input_layernorm": drafter.embedding_norm,
        layer + "post_attention_layernorm": drafter.mlp_norm,
        "norm": drafter.final_norm,
        "lm_head": drafter.head,
    }
    weights = {f"{name}.weight": module.weight.detach().bfloat16().contiguous() for name, module in named.items()}
    weights["d2t"] = kept - torch.arange(DRAFT_VOCABULARY)  # stored as offsets: target id = draft id + d2t[draft id]
    weights["t2d"] = torch.zeros(VOCABULARY, dtype=torch.bool).index_fill(0, kept, 1)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "vocab_size": VOCABULARY,
        "draft_vocab_size": DRAFT_VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "hidden_act": "silu",
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_THETA,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": False,
        "eagle_config": {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": AUX_LAYERS},
        "torch_dtype": "bfloat16",
        **SPECIAL_IDS,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tokenizer.save_pretrained(folder)


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
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).parent / "models")
    parser.add_argument(
        "--drafters-only", action="store_true", help="keep the target and the standalone drafter in OUT"
    )
    arguments = parser.parse_args()
    main(arguments.out, drafters_only=arguments.drafters_only)
