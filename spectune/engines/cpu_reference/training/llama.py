"""Tiny Llamas: the target, and the drafter that is a model of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from samples import CONTEXT, VOCABULARY, Samples
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, MLP = 128, 4, 2, 32, 256
NORM_EPSILON = 1e-5
SPECIAL_IDS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}


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


def optimise(
    parameters: Iterator[nn.Parameter], steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a short warm-up and a cosine decay to zero."""
    optimizer = torch.optim.AdamW(parameters, 3e-3, weight_decay=0.01)
    return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps, pct_start=0.1)


def save_llama(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes a model folder in bfloat16."""
    model.to(torch.bfloat16)
    model.config.dtype = "bfloat16"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
