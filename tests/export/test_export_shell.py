import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace

import pytest
from export_samples import ARGV, record
from hypothesis import given, settings
from hypothesis import strategies as st

from spectune.export import command_text, export_candidates
from spectune.export.header import Origin
from spectune.export.launch import Launch
from spectune.export.shell import shell_script

ORIGIN = Origin("study", "SGLang 0.5.23", simulated=False)
STUB = """import os, sys
print(os.fsencode(chr(0).join(sys.argv[1:])).hex())
print(os.fsencode(chr(0).join(f"{name}={value}" for name, value in os.environ.items())).hex())
"""
HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    "a'b\"c",
    "two\nlines",
    "; touch owned",
    "\\",
    "*",
    "~",
    "!x",
    "#no",
    " ",
    "é\u2028",
    "\x1b[2J",
]
words = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
names = st.from_regex(r"SPECTUNE_[A-Z0-9_]{1,8}", fullmatch=True)


def run(script, cwd, *arguments, **env):
    answer = subprocess.run(
        ["bash", "-c", script, "launch", *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        check=True,
        text=True,
    )
    argv, variables = (os.fsdecode(bytes.fromhex(line)).split("\0") for line in answer.stdout.splitlines())
    return argv, dict(entry.split("=", 1) for entry in variables)


def script_of(pick, origin=ORIGIN):
    return shell_script(pick, Launch.of(pick.command), origin)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(words.filter(lambda word: word and not word.startswith("--")), min_size=1),
    st.dictionaries(names, words),
    words,
)
def test_hostile_values_arrive_as_they_are_and_run_nothing(tmp_path_factory, values, env, name):
    folder = tmp_path_factory.mktemp("run")
    argv = (sys.executable, "-c", STUB, "--values", *values)
    pick = record(argv=argv, env=env, unset=["GONE"])
    for script in (
        script_of(pick, Origin(name, name, simulated=True, notes=[name])),
        f"exec {command_text(pick.command)}",
    ):
        seen, variables = run(script, folder, GONE="here")
        assert seen == ["--values", *values, "--host", "127.0.0.1", "--port", "30000"]
        assert {key: variables[key] for key in env} == env
        assert "GONE" not in variables
    assert not list(folder.iterdir())


def test_host_and_port_can_be_chosen_and_arguments_added(tmp_path):
    script = script_of(record(argv=(sys.executable, "-c", STUB, "--port", "1", "--nccl-port", "2", "--x")))
    assert run(script, tmp_path, "--more", "a b", HOST="::1", PORT="80")[0] == [
        "--x",
        "--host",
        "::1",
        "--port",
        "80",
        "--more",
        "a b",
    ]


def test_a_port_variable_of_the_launch_does_not_move_the_server(tmp_path):
    seen, variables = run(script_of(record(argv=(sys.executable, "-c", STUB), env={"PORT": "7"})), tmp_path)
    assert seen[-1] == "30000"
    assert variables["PORT"] == "7"


def export(tmp_path, pick, **changes):
    return export_candidates([pick], tmp_path / "export", replace(ORIGIN, **changes))[0]


def test_the_file_runs_and_says_what_was_measured(tmp_path):
    shell = export(tmp_path, record()).shell
    text = shell.read_text()
    assert shell.name == "launch-eagle3-drafter-strong-s3-k1-n4.sh"
    assert stat.S_IMODE(shell.stat().st_mode) == 0o755
    assert (
        "c1: decode speed 82.3 tok/s [81.9, 82.7], output throughput 80.0 tok/s, accept length 2.47 [2.41, 2.53]"
        in text
    )
    assert "study study, trial 3, 2026-03-01T10:00:00+00:00, SGLang 0.5.23" in text
    assert "needs the folder /models/target" in text
    assert "29501" not in text
    assert "31007" not in text
    subprocess.run(["bash", "-n", shell], check=True)


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({"simulated": True}, "SIMULATED"),
        ({"engine": "SGLang 0.5.23 on the CPU reference runtime"}, "measured on the CPU reference runtime"),
    ],
)
def test_figures_that_are_not_of_a_gpu_are_marked(changes, mark, tmp_path):
    files = export(tmp_path, record(), **changes)
    assert mark in files.shell.read_text()
    assert mark in files.config.read_text()


def test_one_candidate_is_exported_once(tmp_path):
    files = export_candidates([record(5), record(3)], tmp_path, ORIGIN)
    assert [found.trial for found in files] == [5]


def test_a_header_is_comments_only_whatever_names_are():
    pick = record(argv=("p", "--api-key\nexec evil", "x"))
    origin = Origin("s\ntouch owned", "e\r\ntouch owned", simulated=False, notes=["n\u2028touch owned"])
    header = script_of(pick, origin).split("set -euo pipefail")[0]
    assert all(line.startswith("#") for line in header.strip().split("\n"))


@pytest.mark.services
def test_shellcheck_has_nothing_to_say(tmp_path):
    assert shutil.which("shellcheck"), "install the package shellcheck"
    pick = record(
        argv=(*ARGV, "--chat-template", "it's $(here) `now`"),
        env={"NCCL_ALGO": "allreduce:ring", "Q": "'\"$x"},
        unset=["NCCL_PROTO"],
    )
    answer = subprocess.run(
        ["shellcheck", "--enable=all", "--format=gcc", export(tmp_path, pick).shell],
        check=False,
        capture_output=True,
        text=True,
    )
    assert answer.stdout == ""
