from __future__ import annotations

from pathlib import Path

import pytest

from spectune.errors import SpectuneError
from spectune.space import find_space_file, load_space


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["quickstart", "quickstart.yaml", "search_spaces/quickstart.yaml"])
def test_a_shipped_space_is_found_from_anywhere(name: str) -> None:
    assert find_space_file(name).name == "quickstart.yaml"
    assert load_space(name).name == "quickstart"


def test_a_file_here_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "quickstart.yaml"
    file.write_text("schema: 1")
    assert find_space_file("quickstart") == Path("quickstart.yaml")
    assert find_space_file(file) == file


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("quikstart", r"no search space file quikstart; did you mean 'quickstart'\?; shipped spaces: .*eagle3"),
        ("other/quickstart.yaml", "no search space file other/quickstart.yaml"),
        ("/nowhere/x.yaml", "no search space file"),
        ("", "is a folder"),
        ("..", "is a folder"),
        ("a" * 5000, "no search space file"),
        ("a\0b", "no search space file"),
    ],
)
def test_an_unknown_name_lists_what_is_shipped(name: str, message: str) -> None:
    with pytest.raises(SpectuneError, match=message):
        find_space_file(name)


def test_a_folder_is_no_space(tmp_path: Path) -> None:
    (tmp_path / "spaces").mkdir()
    with pytest.raises(SpectuneError, match="spaces is a folder"):
        find_space_file("spaces")
