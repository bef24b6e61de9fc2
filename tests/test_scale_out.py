"""The page on several machines: its commands are commands, and its Kubernetes Job is one that can work."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from readme_commands import ROOT
from typer.main import get_command

from spectune.cli.program import STORAGE_VARIABLE, app

PAGE = (ROOT / "docs/scale_out.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    lines = [line for block in blocks("bash") for line in block.replace("\\\n", " ").splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[1:] for line in words if line and line[0] == "spectune"]


def accept(arguments: Sequence[str]) -> None:
    """Have the command line parsed as it would be, without running it."""
    command = get_command(app).get_command(None, arguments[0])  # type: ignore[attr-defined]
    assert command is not None, arguments
    command.make_context(arguments[0], list(arguments[1:]))


@pytest.fixture(scope="module")
def job() -> Any:
    (found,) = [document for block in blocks("yaml") if (document := yaml.safe_load(block))["kind"] == "Job"]
    return found


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_of_the_page_is_one(arguments: list[str]) -> None:
    accept(arguments)


def test_the_page_shows_every_executor() -> None:
    assert {"local", "slurm"} <= {words[words.index("--executor") + 1] for words in commands() if "--executor" in words}


def test_the_job_runs_a_worker(job: Any) -> None:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    program, *arguments = [word.replace("$(NODE_NAME)", "node-1") for word in container["command"]]
    assert program == "spectune"
    assert arguments[0] == "worker"
    accept(arguments)
    variables = {variable["name"]: variable["valueFrom"] for variable in container["env"]}
    assert "secretKeyRef" in variables[STORAGE_VARIABLE]
    assert "fieldRef" in variables["NODE_NAME"]


def test_the_job_is_one_pod_for_each_group_of_gpus(job: Any) -> None:
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (job["apiVersion"], spec["completionMode"]) == ("batch/v1", "Indexed")
    assert spec["completions"] == spec["parallelism"] > spec["maxFailedIndexes"]
    assert spec["backoffLimitPerIndex"] > 0
    (rule,) = spec["podFailurePolicy"]["rules"]
    assert all(condition.keys() == {"type", "status"} for condition in rule["onPodConditions"]), "both are required"
    assert pod["restartPolicy"] == "Never"
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 8


def test_the_jobs_volumes_are_there_and_shared_memory_is_memory(job: Any) -> None:
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounted = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
    assert mounted["/dev/shm"]["emptyDir"]["medium"] == "Memory"
    assert container["workingDir"] in mounted
