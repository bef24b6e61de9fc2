"""Lines of SGLang's log in its own format, for logs nobody here has the GPUs to write."""

from __future__ import annotations

from typing import Any

STAMP = "2026-11-29 18:00:00"


def line(text: str, *, rank: str = "", stamp: str = STAMP) -> str:
    return f"[{stamp}{' ' if rank else ''}{rank}] {text}\n"


def arguments(*, dict_form: bool = True, **values: Any) -> str:
    """The line of 0.5.19 and later, or the one before."""
    named = {"model_path": "org/model", "device": "cuda", "max_running_requests": 48, "tp_size": 8, **values}
    if dict_form:
        return line(f"server_args={named!r}")
    return line(f"server_args=ServerArgs({', '.join(f'{name}={value!r}' for name, value in named.items())})")


def speculation(algorithm: str = "EAGLE3", steps: int = 3, topk: int = 1, tokens: int | None = None) -> dict[str, Any]:
    return {
        "speculative_algorithm": algorithm,
        "speculative_draft_model_path": "org/drafter",
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": steps + 1 if tokens is None else tokens,
    }


def weights(*architectures: str, rank: str = "") -> str:
    return "".join(
        line("Load weight begin. avail mem=94.30 GB", rank=rank)
        + line(f"Load weight end. elapsed=61.20 s, type={name}, avail mem=24.10 GB, mem usage=70.20 GB.", rank=rank)
        for name in architectures
    )


def capture(what: str, batches: list[int], tokens: int = 4, *, rank: str = "") -> str:
    begin = f"Capture {what} CUDA graph begin. backend=full, num_tokens_per_req={tokens}, avail mem=9.00 GB"
    end = f"Capture {what} CUDA graph end. bs={batches}, elapsed=12.11 s, mem usage=1.20 GB, avail mem=7.80 GB."
    return line(begin, rank=rank) + line(end, rank=rank)


def limits(kv_tokens: int = 500_000, running: int = 48, *, rank: str = "") -> str:
    return line(
        f"max_total_num_tokens={kv_tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        f"max_running_requests={running}, context_len=131072, available_gpu_mem=7.80 GB",
        rank=rank,
    )


READY = line("The server is fired up and ready to roll!")


def prefill(*, new: int = 500, cached: int = 0, running: int = 0, queued: int = 0, rank: str = "") -> str:
    return line(
        f"Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, token usage: 0.01, "
        f"#running-req: {running}, #queue-req: {queued}, #pending-token: 0, cuda graph: False, "
        "input throughput (token/s): 812.20",
        rank=rank,
    )


def decode(
    speed: float,
    *,
    running: int = 1,
    accept: float | None = None,
    graph: bool | None = True,
    queued: int = 0,
    usage: float = 0.10,
    rank: str = "",
    stamp: str = STAMP,
) -> str:
    accepted = "" if accept is None else f"accept len: {accept:.2f}, accept rate: {(accept - 1) / 3:.2f}, "
    graphs = "" if graph is None else f"cuda graph: {graph}, "
    return line(
        f"Decode batch, #running-req: {running}, #token: 4096, token usage: {usage:.2f}, {accepted}{graphs}"
        f"gen throughput (token/s): {speed:.2f}, #queue-req: {queued}",
        rank=rank,
        stamp=stamp,
    )


def server(*parts: str, draft: str | None = "LlamaForCausalLMEagle3", captured: list[int] | None = None,
           running: int = 48, kv_tokens: int = 500_000, **values: Any) -> str:  # fmt: skip
    """A start, then the parts, the first interval among them slow as ever."""
    given = values or speculation()
    models = ["KimiK25ForConditionalGeneration", *([draft] if draft and given.get("speculative_algorithm") else [])]
    what = "target verify" if given.get("speculative_algorithm") else "target decode"
    graphs = capture(what, captured) if captured else ""
    return arguments(**given) + weights(*models) + graphs + limits(kv_tokens, running) + READY + "".join(parts)
