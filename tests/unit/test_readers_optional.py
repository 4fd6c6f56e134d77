"""What is said of a library that a format needs, and that is not there or does not load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ciwrap.base.errors import ReaderPluginError
from ciwrap.formats.reader import library

if TYPE_CHECKING:
    from pathlib import Path


def remedy_of(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, package: str) -> str:
    (folder / f"{package}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(ReaderPluginError) as caught:
        library(package, file="x")
    return str(caught.value)


def test_a_library_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = remedy_of(
        tmp_path, monkeypatch, "raise ModuleNotFoundError('No re2', name='re2')", "re2"
    )
    assert said == ("x: is read with re2, which is not installed; pip install google-re2")


@pytest.mark.parametrize(
    ("package", "installed_as"), [("h5py", "h5py"), ("re2", "google-re2"), ("lz4", "lz4")]
)
def test_a_library_that_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, installed_as: str
) -> None:
    """It alone is installed again: ciwrap would come from an index that does not have it."""
    said = remedy_of(tmp_path, monkeypatch, "raise ImportError('no libGL')", package)
    assert said.endswith(f"no libGL; pip install --force-reinstall {installed_as}")
