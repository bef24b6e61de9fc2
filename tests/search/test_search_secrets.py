"""Secrets that are planted in variables, arguments and URLs are nowhere in what a study leaves, says or is called."""

from __future__ import annotations

import ast
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from forked import spectune
from readme_commands import ROOT, SPECTUNE
from search_simulated import ALONE, SPACE, write

PLANTED = {
    "HF_TOKEN": "hf_" + "Qz7" * 9, "OPENAI_API_KEY": "sk-" + "Ab3" * 8, "SERVICE_PASSWORD": "correct-horse-battery",
    "PIP_INDEX_URL": "https://me:0pen-sesame@mirror.example/simple",
}  # fmt: skip
ARGS = SPACE["engine"]["args"]
HOSTILE = "org/\x1b]0;owned\x07<script>alert(1)</script>'\"; touch pwned; $(touch pwned) `touch pwned` : {a: [b"


def searched(
    folder: Path, *, virtual: bool, profile: dict[str, object] | None = None, **engine: object
) -> subprocess.CompletedProcess[str]:
    write(folder, profile=profile, budget={"trials": 3}, workload=ALONE)
    section = SPACE["engine"] | {"virtual": virtual} | engine
    space = yaml.safe_load((folder / "sim.yaml").read_text()) | {"engine": section}
    (folder / "sim.yaml").write_text(yaml.safe_dump(space, sort_keys=False, allow_unicode=True))
    return spectune("search", "sim.yaml", cwd=folder, **PLANTED)


def left_behind(folder: Path) -> dict[Path, bytes]:
    found = [path for place in ("studies", "reports") for path in (folder / place).rglob("*") if path.is_file()]
    assert len(found) > 20
    return {path: path.read_bytes() for path in found}


@pytest.mark.parametrize("virtual", [True, False])
def test_secrets_of_the_shell_are_nowhere(tmp_path: Path, *, virtual: bool) -> None:
    profile = {"faults": [{"when": {"speculation": True}, "at": "load", "kind": "oom", "times": 1}]}
    done = searched(tmp_path, virtual=virtual, profile=profile)
    assert done.returncode == 0, done.stderr
    said = {Path("stdout"): done.stdout.encode(), Path("stderr"): done.stderr.encode()}
    for name, secret in PLANTED.items():
        for path, content in {**left_behind(tmp_path), **said}.items():
            assert secret.encode() not in content, f"{name} is in {path}"


@pytest.mark.parametrize("virtual", [True, False])
def test_a_secret_that_the_engine_repeats_is_blotted_out(tmp_path: Path, *, virtual: bool) -> None:
    repeated = PLANTED["SERVICE_PASSWORD"]
    done = searched(tmp_path, virtual=virtual, args=ARGS | {"served-model-name": repeated})
    assert done.returncode == 0, done.stderr
    assert repeated not in done.stdout + done.stderr
    kept = [path for path in (tmp_path / "studies/sim/trials").rglob("*") if path.is_file()]
    assert not [path for path in kept if repeated.encode() in path.read_bytes()]
    assert "•••" in (tmp_path / "studies/sim/trials/0000-baseline/launch.sh").read_text()
    assert virtual or "•••" in (tmp_path / "studies/sim/trials/0000-baseline/server.log").read_text()


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("args", "tokenizer-path", "https://me:0pen-sesame@models.example/t"), ("args", "admin-api-key", "0pen-sesame"),
        ("env", "MIRROR", "https://me:0pen-sesame@mirror.example"), ("env", "EXTRA", PLANTED["HF_TOKEN"]),
        ("env", "SERVICE_API_KEY", "0pen-sesame"),
    ],
)  # fmt: skip
def test_a_space_with_a_secret_is_refused_in_words_that_do_not_repeat_it(
    tmp_path: Path, section: str, name: str, value: str
) -> None:
    done = searched(tmp_path, virtual=True, **{section: (ARGS if section == "args" else {}) | {name: value}})
    assert done.returncode == 2
    assert name in done.stderr
    assert "credential" in done.stderr
    assert value not in done.stderr + done.stdout
    assert not (tmp_path / "studies").exists()


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    done = searched(tmp_path, virtual=True, args=ARGS | {"model-path": HOSTILE})
    assert done.returncode == 0, done.stderr
    for said in (done.stdout, done.stderr):
        assert "\x1b]0" not in said
        assert "\x07" not in said
    report = (tmp_path / "reports/sim.html").read_text()
    assert "<script>alert(1)</script>" not in report
    for script in (tmp_path / "studies/sim").rglob("*.sh"):
        assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
        assert (
            subprocess.run(
                ["bash", "-c", f"exec() {{ :; }}; set +e; . {script}"], cwd=tmp_path, check=False, capture_output=True
            ).returncode
            is not None
        )
    for file in (tmp_path / "studies/sim").rglob("*.yaml"):
        yaml.safe_load(file.read_text())
    assert not list(tmp_path.rglob("pwned"))


def test_nothing_of_a_study_is_for_everybody_to_write(tmp_path: Path) -> None:
    write(tmp_path, virtual=False, budget={"trials": 1}, workload=ALONE)
    subprocess.run(
        ["bash", "-c", f"umask 0; {SPECTUNE} search sim.yaml"], cwd=tmp_path, capture_output=True, check=False
    )
    found = list((tmp_path / "studies").rglob("*"))
    assert any(path.name == "server.log" for path in found)
    assert not [path for path in found if path.stat().st_mode & (stat.S_IWOTH | stat.S_IWGRP)]


def test_nothing_is_unpickled() -> None:
    """No module that runs in spectune's interpreter reads a format that can carry a program."""
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
    for file in (ROOT / "spectune").rglob("*.py"):
        if not {"overlay", "asked", "training"}.isdisjoint(file.parts):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not forbidden & {name.split(".")[0] for name in names}, file
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
                assert node.attr not in {"load", "unsafe_load", "full_load", "FullLoader", "UnsafeLoader"}, file
