"""The installer's decisions, on a runtime of three tiny wheels and with pip's real behaviour."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from tiny_wheels import tiny_recipe, write_wheel

from benchmarks.services.daemon import eventually
from spectune.engines.cpu_reference import installer, machine
from spectune.engines.cpu_reference.installer import estimate_cost, install, remove
from spectune.engines.cpu_reference.layout import Layout, record
from spectune.engines.cpu_reference.occupants import processes_of
from spectune.engines.cpu_reference.recipe import Recipe, recipe_named
from spectune.engines.cpu_reference.runtime import Runtime, find, find_recipe, planned
from spectune.errors import SpectuneError


@pytest.fixture
def bare_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A tiny recipe, an empty home, and a pip that sees nothing but its wheels."""
    monkeypatch.setenv("SPECTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return tiny_recipe(tmp_path)


@pytest.fixture(scope="session")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment to copy, because making one takes seconds."""
    folder = tmp_path_factory.mktemp("template") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def recipe(bare_recipe: Recipe, empty_environment: Path) -> Recipe:
    """A tiny recipe whose installation was interrupted when the environment was made."""
    layout = Layout.of(bare_recipe)
    shutil.copytree(empty_environment, layout.venv, symlinks=True)
    record(layout, bare_recipe, [])
    return bare_recipe


def steps_of(recipe: Recipe) -> list[tuple[str, float]]:
    seen: list[tuple[str, float]] = []
    install(recipe=recipe, progress=lambda step, share: seen.append((step, share)))
    return seen


def imports(runtime: Runtime, module: str) -> bool:
    run = subprocess.run([runtime.python, "-c", f"import {module}"], env=os.environ | runtime.env, check=False)
    return run.returncode == 0


def test_installs_says_what_it_does_and_is_there_at_once_the_second_time(
    bare_recipe: Recipe, capfd: pytest.CaptureFixture[str]
) -> None:
    assert find_recipe(bare_recipe) is None
    seen = steps_of(bare_recipe)
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    titles = list(dict.fromkeys(step for step, _ in seen))
    assert titles[2:5] == ["installing torch", "installing the server's packages", "installing SGLang"]
    runtime = find_recipe(bare_recipe)
    assert runtime is not None
    assert imports(runtime, "fakeengine, overlaid")
    assert (runtime.models / "target" / "config.json").is_file()
    assert not Layout.of(bare_recipe).temporary.exists()
    said = Layout.of(bare_recipe).log.read_bytes()
    assert steps_of(bare_recipe) == []
    assert Layout.of(bare_recipe).log.read_bytes() == said, "pip was not asked again"
    assert capfd.readouterr() == ("", "")


def test_estimate_says_size_and_build_before_anything_is_installed(recipe: Recipe) -> None:
    plan = estimate_cost(recipe=recipe)
    assert (plan.torch_version, plan.torch_build) == ("2.0+cpu", "cpu")
    assert "CPU build of torch 2.0+cpu" in plan.describe()
    assert str(plan.path) in plan.describe()
    assert find_recipe(recipe) is None
    asked: list[str] = []
    install(progress=lambda step, _: asked.append(step), plan=plan, recipe=recipe)
    assert "installing torch" in asked
    assert "looking for torch" not in asked, "pip has said what it would take"


def test_torch_index_is_for_torch_only(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path / "index" / "faketorch", "faketorch", "2.0+cu130", "BUILD = 'cuda'\n")
    wheel.with_name("index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    (tmp_path / "wheels" / "faketorch-2.0+cpu-py3-none-any.whl").unlink()
    monkeypatch.delenv("PIP_NO_INDEX")
    url = (tmp_path / "index").as_uri()
    plan = estimate_cost(recipe, url)
    assert plan.torch_build == "cuda"
    assert "--torch-index" in plan.describe()
    assert imports(install(recipe, url), "fakeengine")
    commands = [line for line in (plan.path / "pip.log").read_text().splitlines() if line.startswith("$ pip")]
    assert commands
    assert not any(url in line for line in commands), "it may hold a password, which pip itself does not print"


@pytest.mark.parametrize(
    "killed_in", ["creating the environment", "installing torch", "installing SGLang", "verifying"]
)
def test_goes_on_after_kill_9_in_any_step(recipe: Recipe, tmp_path: Path, killed_in: str) -> None:
    program = f"""
        import os, signal, sys
        sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}
        from pathlib import Path
        from tiny_wheels import tiny_recipe
        from spectune.engines.cpu_reference.installer import install
        seen = []
        def kill(step, share):
            seen.append(step)
            if step == {killed_in!r} and (seen.count(step) == 2 or "installing" not in step):
                os.kill(os.getpid(), signal.SIGKILL)
        install(recipe=tiny_recipe(Path({str(tmp_path / "again")!r})), progress=kill)
    """
    environment = os.environ | {"PIP_FIND_LINKS": str(tmp_path / "again" / "wheels")}
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert find_recipe(recipe) is None
    assert eventually(lambda: not processes_of(Layout.of(recipe).path), 10.0), "pip went on alone"
    titles = [step for step, _ in steps_of(recipe)]
    assert titles[-1] == "installed"
    runtime = find_recipe(recipe)
    assert runtime is not None
    assert imports(runtime, "fakeengine, overlaid")


def test_a_package_left_half_written_is_written_anew(recipe: Recipe) -> None:
    """What kill -9 inside of pip leaves: a distribution without the list of its files, which pip cannot uninstall."""
    layout = Layout.of(recipe)
    estimate_cost(recipe=recipe)
    (site,) = layout.venv.glob("lib/python*/site-packages")
    torn = site / "fakepackage-1.0.dist-info"
    torn.mkdir()
    (torn / "METADATA").write_text("Metadata-Version: 2.1\nName: fakepackage\nVersion: 1.0\n")
    assert imports(install(recipe=recipe), "fakepackage")


def test_finished_steps_are_not_done_again(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    (wheels := Path(os.environ["PIP_FIND_LINKS"])).joinpath("fakeengine-0.1-py3-none-any.whl").unlink()
    with pytest.raises(SpectuneError, match=r"fakeengine==0\.1"):
        install(recipe=recipe)
    write_wheel(wheels, "fakeengine", "0.1", "import faketorch, fakepackage\n")
    calls: list[list[str]] = []
    run_pip = installer.run_pip
    monkeypatch.setattr(
        installer,
        "run_pip",
        lambda layout, words, watch, index: calls.append(words) or run_pip(layout, words, index=index),
    )
    install(recipe=recipe)
    assert [words[-1] for words in calls] == ["fakeengine==0.1"]


def test_other_pins_build_the_environment_anew(recipe: Recipe) -> None:
    install(recipe=recipe)
    write_wheel(Path(os.environ["PIP_FIND_LINKS"]), "fakeengine", "0.2", "NEW = True\n")
    newer = replace(recipe, engine="fakeengine==0.2", engine_version="0.2")
    assert find_recipe(newer) is None
    runtime = install(recipe=newer)
    assert runtime.sglang_version == "0.2"
    (site,) = Layout.of(newer).venv.glob("lib/python*/site-packages")
    assert [path.name for path in site.glob("fakeengine-*")] == ["fakeengine-0.2.dist-info"]


def test_a_changed_overlay_is_placed_beside_the_one_exported_files_name(recipe: Recipe) -> None:
    before = install(recipe=recipe)
    (recipe.content[0] / "overlaid.py").write_text("ANSWER = 43\n")
    after = find_recipe(recipe)
    assert after is not None
    assert after.env["PYTHONPATH"] != before.env["PYTHONPATH"]
    assert Path(before.env["PYTHONPATH"], "overlaid.py").read_text() == "ANSWER = 42\n"
    assert Path(after.env["PYTHONPATH"], "overlaid.py").read_text() == "ANSWER = 43\n"


def test_pip_failure_is_one_sentence_with_its_last_word_and_the_log(recipe: Recipe) -> None:
    recipe.lock.write_text("fakepackage==7.7\n")
    with pytest.raises(SpectuneError) as caught:
        install(recipe=recipe)
    message = str(caught.value)
    assert "No matching distribution found for fakepackage==7.7" in message
    assert "\n" not in message
    log = Layout.of(recipe).log
    assert str(log) in message
    assert "fakepackage" in log.read_text()


def test_unreachable_index_names_network_and_configuration(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "1")  # pip says why only when it tries again
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(SpectuneError, match="check network, proxy and pip's configuration"):
        estimate_cost(recipe, f"http://127.0.0.1:{unused_port}/simple")


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_full_disk_is_said_before_anything_is_written(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_bytes", lambda _: 100_000_000)
    with pytest.raises(SpectuneError, match=r"0\.1 GB free"):
        install(recipe=recipe)
    assert not list(Layout.of(recipe).venv.glob("lib/python*/site-packages/faketorch*"))


def test_a_disk_too_small_for_anything_gets_no_environment(
    bare_recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "free_bytes", lambda _: 8_000_000)
    for call in (install, estimate_cost):
        with pytest.raises(SpectuneError, match=r"0\.0 GB free, but the installation takes 0\.1 GB"):
            call(recipe=bare_recipe)
    assert not Layout.of(bare_recipe).path.exists()


def test_pip_that_is_killed_is_named(recipe: Recipe) -> None:
    estimate_cost(recipe=recipe)
    (site,) = Layout.of(recipe).venv.glob("lib/python*/site-packages")
    (site / "killed.pth").write_text("import os; print('WARNING: x', flush=True); os.kill(os.getpid(), 9)\n")
    with pytest.raises(SpectuneError, match=r"pip was ended by SIGKILL; .*goes on where it stopped"):
        install(recipe=recipe)


def test_disk_that_fills_up_meanwhile_is_named(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    estimate_cost(recipe=recipe)
    (site,) = Layout.of(recipe).venv.glob("lib/python*/site-packages")
    # The interpreter runs this before pip, and ends with the line pip prints when a write fails.
    (site / "full.pth").write_text("import sys; sys.exit('ERROR: [Errno 28] No space left on device')\n")
    with pytest.raises(SpectuneError, match="is full") as caught:
        install(recipe=recipe)
    assert "goes on where it stopped" in str(caught.value)


def test_engine_that_does_not_run_is_not_called_installed(recipe: Recipe) -> None:
    broken = replace(recipe, verification="import nothing_of_that_name")
    with pytest.raises(SpectuneError, match="No module named 'nothing_of_that_name'"):
        install(recipe=broken)
    assert find_recipe(broken) is None
    broken = replace(recipe, verification="import os, sys; print('a warning', file=sys.stderr, flush=True); os.abort()")
    with pytest.raises(SpectuneError, match="the installed engine does not run: it was ended by SIGABRT;"):
        install(recipe=broken)


def test_home_that_cannot_be_written(bare_recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECTUNE_HOME", str(tmp_path / "file"))
    with pytest.raises(SpectuneError, match="set SPECTUNE_HOME to a folder of yours"):
        install(recipe=bare_recipe)


def test_two_at_once_install_once(recipe: Recipe) -> None:
    found: list[Runtime] = []
    steps: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(install(recipe=recipe, progress=lambda step, _: steps.append(step)))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    assert steps.count("installed") == 1


def test_a_lock_held_for_too_long_is_said(bare_recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "LOCK_SECONDS", 0.2)
    layout = Layout.of(bare_recipe)
    layout.lock.parent.mkdir(parents=True)
    seen: list[tuple[str, float]] = []
    for call in (install, estimate_cost):
        with FileLock(layout.lock), pytest.raises(SpectuneError, match="another process"):
            call(recipe=bare_recipe, progress=lambda step, share: seen.append((step, share)))
    assert seen == [("waiting for another installation", 0.0)] * 2


def test_remove_refuses_while_an_engine_runs_and_then_leaves_nothing(recipe: Recipe) -> None:
    runtime = install(recipe=recipe)
    engine = subprocess.Popen([runtime.python, "-c", "import time; time.sleep(3600)"])
    try:
        with pytest.raises(SpectuneError, match=f"process {engine.pid}"):
            remove(recipe)
        assert find_recipe(recipe) == runtime
    finally:
        engine.kill()
        engine.wait()
    remove(recipe)
    assert not runtime.path.exists()
    assert find_recipe(recipe) is None
    with pytest.raises(SpectuneError, match="not installed"):
        remove(recipe)


def test_unknown_runtime_lists_the_known_ones() -> None:
    for call in (find, planned, recipe_named):
        with pytest.raises(SpectuneError, match="choose one of: cpu-reference"):
            call("gpu-reference")


def test_a_planned_runtime_has_what_can_be_looked_at_before_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECTUNE_HOME", str(tmp_path))
    runtime = planned("cpu-reference")
    assert runtime.python == tmp_path / "engines" / "cpu-reference" / "venv" / "bin" / "python"
    assert (runtime.models / "target" / "model.safetensors").is_file()
    assert not list(tmp_path.iterdir())
