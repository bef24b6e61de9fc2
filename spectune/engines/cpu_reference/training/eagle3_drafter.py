"""A tiny EAGLE-3 drafter: what it computes, how it learns from its target, and the files SGLang loads it from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from llama import HEAD_SIZE, HEADS, HIDDEN, KV_HEADS, MLP, NORM_EPSILON, SPECIAL_IDS, optimise
from safetensors.torch import save_file
from samples import CONTEXT, VOCABULARY, Samples
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

DRAFT_VOCABULARY = 256
ROPE_THETA = 10_000.0
# The outputs of these target layers feed a drafter. SGLang's own choice needs a target of at least 6 layers.
AUX_LAYERS = [0, 1, 2]


@dataclass(frozen=True)
class DrafterRecipe:
    """How much an EAGLE-3 drafter gets to learn: training steps, and how many tokens ahead it looks while learning."""

    name: str
    steps: int
    lookahead: int


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
