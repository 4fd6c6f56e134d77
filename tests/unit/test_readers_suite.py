"""The published suite, run by each of our own readers."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from ciwrap.errors import CorruptFileError
from ciwrap.readers.npy import NpyReader
from ciwrap.readers.npz import NpzReader
from ciwrap.readers.raw import RawReader
from ciwrap.readers.text import TextReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.readers import Reader
    from ciwrap.testing.samples import Arrays


class TestNpy(ReaderSuite):
    suffix = ".npy"
    holds_many = False

    def make_reader(self) -> Reader:
        return NpyReader()

    def write(self, path: Path, variables: Arrays) -> None:
        np.save(path, variables["data"])


class TestNpyInFortranOrder(TestNpy):
    def write(self, path: Path, variables: Arrays) -> None:
        np.save(path, np.asfortranarray(variables["data"]).reshape(variables["data"].shape))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(version: tuple[int, int], tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    with NpyReader().open(path) as source:
        assert source.read("x", 0, 6).tolist() == array.reshape(-1).tolist()


class TestNpzStored(ReaderSuite):
    suffix = ".npz"

    def make_reader(self) -> Reader:
        return NpzReader()

    def write(self, path: Path, variables: Arrays) -> None:
        np.savez(path, **variables)


def test_npz_checksum_of_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(1000.0))
    data = bytearray(path.read_bytes())
    data[4000] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptFileError, match=r"x.npz: x: .*checksum"):
        NpzReader().open(path)


class TestNpzCompressed(TestNpzStored):
    def write(self, path: Path, variables: Arrays) -> None:
        np.savez_compressed(path, **variables)


class TestNpzCompressedInFortranOrder(TestNpzStored):
    def write(self, path: Path, variables: Arrays) -> None:
        np.savez_compressed(
            path,
            **{n: np.asfortranarray(v).reshape(v.shape) for n, v in variables.items()},
        )


class TestRaw(ReaderSuite):
    suffix = ".bin"
    holds_many = False

    def make_reader(self) -> Reader:
        return RawReader()

    def write(self, path: Path, variables: Arrays) -> None:
        path.write_bytes(b"header" + variables["data"].tobytes())

    def options(self, variables: Arrays) -> Mapping[str, Any]:
        data = variables["data"]
        return {"dtype": data.dtype.str, "shape": list(data.shape), "offset": 6}


class TestText(ReaderSuite):
    """Tables keep whole numbers, float64 and words; a cut at the end of a line is a shorter
    table.
    """

    suffix = ".csv"
    dtypes = ("<i8", "<f8", "<U16")
    shapes = ((1,), (7,), (1000,))
    fixed_size = False
    delimiter: ClassVar[str] = ","

    def make_reader(self) -> Reader:
        return TextReader()

    def write(self, path: Path, variables: Arrays) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=self.delimiter, lineterminator="\n")
            writer.writerow(variables)
            for row in zip(*variables.values(), strict=True):
                writer.writerow([cell.item() if cell.dtype.kind != "U" else cell for cell in row])

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        arrays = super().variables(dtype, shape)
        if dtype == "<U16":
            # An empty first cell leaves the column's type open, one of white space is no word.
            arrays["data"][arrays["data"] == ""] = "none"
        if dtype == "<f8":
            arrays["data"][:1] = 0.5
        return {"number": np.arange(arrays["data"].size), **arrays}

    def test_garbage(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        for garbage in (b"\x00\x01", b"a,b\n1,2\n\xff\xfe,3\n", b"a,b\n1\n", b'a,b\n"1,2\n'):
            path.write_bytes(garbage)
            self.refused(path, arrays, CorruptFileError)

    def test_several_variables(self, tmp_path: Path) -> None:
        self.check(
            tmp_path / f"many{self.suffix}",
            {"a": np.arange(5), "b": np.linspace(0, 1, 5), "c": np.array(list("vwxyz"), "<U16")},
        )


class TestTextWithBlanks(TestText):
    suffix = ".txt"
    delimiter = " "
