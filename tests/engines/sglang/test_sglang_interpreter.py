"""The interpreter that has SGLang is asked once, and whatever is wrong with it is said in one sentence."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from benchmarks.services.daemon import eventually
from spectune.engines.open import options_of
from spectune.engines.protocol import EngineSoftware
from spectune.engines.sglang.interpreter import Interpreter
from spectune.errors import SpectuneError
from spectune.space import EngineSection

ANSWER = {
    "version": "0.5.10",
    "options": {"page-size": {"kind": "int", "nargs": None, "choices": None, "names": ["--page-size"]}},
}
# Stands for `python`: logs each call, prints the version for -c, and does `parser` for the script.
PROGRAM = """#!{python}
import sys, time, pathlib
pathlib.Path({log!r}).open("a").write(sys.argv[1] + "\\n")
if sys.argv[1] == "-c":
    {version}
else:
    {parser}
"""


class Fake:
    def __init__(self, folder: Path, *, parser: str = "", version: str = 'print("0.5.10")') -> None:
        self.log, self.cache = folder / "calls", folder / "cache"
        self.program = folder / "python"
        parser = parser or f"print('noise'); print({json.dumps(json.dumps(ANSWER))})"
        text = PROGRAM.format(python=sys.executable, log=str(self.log), version=version, parser=parser)
        self.program.write_text(text)
        self.program.chmod(0o755)
        self.interpreter = Interpreter(str(self.program))

    def calls(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def test_the_parser_is_asked_once_for_each_version_and_interpreter(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    first = fake.interpreter.options("0.5.10", fake.cache)
    assert fake.interpreter.options("0.5.10", fake.cache) == first
    assert (first.version, list(first.by_name), fake.calls()) == ("0.5.10", ["page-size"], 1)
    fake.interpreter.options("0.5.11", fake.cache)
    Interpreter(str(fake.program), {"PYTHONPATH": "/elsewhere"}).options("0.5.10", fake.cache)
    assert fake.calls() == 3
    assert [file.suffix for file in fake.cache.iterdir()] == [".json"] * 3


@pytest.mark.parametrize("left", ["", "{", "[]", "null", '{"version": 1}', '{"version": "1", "options": {"a": 3}}'])
def test_what_a_cache_file_should_not_hold_is_asked_again(tmp_path: Path, left: str) -> None:
    fake = Fake(tmp_path)
    whole = fake.interpreter.options("0.5.10", fake.cache)
    (file,) = fake.cache.iterdir()
    file.write_text(left)
    assert fake.interpreter.options("0.5.10", fake.cache) == whole
    assert fake.interpreter.options("0.5.10", fake.cache) == whole
    assert fake.calls() == 2


def test_an_sglang_that_does_not_import_is_said_with_its_last_line(tmp_path: Path) -> None:
    fake = Fake(tmp_path, parser="raise ImportError('libcuda.so.1: no such file')")
    with pytest.raises(SpectuneError, match=r"^SGLang 0\.5\.10 of .* does not load: ImportError: libcuda") as refused:
        fake.interpreter.options("0.5.10", fake.cache)
    assert "\n" not in str(refused.value)
    assert not fake.cache.exists()


def test_what_an_sglang_prints_after_its_answer_is_passed_over(tmp_path: Path) -> None:
    fake = Fake(tmp_path, parser=f"print({json.dumps(json.dumps(ANSWER))}); print('bye')")
    assert fake.interpreter.options("0.5.10", fake.cache).version == "0.5.10"


def test_what_a_terminal_could_obey_is_not_repeated(tmp_path: Path) -> None:
    fake = Fake(tmp_path, parser="raise ImportError('no \\x1b[31m CUDA')")
    with pytest.raises(SpectuneError, match=r"no \\x1b\[31m CUDA"):
        fake.interpreter.options("0.5.10", fake.cache)


@pytest.mark.parametrize("parser", ["pass", "print('not JSON')", "print('{}')", "print('[1]')"])
def test_an_answer_that_is_none_is_not_kept(tmp_path: Path, parser: str) -> None:
    fake = Fake(tmp_path, parser=parser)
    with pytest.raises(SpectuneError, match="does not load: it ended with 0 and no message"):
        fake.interpreter.options("0.5.10", fake.cache)
    assert not fake.cache.exists()


def test_a_hanging_interpreter_is_told_and_ended(tmp_path: Path) -> None:
    hang = "import os; pathlib.Path('%s').write_text(str(os.getpid())); time.sleep(600)"
    fake = Fake(tmp_path, parser=hang % (tmp_path / "pid"), version="time.sleep(600)")
    for patience_s in (1, 10, 100):  # for it to come as far as to hang
        with pytest.raises(SpectuneError, match=f"did not answer within {patience_s} s when asked"):
            fake.interpreter.options("0.5.10", fake.cache, timeout_s=patience_s)
        if (tmp_path / "pid").exists():
            break
    pid = (tmp_path / "pid").read_text()
    assert eventually(lambda: not Path("/proc", pid).exists())
    with pytest.raises(SpectuneError, match="see whether `import sglang` works"):
        fake.interpreter.sglang_version(timeout_s=0.5)


def test_a_cache_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    fake.cache.write_text("a file")
    with pytest.raises(SpectuneError, match=r"cannot make the folder .*; SPECTUNE_HOME names another place"):
        fake.interpreter.options("0.5.10", fake.cache)


def test_a_space_gets_the_options_of_its_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECTUNE_HOME", str(tmp_path / "home"))
    fake = Fake(tmp_path)
    assert options_of(EngineSection(python=str(fake.program))).version == "0.5.10"
    assert (tmp_path / "home/options").is_dir()
    assert options_of(EngineSection(python="no-such-python")).version == "0.5.23"
    assert options_of(EngineSection(runtime="cpu-reference")).version == "0.5.23"


def test_a_space_with_an_old_interpreter_is_refused(tmp_path: Path) -> None:
    fake = Fake(tmp_path, version='print("0.5.1.post2")')
    with pytest.raises(SpectuneError, match=r"0\.5\.1\.post2 of .* is too old"):
        options_of(EngineSection(python=str(fake.program)))


def test_versions_are_asked_without_importing_anything(tmp_path: Path) -> None:
    here = Interpreter(sys.executable).software()
    assert here.packages["numpy"] == metadata.version("numpy")
    assert "pytest" not in here.packages
    (tmp_path / "sitecustomize.py").touch()
    (tmp_path / "torch-9.9.dist-info").mkdir()
    (tmp_path / "torch-9.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n")
    there = Interpreter(sys.executable, {"PYTHONPATH": str(tmp_path)}).software()
    assert there.packages["torch"] == "9.9"
    assert there.sitecustomize == str(tmp_path / "sitecustomize.py")


@pytest.mark.parametrize("program", ["no-such-python", "/bin/true", "/bin/false"])
def test_an_interpreter_that_cannot_tell_its_versions_tells_none(program: str) -> None:
    assert Interpreter(program).software() == EngineSoftware()
