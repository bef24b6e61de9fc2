"""Studies to report on: a lively one, and what is left when little or nothing worked."""

from __future__ import annotations

from typing import Any

from spectune.analysis.measurement import LevelMeasurement
from spectune.engines.protocol import LaunchCommand, Mismatch
from spectune.search.records import Role, Seconds, Status, TrialRecord
from spectune.serving import Failure, FailureClass
from spectune.space import Candidate

ENVIRONMENT = {
    "schema": 1,
    "engine": "SGLang 0.5.23",
    "cpu": "EPYC",
    "cores": 2,
    "libraries": {"optuna": "5.0"},
    "gpus": 0,
}
SPACE = "schema: 1\nname: sample\nengine: {kind: sglang, env: {HF_TOKEN: hf-very-secret}}\n"
SENTENCE = (
    "Speculate: EAGLE3 strong 3,1,4 gives 1.66 × at c1 (1.58–1.74) of the best configuration without speculation."
)
LOG = """Traceback (most recent call last):
  File "eagle.py", line 3
RuntimeError: selected index k out of range"""
LEVELS = {"c1": 1.0, "c8": 5.0}


def triple(value: float, share: float = 0.02) -> list[float]:
    return [value, value * (1 - share), value * (1 + share)]


def candidate(steps: int, drafter: str = "runtime:drafter-strong", **more: Any) -> Candidate:
    if steps == 0:
        return Candidate.of({"speculative-algorithm": "none", **more})
    values = {
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": drafter,
        "speculative-num-steps": steps,
        "speculative-eagle-topk": 1,
        "speculative-num-draft-tokens": steps + 1,
    }
    return Candidate.of({**values, **more})


def measurement(level: str, speed: float, accepted: float, steps: int, notes: tuple[str, ...] = ()) -> LevelMeasurement:
    data = {
        "level": level, "n_requests": 40, "failed": 0, "accept_length": triple(accepted),
        "accept_length_by_class": {"code": triple(accepted * 1.1), "prose": triple(accepted * 0.9)},
        "per_position": [((accepted - 1) / steps) ** (0.5 * i) for i in range(1, steps + 1)] if steps else [],
        "cycle_ms": triple(1000 * accepted / speed), "inter_chunk_ms": 1000 * accepted / speed,
        "decode_speed": triple(speed), "output_throughput": triple(speed * LEVELS[level]),
        "ttft_p50_ms": 30.0, "ttft_p95_ms": 40.0, "itl_p50_ms": 3.0, "itl_p95_ms": 4.0, "prompt_tokens": 60.0,
        "output_tokens": 250.0, "cached_share": 0.0, "measured_s": 8.0, "client_cpu": 0.1, "graph_used": True,
        "notes": list(notes),
    }  # fmt: skip
    return LevelMeasurement.from_json(data)


def record(
    trial: int, of: Candidate, speeds: tuple[float, float] | None = None, accepted: float = 1.0, **fields: Any
) -> TrialRecord:
    argv = (
        "python3",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "/models/target",
        "--port",
        "31007",
        "--nccl-port",
        "29501",
    )
    given: dict[str, Any] = {
        "trial": trial,
        "role": Role.SEARCH if of.speculative else Role.BASELINE,
        "candidate": of,
        "launch_index": trial,
        "why": "first look",
        "started_at": "2026-03-01T10:00:00+00:00",
        "status": Status.OK,
        "seconds": Seconds(startup=12.0, measuring=20.0, shutdown=1.0, total=33.5),
        "command": LaunchCommand(argv, {"NCCL_ALGO": "allreduce:ring", "HF_TOKEN": "hf-very-secret"}, ("NCCL_PROTO",)),
    }
    if speeds:
        pairs = zip(LEVELS, speeds, strict=True)
        given["levels"] = tuple(measurement(level, speed, accepted, of.num_steps or 0) for level, speed in pairs)
    return TrialRecord(**{**given, **fields})


def failed(trial: int, of: Candidate, excerpt: str = "RuntimeError: selected index k out of range") -> TrialRecord:
    failure = Failure(FailureClass.UNSUPPORTED, f"the draft tree is too small: {excerpt.splitlines()[-1]}", excerpt)
    return record(trial, of, status=Status.FAILED, failure=failure)


def summary(records: list[TrialRecord], **changes: Any) -> dict[str, Any]:
    """What `spectune.search` writes, for records with one launch per candidate."""
    good = [r for r in records if r.status is Status.OK and r.levels]
    base = next((r for r in good if not r.candidate.speculative), None)
    rows, baselines = [], []
    for one in good:
        for at in one.levels:
            data = at.to_json()
            row: dict[str, Any] = {
                "candidate_id": one.candidate.candidate_id, "label": one.candidate.label, "trials": [one.trial],
                "num_steps": one.candidate.num_steps, "level": at.level, "confirmed": one.trial == 2,
                "same_mode_ratio": None, "speedup": None, "break_even": None, "verdict": None,
            }  # fmt: skip
            if not one.candidate.speculative:
                speeds = {name: data[name] for name in ("decode_speed", "output_throughput")}
                baselines.append({"trial": one.trial, "level": at.level, **speeds})
            elif base is not None:
                reference = next(x for x in base.levels if x.level == at.level)
                gain = at.decode_speed.est / reference.decode_speed.est
                row |= {"speedup": triple(gain, 0.05), "break_even": triple(at.accept_length.est / gain, 0.05)}
                row["verdict"] = "pays" if gain > 1.05 else "loses" if gain < 0.95 else "unclear"
            names = ("accept_length", "cycle_ms", "decode_speed", "output_throughput")
            rows.append({**row, "class": "all", **{name: data[name] for name in names}})
            if one.candidate.speculative:
                for name, lengths in data["accept_length_by_class"].items():
                    rows.append({**row, "class": name, "accept_length": lengths})
    ranked = sorted(good, key=lambda r: -r.levels[0].decode_speed.est)
    best = ranked[0] if ranked else None
    seconds = {
        name: 33.5 * len(records) * share
        for name, share in (("startup", 0.3), ("checking", 0.06), ("measuring", 0.6), ("shutdown", 0.03))
    }
    return {
        "schema": 1, "study": "sample", "simulated": False, "engine": "SGLang 0.5.23 on the CPU reference runtime",
        "finished": True, "verdict": "speculation" if base and best is not base else "undecided",
        "sentence": SENTENCE,
        "words": ["c1: speculation pays"], "detectable_effect": 0.041 if base else None,
        "recommended": best and {
            "trial": best.trial, "candidate_id": best.candidate.candidate_id, "label": best.candidate.label,
            "argv": list(best.command.argv), "env": dict(best.command.env), "unset": list(best.command.unset),
        },
        "pareto": [r.trial for r in ranked[:3]], "baselines": baselines, "candidates": rows,
        "failures": {"unsupported": n} if (n := sum(r.failure is not None for r in records)) else {},
        "suspect": sum(r.status is Status.SUSPECT for r in records),
        "stop": {"reason": "the budget of 12 launches is used up", "figure": 12},
        "objectives": [
            {"metric": "decode_speed", "direction": "maximize", "level": "c1"},
            {"metric": "output_throughput", "direction": "maximize", "level": "c8"},
        ],
        "targets": {"decode_speed": [500.0, 900.0]},
        "seconds": {**seconds, "own": 33.5 * len(records) * 0.01, "total": 33.5 * len(records)},
        **changes,
    }  # fmt: skip


def lively() -> list[TrialRecord]:
    """Baselines, winners, losers, a failure and a suspect launch."""
    weak = "runtime:drafter-weak"
    return [
        record(0, candidate(0), (442.0, 261.0)),
        record(1, candidate(0, **{"page-size": 16}), (431.0, 268.0)),
        record(2, candidate(3), (733.0, 334.0), 3.39),
        record(3, candidate(1), (601.0, 352.0), 1.92),
        record(4, candidate(6), (698.0, 287.0), 4.58),
        record(5, candidate(3, weak), (376.0, 190.0), 1.97),
        record(6, candidate(1, weak), (513.0, 258.0), 1.61),
        failed(7, candidate(2), LOG),
        record(
            8, candidate(5), (690.0, 290.0), 4.1, status=Status.SUSPECT,
            suspect=(Mismatch("speculative-num-steps", 5, 3),), role=Role.CONFIRM,
        ),
    ]  # fmt: skip
