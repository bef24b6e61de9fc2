"""From an engine's log or its own answers to what is known of a running server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

from spectune.analysis.acceptance import accept_length
from spectune.analysis.diagnosis import GRAPH_FLAG, Load, Running, loads_of
from spectune.bench.probe import Probe
from spectune.engines.sglang.log_signatures import SIGNATURES
from spectune.engines.sglang.rules.names import reported_algorithm
from spectune.engines.sglang.server_answers import ServerAnswers
from spectune.engines.sglang.server_log import ServerFacts, read_back
from spectune.engines.sglang.versions.history import is_newest_by, newest_known
from spectune.serving.failures import classify
from spectune.typed_json import mapping_of, whole_number

UNNAMED = "unnamed"
"""Algorithm of a log that shows speculation, but begins after the arguments."""

_LOWERED = "Max running requests is reset"


def known_from_log(facts: ServerFacts) -> Running:
    """Return what the log of one server start tells."""
    back = read_back(facts, {})
    captured = back.graph_batches.get("verify" if facts.speculative else "decode")
    ended = classify("\n".join(facts.fatal), None, SIGNATURES) if facts.fatal else None
    whole = bool(facts.arguments) and facts.kv_tokens is not None
    return replace(
        _launch(facts.arguments, back.backends),
        algorithm=reported_algorithm(facts.arguments) or (UNNAMED if facts.speculative else None),
        speculation_known=facts.tells_of_speculation,
        draft_architecture=facts.weights[1].architecture if facts.speculative and len(facts.weights) > 1 else None,
        captured=max(captured) if captured else 0 if whole and not facts.captures else _configured(facts.arguments),
        max_running=facts.max_running_requests,
        running_lowered=next((words for words in facts.rewritten if words.startswith(_LOWERED)), None),
        kv_tokens=facts.kv_tokens,
        peak_usage=facts.peak_usage,
        most_running=facts.most_running,
        most_queued=facts.most_queued,
        retractions=facts.retractions,
        cached_share=facts.prefills.cached_share if facts.prefills.batches else None,
        prompt_tokens=facts.prefills.new_tokens + facts.prefills.cached_tokens,
        first_tok_s=next((interval.tok_s for interval in facts.decode if interval.first), None),
        loads=loads_of(facts.decode),
        simulated=facts.simulated,
        newest=is_newest_by(facts.arguments),
        died_of=None if ended is None else ended.failure_class,
        last_words="" if ended is None else ended.message,
    )


def known_from_answers(answers: ServerAnswers, probed: Probe | None) -> Running:
    """Return what a server says of itself, and what a probe measured where there was one."""
    info = answers.info
    back = read_back(ServerFacts(arguments=info), info)
    captured = back.graph_batches.get("verify" if reported_algorithm(info) else "decode")
    told = any("decode_cuda_graph_bs" in state for state in answers.states)
    lengths = _accept_lengths(answers)
    return replace(
        _launch(info, back.backends),
        captured=max(captured) if captured else 0 if told else _configured(info),
        max_running=back.max_running_requests,
        kv_tokens=back.kv_tokens,
        peak_usage=max(answers.each("token_usage", "sglang:token_usage"), default=None),
        most_running=int(sum(answers.each("num_running_reqs", "sglang:num_running_reqs"))),
        most_queued=int(sum(answers.each("num_waiting_reqs", "sglang:num_queue_reqs"))),
        retractions=int(sum(answers.metrics.get("sglang:num_retracted_requests_total", ()))),
        ranks_without_acceptance=len(answers.states) - len(lengths) if lengths else 0,
        loads=_load_now(answers) if probed is None else (_probed_load(answers, probed),),
        simulated=info.get("simulated") is True,
        newest=newest_known(version) if isinstance(version := info.get("version"), str) else None,
    )


def _load_now(answers: ServerAnswers) -> tuple[Load, ...]:
    """What the server does at this moment; its throughput is that of its last decode interval."""
    running = int(sum(answers.each("num_running_reqs", "sglang:num_running_reqs")))
    lengths = _accept_lengths(answers)
    length = fmean(lengths) if lengths else None
    if not running:
        return () if length is None else (Load(None, 0, length, None, None),)
    told = [state.get("last_gen_throughput") for state in answers.states]
    speed = sum(value for value in told if isinstance(value, int | float)) / running
    graph = answers.metrics.get("sglang:is_cuda_graph")
    each = max(1, round(running / max(1, len(answers.states))))
    return (Load(each, 1, length, speed or None, min(graph) if graph else None, pure=False),)


def _probed_load(answers: ServerAnswers, probed: Probe) -> Load:
    """What the probe measured, beside the requests that were running when it began."""
    length = accept_length(probed.correct, probed.verifies) if probed.verifies else None
    others = int(sum(answers.each("num_running_reqs", "sglang:num_running_reqs")))
    return Load(1 + others, probed.requests, length, probed.decode_speed, None)


def _accept_lengths(answers: ServerAnswers) -> list[float]:
    """Mean accept lengths since the start or the last cache flush, of the ranks that have one (sglang#34743).

    A verify gives its bonus token at least, so anything below 1 is none.
    """
    told = [state.get("avg_spec_accept_length") for state in answers.states]
    return [float(one) for one in told if isinstance(one, int | float) and not isinstance(one, bool) and one >= 1.0]


def _launch(arguments: Mapping[str, Any], backends: Mapping[str, str]) -> Running:
    """What the resolved arguments say, under the names of all versions."""
    draft = arguments.get("speculative_draft_model_path")
    return Running(
        algorithm=reported_algorithm(arguments),
        num_steps=whole_number(arguments.get("speculative_num_steps")),
        eagle_topk=whole_number(arguments.get("speculative_eagle_topk")),
        num_draft_tokens=whole_number(arguments.get("speculative_num_draft_tokens")),
        draft_path=None if draft is None else str(draft),
        backends=backends,
        graphs_possible=arguments.get("device", "cuda") != "cpu" and arguments.get("disaggregation_mode") != "prefill",
        graphs_off=bool(
            arguments.get("disable_cuda_graph")
            or arguments.get("disable_decode_cuda_graph")
            or _decode_graphs(arguments).get("backend") == "disabled"
        ),
        overlap_off=arguments.get("disable_overlap_schedule") is True,
        padded=not arguments.get("disable_cuda_graph_padding"),
        graph_flag="--cuda-graph-max-bs" if "cuda_graph_max_bs" in arguments else GRAPH_FLAG,
        asked_running=_asked(arguments),
    )


def _asked(arguments: Mapping[str, Any]) -> int | None:
    """Running requests asked for, per data-parallel rank."""
    asked = whole_number(arguments.get("max_running_requests"))
    ranks = whole_number(arguments.get("attn_dp_size")) or 1
    if ranks == 1 and arguments.get("enable_dp_attention"):
        ranks = whole_number(arguments.get("dp_size")) or 1
    return None if asked is None else max(1, asked // ranks)


def _configured(arguments: Mapping[str, Any]) -> int | None:
    """Largest batch that graphs were configured for; None where the arguments do not say."""
    batches = _decode_graphs(arguments).get("bs") or arguments.get("cuda_graph_bs") or ()
    sizes = [size for size in batches if isinstance(size, int)] if isinstance(batches, list | tuple) else []
    most = _decode_graphs(arguments).get("max_bs") or arguments.get("cuda_graph_max_bs")
    return max(sizes, default=None) or whole_number(most)


def _decode_graphs(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_of(mapping_of(arguments.get("cuda_graph_config")).get("decode"))
