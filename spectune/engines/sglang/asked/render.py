"""Runs inside the engine's interpreter: turns prompts into token ids with the model's own tokenizer and chat template.

Reads one JSON line per batch from standard input, `{"chat": bool, "prompts": [text or message list, …]}`, and answers
each with one line, `{"ids": [[int, …], …]}` or `{"error": "…"}`. Ends when standard input closes.
"""

import ctypes
import json
import os
import signal
import sys


def end_with_the_asker() -> None:
    """Have the kernel end this process when spectune is killed, also while it loads (PR_SET_PDEATHSIG)."""
    asker = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != asker:
        sys.exit(1)


def load(model: str, trust_remote_code: bool):
    """Load the tokenizer the way SGLang does."""
    try:
        from sglang.srt.utils.hf_transformers_utils import get_tokenizer
    except ImportError:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(model, trust_remote_code=trust_remote_code)
    return get_tokenizer(model, trust_remote_code=trust_remote_code)


def render(tokenizer, prompt, chat: bool) -> list[int]:
    """Return the token ids of one prompt: a text, or a list of {role, content} messages."""
    if not chat and isinstance(prompt, str):
        return tokenizer.encode(prompt)
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    # The template writes the special tokens itself; adding them again would double the first one.
    return tokenizer.encode(text, add_special_tokens=False)


def main() -> None:
    """Serve until standard input closes. argv: model path, "1" or "0" for trust-remote-code."""
    end_with_the_asker()
    # Libraries print to standard output while they load; the answers need a channel of their own.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        tokenizer = load(sys.argv[1], sys.argv[2] == "1")
    except Exception as error:  # whatever it is, the asker must hear it
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            batch = json.loads(line)
            answer = {"ids": [render(tokenizer, prompt, batch["chat"]) for prompt in batch["prompts"]]}
        except Exception as error:  # one bad batch must not end the service
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
