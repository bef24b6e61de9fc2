"""Everything that can be told of a space's mistakes is told in one go, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectune.cli.opening import Asked
from spectune.errors import InputProblems

WRONG = """schema: 1
name: mine
engine: {python: no-such-python, args: {model-path: /nowhere/target, max-runing-requests: 16}}
search:
  speculative-algorithm: [none, EAGLE33, EAGLE4]
  speculative-draft-model-path: /nowhere/drafter
  speculative-num-steps: {from: 6, to: 1}
  speculative-eagle-topk: [1, two]
forbid: [{speculative-num-step: ">3"}]
workload:
  prompts: [{prompts: none.jsonl, share: 1}, {prompts: nor-this.jsonl, share: 1}]
  output_tokens: -1
objectives: [{maximise: decode_speed, level: c1}, {maximize: decode_speed, level: c9}]
"""
SAID = {
    3: ["there is no program no-such-python", "'max-runing-requests' is not an argument", "no model folder /nowhere/t"],
    5: [
        "SGLang has no speculative-algorithm EAGLE33",
        "no speculative-algorithm EAGLE4: a plugin has to register it; did you mean EAGLE or EAGLE3?",
    ],
    6: ["there is no model folder /nowhere/drafter"],
    7: ["the range is empty"],
    8: ["must be an integer, but got 'two'"],
    9: ["'speculative-num-step' is not searched"],
    11: ["/none.jsonl: No such file", "/nor-this.jsonl: No such file"],
    12: ["workload.output_tokens must be at least 1"],
    13: ["unknown key 'maximise'", "'c9' is not a level"],
}


def problems(folder: Path, text: str, *, launching: bool) -> list[tuple[int | None, str]]:
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(InputProblems) as raised:
        Asked(str(folder / "mine.yaml")).space(launching=launching)
    assert len(set(raised.value.problems)) == len(raised.value.problems)
    assert all(problem.file == folder / "mine.yaml" for problem in raised.value.problems)
    return [(problem.line, problem.message) for problem in raised.value.problems]


def test_schema_values_cross_checks_files_and_this_machine(tmp_path: Path) -> None:
    found = problems(tmp_path, WRONG, launching=True)
    for line, words in SAID.items():
        for said in words:
            assert sum(said in message for at, message in found if at == line) == 1, said
    assert [line for line, _ in found] == sorted(line for line, _ in found if line)


def test_without_a_launch_nobody_asks_for_the_engine_or_its_models(tmp_path: Path) -> None:
    found = " ".join(message for _, message in problems(tmp_path, WRONG, launching=False))
    assert "/none.jsonl: No such file" in found
    assert "/nowhere" not in found
    assert "no-such-python" not in found


@pytest.mark.parametrize(
    ("old", "new", "waits"),
    [
        ("[{prompts: none.jsonl, share: 1}, {prompts: nor-this.jsonl, share: 1}]", "7", "cannot read the prompts"),
        ("python: no-such-python", "python: 7", "model folder"),
        ("  output_tokens: -1", "  levels: [{concurency: 9}]", "is not a level"),
    ],
)
def test_only_what_rests_on_a_mistake_waits(tmp_path: Path, old: str, new: str, waits: str) -> None:
    assert old in WRONG
    found = problems(tmp_path, WRONG.replace(old, new), launching=True)
    assert not any(waits in message for _, message in found)
    assert any("'max-runing-requests' is not an argument" in message for _, message in found)
