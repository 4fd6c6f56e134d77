"""The published suite, run by each of our own readers."""

from __future__ import annotations

import csv
import os
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.npy import NpyReader
from ciwrap.formats.npz import NpzReader
from ciwrap.formats.raw import RawReader
from ciwrap.formats.reader import Source
from ciwrap.formats.tables import TextReader
from ciwrap.testing import ReaderSuite
from ciwrap.testing.reader_suite import filled_memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


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

    def options(self, variables: Arrays) -> Mapping[str, Any]:
        return {"header": "yes"}  # columns of words are not guessed to be a table


class ForgetfulSource(Source):
    """Leaves out the last third of what it should read."""

    def __init__(self, inner: Source) -> None:
        self.path, self.variables, self._inner = inner.path, inner.variables, inner

    def read(self, name: str, first_element: int, count: int) -> np.ndarray[Any, Any]:
        found = self._inner.read(name, first_element, count)
        forgotten = np.empty_like(found)
        forgotten[: 2 * count // 3] = found[: 2 * count // 3]
        return forgotten

    def close(self) -> None:
        self._inner.close()


class ForgetfulReader(NpyReader):
    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Source:
        return ForgetfulSource(super().open(path, name=name, options=options))


def test_the_suite_finds_a_reader_that_hands_out_unwritten_memory(tmp_path: Path) -> None:
    suite = TestNpy()
    suite.test_what_memory_held_before(tmp_path)
    suite.make_reader = ForgetfulReader  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="memory was read that nobody wrote"):
        suite.test_what_memory_held_before(tmp_path)


def test_filled_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_filled(byte: int) -> bool:
        return np.empty(10_000, "u1").tolist() == [255 - byte] * 10_000

    monkeypatch.delenv("MALLOC_PERTURB_", raising=False)
    with filled_memory(17):
        assert os.environ["MALLOC_PERTURB_"] == "17"
        assert is_filled(17)
    assert "MALLOC_PERTURB_" not in os.environ
