"""Damaged and hostile files, and missing libraries, through the command line: one line, exit 3."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ciwrap.base.errors import CorruptFileError
from ciwrap.cli.main import run
from ciwrap.formats import apart as child
from ciwrap.formats.look import look_first

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(5000.0), chunks=(500,), compression="gzip")


def write_zarr(path: Path) -> None:
    zarr.create_array(str(path / "x"), data=np.arange(5000.0), chunks=(500,))
    zarr.open_group(str(path), mode="a")


def write_fits(path: Path) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(np.arange(5000.0)).writeto(path)


def write_adios2(path: Path) -> None:
    adios2 = pytest.importorskip("adios2")
    with adios2.Stream(str(path), "w") as file:
        for _ in file.steps(2):
            file.write("x", np.arange(5000.0), [5000], [0], [5000])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("name", "write", "damaged"),
    [
        ("run.h5", write_hdf5, "run.h5"),
        ("run.zarr", write_zarr, "run.zarr/x/c/3"),
        ("run.fits", write_fits, "run.fits"),
        ("run.bp", write_adios2, "run.bp/data.0"),
        ("run.bp", write_adios2, "run.bp/md.0"),
        ("run.bp", write_adios2, "run.bp/mmd.0"),
        ("run.bp", write_adios2, "run.bp/md.idx"),
    ],
)
def test_a_file_that_is_cut_off(
    name: str,
    write: Callable[[Path], None],
    damaged: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(child, "PATIENCE_SECONDS", 2.0)
    write(tmp_path / name)
    copy = tmp_path / "copy" / name
    copy.parent.mkdir()
    if (tmp_path / name).is_dir():
        shutil.copytree(tmp_path / name, copy)
    else:
        shutil.copy(tmp_path / name, copy)
    assert run(["compare", name, str(copy)]) == 0
    cut(tmp_path / "copy" / damaged)
    capsys.readouterr()
    assert run(["compare", name, str(copy)]) == 3
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    assert "copy/" in told.out


def test_a_library_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_hdf5(tmp_path / "a.h5")
    (tmp_path / "b.h5").write_bytes((tmp_path / "a.h5").read_bytes() + b"\0")
    monkeypatch.setitem(sys.modules, "h5py", None)
    for other, code in (("b.h5", 3), ("a.h5", 0)):
        assert run(["compare", str(tmp_path / "a.h5"), str(tmp_path / other)]) == code
        assert "pip install h5py" in capsys.readouterr().out


def test_links_to_other_files_are_not_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.h5"
    write_hdf5(path)
    with h5py.File(path, "a") as file:
        file["secret"] = h5py.ExternalLink("/etc/passwd", "/x")
    assert run(["compare", str(path), str(path)]) == 3
    assert "link to another file" in capsys.readouterr().out
    assert run(["compare", str(path), str(path), "--ignore", "secret"]) == 0


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGSEGV, r"crashes \(SIGSEGV"), (signal.SIGABRT, r"crashes \(SIGABRT")],
)
def test_a_library_that_crashes(number: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    with pytest.raises(CorruptFileError, match=words):
        look_first(path, partial(crash, number), nothing_open)  # type: ignore[arg-type]


def crash(number: int) -> None:
    os.kill(os.getpid(), number)


def nothing_open() -> bool:
    return False
