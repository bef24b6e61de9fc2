"""Headers of safetensors files: read as they are, and never believed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import made_checkpoints as made
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spectune.engines.sglang.preflight.safetensors_header import BrokenFile, Tensor, read_header
from spectune.engines.sglang.preflight.values import as_floats, integers, magnitude
from spectune.engines.sglang.preflight.weights import INDEX, read_weights

ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
SECOND = json.dumps({**ENTRY, "data_offsets": [24, 48]})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def broken(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    with pytest.raises(BrokenFile) as said:
        read_header(file)
    return str(said.value)


def test_a_well_formed_file(tmp_path: Path) -> None:
    tensors = {**made.eagle3_tensors(), "empty": np.zeros((0, 4), np.float32)}
    (file := tmp_path / "a.safetensors").write_bytes(made.packed(tensors))
    header = read_header(file)
    assert {name: tensor.shape for name, tensor in header.items()} == {n: v.shape for n, v in tensors.items()}
    assert integers(header["d2t"]).tolist() == tensors["d2t"].tolist()  # type: ignore[union-attr]


@ONE_FOLDER
@given(content=st.binary(max_size=200) | st.builds(lambda value: made.with_header(json.dumps(value), b"1234"), JSON))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (file := tmp_path / "model.safetensors").write_bytes(content)
    try:
        header = read_header(file)
    except BrokenFile:
        header = {}
    assert all(tensor.end <= len(content) for tensor in header.values())
    assert read_weights(tmp_path).tensors == header


@ONE_FOLDER
@given(data=st.data())
def test_one_changed_byte_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(made.packed({"fc.weight": made.weight(2, 3), "d2t": np.arange(3)}))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (file := tmp_path / "model.safetensors").write_bytes(content)
    for tensor in read_weights(tmp_path).tensors.values():
        assert 0 <= tensor.begin <= tensor.end <= len(content)
        magnitude(tensor, 3)
        integers(tensor)
    assert file.exists()


@given(content=st.binary(max_size=100))
@ONE_FOLDER
def test_any_index_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / INDEX).write_bytes(content)
    assert len(read_weights(tmp_path).broken) <= 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "too few"),
        (b"1234567", "too few"),
        ((2**63).to_bytes(8, "little"), "more than the 100000000"),
        ((99).to_bytes(8, "little") + b"{}", "says its header has 99 bytes, but the whole file has 10"),
        (made.with_header("not json"), "not JSON"),
        (made.with_header("[" * 100_000), "not JSON"),
        (made.with_header("[]"), "no object"),
        (made.with_header('{"a": {"dtype": "F32", "shape": [1]}}'), "without dtype, shape and two offsets"),
        (made.with_header('{"a": 1}'), "without dtype"),
        (made.with_header(json.dumps({"a": ENTRY}), bytes(23)), "cut short"),
        (made.with_header(json.dumps({"a": ENTRY}), bytes(25)), "1 more than its tensors take"),
        (made.with_header(json.dumps({"a": {**ENTRY, "dtype": "BF16"}}), bytes(24)), "takes 12"),
        (made.with_header(json.dumps({"a": {**ENTRY, "shape": [-2, -3]}}), bytes(24)), "cannot be"),
        (made.with_header(json.dumps({"a": {**ENTRY, "shape": [2, True]}}), bytes(24)), "cannot be"),
        (made.with_header(json.dumps({"a": {**ENTRY, "data_offsets": [24, 0]}}), bytes(24)), "cannot be"),
        (made.with_header(json.dumps({"a": ENTRY, "b": ENTRY}), bytes(24)), "overlap"),
        (made.with_header(json.dumps({"a": {**ENTRY, "data_offsets": [8, 32]}}), bytes(32)), "gaps"),
        (made.with_header(f'{{"a": {json.dumps(ENTRY)}, "a": {SECOND}}}', bytes(48)), "gaps"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes, says: str) -> None:
    assert says in broken(tmp_path / "a.safetensors", content)


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.safetensors").mkdir()
    (tmp_path / "loop.safetensors").symlink_to("loop.safetensors")
    (tmp_path / "gone.safetensors").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.safetensors")
    said = read_weights(tmp_path).broken
    assert len(said) == 4
    assert all(str(tmp_path) in one for one in said)


def test_a_shard_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(made.packed({"a": made.weight(1)}))
    (tmp_path / "old.safetensors").write_bytes(b"left over, and not in the index")
    places = {"a": "a.safetensors", **{f"b{n}": f"b{n}.safetensors" for n in range(5)}}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": places}))
    weights = read_weights(tmp_path)
    assert list(weights.tensors) == ["a"]
    assert weights.broken == (
        f"{tmp_path / INDEX} names files that are not there: b0.safetensors, b1.safetensors, b2.safetensors and 2 more",
    )


@given(values=st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_bfloat16_is_the_upper_half_of_a_float32(values: list[float]) -> None:
    whole = np.array(values, np.float32)
    upper = (whole.view(np.uint32) >> 16).astype("<u2").tobytes()
    assert as_floats(upper, "BF16") == pytest.approx(whole, rel=2**-7, abs=1e-30)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_the_magnitude_of_each_block(tmp_path: Path, kind: Any) -> None:
    values = np.concatenate([np.full((300, 4), 2.0), np.zeros((300, 4)), np.full((300, 4), -3.0)], axis=1).astype(kind)
    (tmp_path / "a.safetensors").write_bytes(made.packed({"fc.weight": values}))
    found = magnitude(read_header(tmp_path / "a.safetensors")["fc.weight"], 3)
    assert found is not None
    assert found.blocks == (2.0, 0.0, 3.0)
    assert not found.zero


def test_one_value_among_zeros_is_found(tmp_path: Path) -> None:
    values = np.zeros((1000, 6), np.float32)
    values[501, 0] = 1e-30  # between the sampled rows
    (tmp_path / "a.safetensors").write_bytes(made.packed({"fc.weight": values}))
    found = magnitude(read_header(tmp_path / "a.safetensors")["fc.weight"], 3)
    assert found is not None
    assert not found.zero


def test_a_weight_that_is_gone_has_no_values(tmp_path: Path) -> None:
    tensor = Tensor(tmp_path / "gone", "F32", (2, 3), 0, 24)
    assert magnitude(tensor, 3) is None
    assert integers(Tensor(tmp_path / "gone", "I64", (3,), 0, 24)) is None


def test_a_shape_of_a_million_dimensions_is_refused_at_once(tmp_path: Path) -> None:
    entry = {"dtype": "F32", "shape": [3] * 1_000_000, "data_offsets": [0, 4]}
    said = broken(tmp_path / "a.safetensors", made.with_header(json.dumps({"a": entry}), bytes(4)))
    assert "that cannot be" in said


def test_a_weight_too_large_for_a_fusion_layer_is_not_read(tmp_path: Path) -> None:
    rows = 2**28
    entry = {"dtype": "F32", "shape": [rows, 48], "data_offsets": [0, rows * 48 * 4]}
    header = made.with_header(json.dumps({"fc.weight": entry}))
    with (file := tmp_path / "a.safetensors").open("wb") as opened:
        opened.write(header)
        opened.truncate(len(header) + rows * 48 * 4)  # a hole: it takes no room
    assert magnitude(read_header(file)["fc.weight"], 3) is None
