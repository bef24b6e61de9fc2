"""What a dry run says beside its counts: why, what spectune adds, what is not known, and names that are gone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from forked import spectune

from spectune.cli.opening import Asked
from spectune.cli.previewing import preview
from spectune.errors import SpectuneError

SPACE = """schema: 1
name: mine
engine: {{python: no-such-python, gpus: 8, args: {{model-path: org/model, {args}}}}}
search:
  speculative-algorithm: {algorithms}
  speculative-draft-model-path: [org/drafter]
  speculative-num-steps: [1, 3]
  speculative-eagle-topk: [1, 2]
  speculative-num-draft-tokens: [2, 4, 9]
{search}workload: {{prompts: builtin:tiny, levels: [{{concurrency: 1}}]}}
"""


def write(
    folder: Path, args: str = "tp-size: 8", algorithms: str = "[none, EAGLE3, NGRAM]", *search: tuple[str, str]
) -> str:
    lines = "".join(f"  {name}: {values}\n" for name, values in search)
    (folder / "mine.yaml").write_text(SPACE.format(args=args, algorithms=algorithms, search=lines))
    return str(folder / "mine.yaml")


def previewed(file: str, capsys: pytest.CaptureFixture[str]) -> Any:
    preview(Asked(file), as_json=True)
    return json.loads(capsys.readouterr().out)


def test_what_spectune_adds_and_does_not_know_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = previewed(write(tmp_path, "tp-size: 8, page-size: 16"), capsys)
    assert set(answer["added"]) == {
        "attention-backend", "chunked-prefill-size", "cuda-graph-bs-decode", "max-running-requests",
        "mem-fraction-static",
    }  # fmt: skip
    unseen = "the config.json of org/model was not seen here: rules that depend on the architecture are left out"
    assert answer["notes"].count(unseen) == 1
    assert set(answer["excluded_because"]) == set(answer["excluded"])
    assert answer["excluded_because"]["tree-bounds"].startswith("4 draft tokens with 1 step and top-k 2: 2 to 3")


def test_the_text_explains_each_rule(tmp_path: Path) -> None:
    file = write(tmp_path)
    done = spectune("search", file, "--dry-run", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert any("tree-bounds: 4 draft tokens with 1 step and top-k 2: 2 to 3 can be filled" in line for line in lines)
    assert any("ngram-has-no-drafter: NGRAM looks tokens up" in line for line in lines)
    (added,) = [line for line in lines if line.startswith("added by spectune, so that candidates compare")]
    assert "--attention-backend triton" in added


def test_what_is_not_there_is_said_first_and_once(tmp_path: Path) -> None:
    file = write(tmp_path, "tp-size: 8")
    Path(file).write_text(Path(file).read_text().replace("org/model", "/no/model"))
    done = spectune("search", file, "--dry-run", cwd=tmp_path)
    lines = done.stdout.splitlines()
    counted = next(index for index, line in enumerate(lines) if "legal candidates of" in line)
    assert lines[0] == "to launch any of this, this machine lacks:"
    assert any("there is no model folder /no/model" in line for line in lines[:counted])
    assert lines[counted - 1].startswith("note: the config.json of /no/model was not seen here")
    assert not any("no model folder" in line or "was not seen here" in line for line in lines[counted:])


def test_what_an_algorithm_does_not_read_is_in_no_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = previewed(write(tmp_path), capsys)
    more = (("speculative-ngram-capacity", "[1000, 2000]"), ("env.SGLANG_ENABLE_SPEC_V2", "[unset, 1]"))
    answer = previewed(write(tmp_path, "tp-size: 8", "[none, EAGLE3]", *more), capsys)
    assert answer["legal"] == previewed(write(tmp_path, "tp-size: 8", "[none, EAGLE3]"), capsys)["legal"]
    assert {"others-alone", "overlap-variable"} <= set(answer["folded"])
    for launch in answer["starts_with"]:
        assert "ngram" not in launch["command"]
    both = write(tmp_path, "tp-size: 8", "[none, EAGLE3, NGRAM]", ("speculative-ngram-capacity", "1000"))
    for launch in previewed(both, capsys)["starts_with"]:
        ngram = "--speculative-algorithm NGRAM" in launch["command"]
        assert ("--speculative-ngram-capacity" in launch["command"]) == ngram
        assert not (ngram and "draft-model-path" in launch["command"])
    assert plain["raw"] == 25


@pytest.mark.parametrize("written", ["EAGEL3", "eagel3", "[none, EAGLE3, EAGEL3]"])
def test_a_misspelt_algorithm_is_a_problem_with_its_line(tmp_path: Path, written: str) -> None:
    with pytest.raises(SpectuneError) as wrong:
        preview(Asked(write(tmp_path, "tp-size: 8", written)), as_json=True)
    said = r"mine\.yaml:\d+: SGLang has no speculative-algorithm (?i:eagel3); did you mean EAGLE3\?"
    assert len(re.findall(said, str(wrong.value))) == 1


@pytest.mark.parametrize(("written", "meant"), [("EAGLE33", "EAGLE3"), ("eagle33", "EAGLE3"), ("EAGGLE", "EAGLE")])
def test_a_character_typed_twice_is_no_plugins_name(tmp_path: Path, written: str, meant: str) -> None:
    with pytest.raises(SpectuneError) as wrong:
        preview(Asked(write(tmp_path, "tp-size: 8", f"[none, {written}]")), as_json=True)
    said = rf"mine\.yaml:\d+: SGLang has no .* (?i:{written}); did you mean {meant}\? It knows .*EAGLE, EAGLE3.*NGRAM"
    assert re.search(said, str(wrong.value))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("HOUSE_BLEND", ""), ("EAGLE4", "; did you mean EAGLE or EAGLE3?"), ("HOUSE_EAGLE", "")],
)
def test_another_algorithm_may_be_a_plugins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, meant: str
) -> None:
    answer = previewed(write(tmp_path, "tp-size: 8", f"[none, {name}]"), capsys)
    said = f"mine.yaml:LINE: SGLang itself has no speculative-algorithm {name}: a plugin has to register it{meant}"
    told = [re.sub(r".*mine\.yaml:\d+", "mine.yaml:LINE", note) for note in answer["notes"] if name in note]
    assert told == [said]


def test_an_algorithm_written_with_a_hyphen_is_asked_about_before_the_counts(tmp_path: Path) -> None:
    done = spectune("search", write(tmp_path, "tp-size: 8", "[none, EAGLE-3]"), "--dry-run", cwd=tmp_path)
    said, counts = done.stdout.index("EAGLE-3: a plugin has to register it; did you mean EAGLE3?"), "legal candidates"
    assert said < done.stdout.index(counts)
    assert done.stdout.count("did you mean") == 1


@pytest.mark.parametrize("written", ["[NONE]", "none"])
def test_drafting_beside_no_algorithm_is_refused(tmp_path: Path, written: str) -> None:
    done = spectune("search", write(tmp_path, "tp-size: 8", written), "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    said = "'speculative-draft-model-path' has no effect: speculative-algorithm on line 5 names none but 'none'"
    assert f"mine.yaml:6: {said}" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("tp: 8", "'tp' is short for tp-size: write that"),
        ("dp: 8", "'dp' is short for dp-size: write that"),
        ("enable-ep-moe: true", "has no enable-ep-moe, which was gone before 0.5.6; write ep-size with the value of"),
        ("torchao-config: int4wo-128", "has no torchao-config any more, 0.5.17 was the last with it; remove it"),
    ],
)
def test_names_that_are_gone_say_what_took_their_place(tmp_path: Path, args: str, said: str) -> None:
    with pytest.raises(SpectuneError) as wrong:
        preview(Asked(write(tmp_path, args)), as_json=True)
    assert said in str(wrong.value)
    assert "did you mean" not in str(wrong.value)
    assert "mine.yaml:3: " in str(wrong.value)


def test_an_argument_of_ngram_that_is_gone(tmp_path: Path) -> None:
    gone = "speculative-ngram-max-match-window-size"
    with pytest.raises(SpectuneError) as wrong:
        preview(Asked(write(tmp_path, "tp-size: 8", "[none, NGRAM]", (gone, "[4, 8]"))), as_json=True)
    said = f"SGLang 0.5.23 has no {gone} any more, 0.5.9 was the last with it; leave it out: nothing replaces it"
    assert str(wrong.value).endswith(said)


@pytest.mark.parametrize(("args", "told"), [("device: cpu, attention-backend: intel_amx", 1), ("tp-size: 8", 0)])
def test_speculation_that_cannot_sample_is_told_beforehand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: str, told: int
) -> None:
    file = Path(write(tmp_path, args))
    file.write_text(
        file.read_text().replace("builtin:tiny,", "builtin:tiny, temperature: 0.7,").replace("gpus: 8, ", "")
    )
    notes = previewed(str(file), capsys)["notes"]
    assert sum("verifies greedily whatever the temperature: at 0.7" in note for note in notes) == told


def test_a_runtime_that_is_not_installed_is_nothing_this_machine_lacks(tmp_path: Path) -> None:
    home = str(tmp_path / "nothing-here")
    done = spectune("search", "quickstart", "--dry-run", cwd=tmp_path, SPECTUNE_HOME=home)
    assert done.stdout.startswith("not installed yet: the runtime cpu-reference; the search installs it first")
    assert "lacks" not in done.stdout
    told = json.loads(spectune("search", "quickstart", "--dry-run", "--json", cwd=tmp_path, SPECTUNE_HOME=home).stdout)
    assert (told["missing"], told["installs_first"]) == ([], "cpu-reference")
