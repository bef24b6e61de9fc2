"""The shipped profiles give what was reported or measured for their machines."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from spectune.engines.simulated.prediction import Prediction, predict
from spectune.engines.simulated.profile import load_profile
from spectune.engines.simulated.start import open_launch

TABLE = Path(__file__).with_name("data") / "specbundle_mtbench.csv"
COMMON = (
    "--model-path",
    "org/target",
    "--tp-size",
    "8",
    "--mem-fraction-static",
    "0.85",
    "--attention-backend",
    "triton",
)
FIRST_BOOT, PCIE = "kimi-k2.5-pcie-first-boot", "kimi-k2.5-pcie"


def predicted(
    profile: str, *point: int, drafter: str = "", concurrency: int = 1, prompt_class: str | None = None, more: str = ""
) -> Prediction:
    words = [*COMMON, *more.split()]
    if point:
        names = ("num-steps", "eagle-topk", "num-draft-tokens")
        words += ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", drafter or "org/drafter"]
        words += [
            word for name, value in zip(names, point, strict=True) for word in (f"--speculative-{name}", str(value))
        ]
    _, launch, _ = open_launch(load_profile(profile), words, {})
    return predict(launch, concurrency, 500, prompt_class)


@pytest.mark.parametrize(
    ("profile", "point", "more", "speed"),
    [
        (FIRST_BOOT, (), "", 90.0),
        (FIRST_BOOT, (15, 1, 16), "--disable-cuda-graph", 56.7),
        (FIRST_BOOT, (4, 1, 5), "", 82.3),
        (PCIE, (), "", 82.5),
        (PCIE, (2, 1, 3), "", 60.0),
    ],
)
def test_the_field_case(profile: str, point: tuple[int, ...], more: str, speed: float) -> None:
    prediction = predicted(profile, *point, more=more)
    assert prediction.decode_speed == pytest.approx(speed, rel=0.03)
    assert prediction.fails is None


def test_the_field_case_s_parts() -> None:
    assert predicted(FIRST_BOOT, 15, 1, 16, more="--disable-cuda-graph").accept_length == pytest.approx(2.29, rel=0.03)
    assert predicted(FIRST_BOOT, 4, 1, 5).accept_length == pytest.approx(2.02, rel=0.03)
    two, none = predicted(PCIE, 2, 1, 3), predicted(PCIE)
    assert two.cycle_ms == pytest.approx(33.3, rel=0.03)
    assert none.decode_speed * two.cycle_ms / 1000 == pytest.approx(2.75, rel=0.03)


@pytest.mark.parametrize("steps", range(5, 16))
def test_the_foreign_drafter_reaches_what_was_reported(steps: int) -> None:
    assert 3.2 <= predicted(PCIE, steps, 1, steps + 1, drafter="1.4m").accept_length <= 3.5


@pytest.mark.parametrize(
    ("profile", "target", "drafter", "cycle_off"),
    [
        ("llama-3.3-70b-nvlink", "Llama-3.3-70B-Instruct", "", 0.06),
        ("qwen3-next-80b-a3b", "Qwen3-Next-80B-A3B-Instruct-FP8", "specforge", 0.02),
    ],
)
def test_the_measured_tables(profile: str, target: str, drafter: str, cycle_off: float) -> None:
    rows = [
        row
        for row in csv.DictReader(TABLE.read_text("utf-8").splitlines())
        if row["target_model"] == target and row["topk"] == "1"
    ]
    assert len(rows) == 6
    for row in rows:
        point = tuple(int(row[name]) for name in ("steps", "topk", "num_draft_tokens"))
        accept_length = float(row["accept_length"])
        cycle_ms = 1000 * 8 * accept_length / float(row["output_tok_s"])
        speculating = () if row["draft"] == "baseline" else point
        prediction = predicted(profile, *speculating, drafter=drafter, concurrency=8, prompt_class="chat")
        assert prediction.accept_length == pytest.approx(accept_length, rel=0.01)
        assert prediction.cycle_ms == pytest.approx(cycle_ms, rel=cycle_off)


@pytest.mark.parametrize(
    ("profile", "target", "drafter", "off"),
    [
        ("llama-3.3-70b-nvlink", "Llama-3.3-70B-Instruct", "", 0.06),
        ("qwen3-next-80b-a3b", "Qwen3-Next-80B-A3B-Instruct-FP8", "specforge", 0.12),
    ],
)
def test_the_measured_trees(profile: str, target: str, drafter: str, off: float) -> None:
    rows = [
        row
        for row in csv.DictReader(TABLE.read_text("utf-8").splitlines())
        if row["target_model"] == target and row["topk"] != "1" and row["draft"] != "baseline"
    ]
    assert {row["topk"] for row in rows} == {"3", "4"}
    for row in rows:
        point = tuple(int(row[name]) for name in ("steps", "topk", "num_draft_tokens"))
        prediction = predicted(profile, *point, drafter=drafter, concurrency=8, prompt_class="chat")
        assert prediction.accept_length == pytest.approx(float(row["accept_length"]), rel=off)


def test_three_billion_active_parameters_and_a_weak_drafter_lose_at_batch_1() -> None:
    none = predicted("qwen3-next-80b-a3b").decode_speed
    points = [(steps, 1, steps + 1) for steps in range(1, 8)] + [(2, 4, 16), (3, 8, 17), (4, 4, 16), (5, 8, 32)]
    for point in points:
        assert predicted("qwen3-next-80b-a3b", *point).decode_speed < none


def test_dense_70b_wins_at_batch_1() -> None:
    assert predicted("llama-3.3-70b-nvlink", 5, 1, 6).decode_speed > 2 * predicted("llama-3.3-70b-nvlink").decode_speed
