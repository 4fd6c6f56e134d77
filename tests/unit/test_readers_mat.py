"""MAT-files, PyTorch's files, and pickles, which are not opened."""

from __future__ import annotations

import pickle
import sys
import types
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import scipy.sparse
from scipy.io import savemat
from told_by_readers import reader_for

from ciwrap.base.errors import CorruptFileError, FileLimitError, ReaderPluginError, UnreadFileError
from ciwrap.formats.find_outputs import reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


class TestMat(ReaderSuite):
    suffix = ".mat"
    dtypes = ("|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<c16")
    shapes = ((1, 1), (7, 1), (3, 5), (0, 4), (2, 3, 4), (100, 10))
    fixed_size = False

    def make_reader(self) -> Reader:
        return reader_named("mat")

    def write(self, path: Path, variables: Arrays) -> None:
        savemat(path, variables, format="5")


class TestMatCompressed(TestMat):
    def write(self, path: Path, variables: Arrays) -> None:
        savemat(path, variables, format="5", do_compression=True)


def found(path: Path) -> dict[str, Any]:
    with reader_for(path).open(path) as source:
        return {
            info.name: source.read(info.name, 0, info.element_count).tolist()
            for info in source.variables
            if info.fault is None
        }


def test_what_a_mat_file_holds(tmp_path: Path) -> None:
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = np.arange(3.0), "text"
    values = {
        "scf": {"energy": -1.5, "history": np.array([1.0, 2.0])},
        "cells": cells,
        "matrix": scipy.sparse.csc_matrix(np.diag([1.0, 2.0])),
    }
    savemat(tmp_path / "r.mat", values)
    assert found(tmp_path / "r.mat") == {
        "scf.energy": [-1.5],
        "scf.history": [1.0, 2.0],
        "cells.0": [0.0, 1.0, 2.0],
        "cells.1": ["text"],
        "cells.shape": ["1x2"],
        "matrix.data": [1.0, 2.0],
        "matrix.indices": [0, 1],
        "matrix.indptr": [0, 1, 2],
        "matrix.shape": ["2x2"],
    }


def test_version_7_3_is_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "r.mat", "w", userblock_size=512) as file:
        file["x"] = np.arange(3.0)
    data = bytearray((tmp_path / "r.mat").read_bytes())
    data[:19] = b"MATLAB 7.3 MAT-file"
    (tmp_path / "r.mat").write_bytes(bytes(data))
    assert found(tmp_path / "r.mat") == {"x": [0.0, 1.0, 2.0]}


def test_what_version_7_3_says_in_attributes(tmp_path: Path) -> None:
    """How many rows a sparse matrix has, and what class numbers are of, is nowhere else."""
    with h5py.File(tmp_path / "r.mat", "w", userblock_size=512) as file:
        sparse = file.create_group("s")
        sparse.attrs.update({"MATLAB_class": np.bytes_("double"), "MATLAB_sparse": np.uint64(5)})
        sparse["data"] = [1.0]
        file["e"] = np.array([0, 3], "u8")
        file["e"].attrs.update({"MATLAB_class": np.bytes_("single"), "MATLAB_empty": np.uint8(1)})
    data = bytearray((tmp_path / "r.mat").read_bytes())
    data[:19] = b"MATLAB 7.3 MAT-file"
    (tmp_path / "r.mat").write_bytes(data)
    with reader_named("mat").open(tmp_path / "r.mat") as source:
        assert {info.name: dict(info.labels) for info in source.variables} == {
            "e": {"MATLAB_class": "single", "MATLAB_empty": "1"},
            "s/data": {"MATLAB_class": "double", "MATLAB_sparse": "5"},
        }


class Tells:
    """Would leave a file behind if it were unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib"])
def test_a_pickle_is_not_opened(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    path.write_bytes(pickle.dumps(Tells(str(tmp_path / "ran"))))
    with pytest.raises(UnreadFileError, match=r"runs code when it is read; write \.npz"):
        reader_for(path).open(path)
    assert not (tmp_path / "ran").exists()


class Tensor:
    """As much of a tensor as the reader asks for."""

    def __init__(self, array: Any, dtype: str) -> None:
        self.array, self.dtype, self.shape = array, dtype, array.shape

    def detach(self) -> Tensor:
        return self

    def contiguous(self) -> Tensor:
        return self

    def view(self, dtype: str) -> Tensor:
        return Tensor(self.array.view("<i2"), dtype)

    def numpy(self) -> Any:
        if self.dtype == "sparse":
            raise TypeError("can't convert a sparse tensor")
        return self.array


class Torch(types.ModuleType):
    """Stands in for torch: only what is written here can be called."""

    bfloat16, int16 = "bfloat16", "int16"
    Tensor = Tensor

    def __init__(self, value: Any, version: str = "2.6.0+cpu") -> None:
        super().__init__("torch")
        self.__version__, self.value = version, value
        self.calls: list[Any] = []

    def load(self, *arguments: Any, **named: Any) -> Any:
        self.calls.append((arguments, named))
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def test_weights_alone_are_loaded_by_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"some bytes")
    bits = np.array([0x3F80, 0x4000], "<u2")
    torch = Torch(
        {
            "model": {"w": Tensor(np.arange(3.0), "f8"), "h": Tensor(bits, "bfloat16")},
            "epoch": 3,
            "losses": [0.5, 0.25],
            "odd": Tensor(np.zeros(2), "sparse"),
            "other": {1, 2},
        }
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    with reader_for(path).open(path) as source:
        infos = {info.name: info for info in source.variables}
        assert source.read("model.w", 0, 3).tolist() == [0, 1, 2]
        assert source.read("model.h", 0, 2).tolist() == bits.tolist()
        assert source.read("losses.1", 0, 1).tolist() == [0.25]
    assert infos["model.h"].dtype == "<bf2"
    assert infos["epoch"].fault is None
    assert "sparse tensor" in str(infos["odd"].fault)
    assert "type set" in str(infos["other"].fault)
    assert torch.calls == [((str(path),), {"map_location": "cpu", "weights_only": True})]


def test_a_torch_that_may_run_code_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"some bytes")
    torch = Torch({}, "2.5.1")
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ReaderPluginError, match=r"torch 2\.6 or later, or write \.safetensors"):
        reader_for(path).open(path)
    assert torch.calls == []
    monkeypatch.setitem(sys.modules, "torch", Torch(RuntimeError("Unsupported global")))
    with pytest.raises(CorruptFileError, match="Unsupported global"):
        reader_for(path).open(path)


def test_fields_of_structures_without_elements(tmp_path: Path) -> None:
    """Nothing told of them; in which order they are is no difference."""
    for names, wanted in (("ba", "a b"), ("ab", "a b"), ("c", "c")):
        empty = np.empty((0, 0), dtype=[(name, "O") for name in names])
        savemat(tmp_path / "x.mat", {"s": empty})
        with reader_named("mat").open(tmp_path / "x.mat") as source:
            found = {info.name: source.read(info.name, 0, 1).tolist() for info in source.variables}
        assert found == {"s.shape": ["0x0"], "s.fields": [wanted]}


@pytest.mark.linux
def test_a_file_that_claims_a_thousand_million_cells(tmp_path: Path) -> None:
    """SciPy takes 16 GB, and much time, to find that they are not there."""
    path = tmp_path / "x.mat"
    cells = np.empty((1, 3), dtype=object)
    cells[0, :] = [1.0, 2.0, 3.0]
    savemat(path, {"c": cells})
    data, lengths = path.read_bytes(), np.array([1, 3], "<i4").tobytes()
    assert data.count(lengths) == 1
    path.write_bytes(data.replace(lengths, np.array([1, 0x7FFFFFFF], "<i4").tobytes()))
    with pytest.raises(FileLimitError, match="more memory than there is"):
        reader_for(path).open(path)
