"""A file against itself matches whatever it holds; somebody has to say so."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from ciwrap.cli.main import run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for step in (1, 2):
        folder = tmp_path / "out" / f"iter_{step}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", np.zeros(3))
    return tmp_path


def warnings_of(*arguments: str) -> list[str]:
    assert run(["compare", *arguments, "--json", "r.json"]) == 0
    document = json.loads(Path("r.json").read_text(encoding="utf-8"))
    return [one["text"] for one in document["messages"] if one["level"] == "warning"]


@pytest.mark.parametrize("other", ["out", "./out/", "link"])
def test_one_folder_twice(here: Path, other: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "link").symlink_to("out")
    (text,) = warnings_of("out", other)
    assert text.startswith("2 files of out were compared with themselves: ")
    assert f"warning: {text}" in capsys.readouterr().out


def test_one_file_twice(here: Path) -> None:
    file = "out/iter_1/x.npy"
    (text,) = warnings_of(file, file)
    assert text.startswith(f"1 file of {file} was compared with itself: ")


def test_one_hard_link_among_copies(here: Path) -> None:
    shutil.copytree("out", "copy")
    assert warnings_of("out", "copy") == []
    Path("copy/iter_2/x.npy").unlink()
    os.link("out/iter_2/x.npy", "copy/iter_2/x.npy")
    (text,) = warnings_of("out", "copy")
    assert text.startswith("1 file of out was compared with itself: copy has the same")
