"""Scripts that were exported, read back: whose they are, and whether somebody changed them."""

from pathlib import Path

import pytest
from export_samples import ARGV, record
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spectune.errors import SpectuneError
from spectune.export import Launch, Origin, export_candidates
from spectune.export.exported_script import launch_changes, read_exported

HOSTILE = record(argv=(*ARGV, "--chat-template", "two\nlines; # no", "--x", "$(id)"), env={"A": "\n#\n'"}, unset=["B"])


def exported(tmp_path, pick=HOSTILE, study="my study, trial 3", **more):
    origin = Origin(study, "SGLang 0.5.23", simulated=False, **more)
    return export_candidates([pick], tmp_path / study / "export", origin)[0]


@pytest.mark.parametrize("study", ["s", "my study, trial 3", "x, trial 9, 1T1, y"])
def test_it_names_its_study_and_its_launch(study, tmp_path):
    files = exported(tmp_path, study=study)
    (tmp_path / study / "space.yaml").write_text("")
    script = read_exported(files.shell)
    assert (script.study, script.trial) == (study, 3)
    assert script.folder().root == (tmp_path / study).resolve()
    script.require_unedited(HOSTILE)


def test_a_number_that_no_launch_has_is_none(tmp_path):
    shell = exported(tmp_path, study="s").shell
    shell.write_text(shell.read_text().replace("# study s, trial 3", f"# study s, trial {'9' * 5000}"))
    with pytest.raises(SpectuneError, match="no longer names the study and launch"):
        read_exported(shell)


def test_other_comments_and_figures_are_no_edit(tmp_path):
    shell = exported(tmp_path, notes=["picked for latency"]).shell
    shell.write_text(shell.read_text().replace("# picked for latency\n", "# mine\n\n#\n"))
    read_exported(shell).require_unedited(HOSTILE)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("--speculative-num-steps 3", "--speculative-num-steps 4", "--speculative-num-steps 4"),
        ("unset B\n", "", "exported with 'unset B'"),
        ("set -euo pipefail\n", "set -euo pipefail\nexport NCCL_ALGO=Tree\n", "NCCL_ALGO=Tree"),
        ('"$@"\n', '"$@" --x\n', "--x"),
        ("\n#\n", "\n#\n# in a value\n", "# in a value"),
    ],
)
def test_an_edit_is_found_with_its_line(old, new, words, tmp_path):
    shell = exported(tmp_path).shell
    text = shell.read_text()
    assert old in text
    shell.write_text(text.replace(old, new))
    with pytest.raises(SpectuneError, match="was edited") as refused:
        read_exported(shell).require_unedited(HOSTILE)
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"{shell}:")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3000), st.characters(exclude_categories=["Cs"]))
def test_no_changed_character_of_the_code_goes_unnoticed(tmp_path_factory, at, char):
    shell = exported(tmp_path_factory.mktemp("e")).shell
    text = shell.read_text()
    begin = text.index("set -euo")
    at = begin + at % (len(text) - begin)
    assume(text[at] not in (char, "\n") and char not in "\r\n" and not (at == begin and char in "# "))
    shell.write_text(text[:at] + char + text[at + 1 :])
    with pytest.raises(SpectuneError, match="was edited"):
        read_exported(shell).require_unedited(HOSTILE)


def test_line_ends_that_bash_would_take_for_more_are_an_edit(tmp_path):
    shell = exported(tmp_path).shell
    shell.write_bytes(shell.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(SpectuneError, match=r"was edited: it has 'set -euo pipefail\\r'"):
        read_exported(shell).require_unedited(HOSTILE)


@pytest.mark.parametrize("content", ["", "#!/bin/sh\nexec x\n", "#!/usr/bin/env bash\n# study s, trial 1, 1T1, x\n"])
def test_what_is_not_ours_is_refused(content, tmp_path):
    file = tmp_path / "launch.sh"
    file.write_text(content)
    with pytest.raises(SpectuneError, match="is not a launch file of spectune's"):
        read_exported(file)


def test_files_for_other_programs_and_no_files_at_all(tmp_path):
    with pytest.raises(SpectuneError, match="check takes the script"):
        read_exported(exported(tmp_path).config)
    with pytest.raises(SpectuneError, match=r"No such file.*`spectune export STUDY` wrote"):
        read_exported(tmp_path / "gone.sh")
    for endless in (tmp_path, Path("/dev/zero")):
        with pytest.raises(SpectuneError, match="it is a folder, a device or a pipe"):
            read_exported(endless)
    (tmp_path / "binary.sh").write_bytes(b"#!\xff\xfe")
    with pytest.raises(SpectuneError, match="no text"):
        read_exported(tmp_path / "binary.sh")


def test_a_script_that_forgot_its_study_and_one_whose_study_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell = exported(tmp_path, study="gone").shell
    with pytest.raises(SpectuneError, match="comes from the study gone, which is not here"):
        read_exported(shell).folder()
    shell.write_text("\n".join(line for line in shell.read_text().splitlines() if "study" not in line))
    with pytest.raises(SpectuneError, match="no longer names the study"):
        read_exported(shell)


def test_what_a_launch_is_given_now_and_was_not_then():
    then = Launch.of(record().command)
    now = Launch.of(record(argv=(*ARGV, "--y"), env={"A": "1"}).command)
    assert launch_changes(then, then) == []
    assert launch_changes(then, now) == ["--y: absent → given", "A: absent → 1"]
