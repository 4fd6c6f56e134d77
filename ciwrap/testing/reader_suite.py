"""The tests that every reader of ciwrap passes, ours and those of other packages.

Subclass `ReaderSuite` in a test module, say how to make a reader and how to write a file, and say
with the class attributes what the format can hold. pytest finds the tests through the subclass.
The tests write arrays of every dtype and shape, change, cut and remove files, and fill memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import random
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciwrap.arrays.values import storage_dtype
from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    OutputMissingError,
    UnreadableFileError,
    UnsupportedDtypeError,
    UnsupportedFormatError,
    VariableMissingError,
)
from ciwrap.base.late import numpy as np
from ciwrap.formats.reader import Reader, Source, VariableInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np

_NOBODY = 65534
# Of malloc.h and of mallopt(3).
_M_PERTURB = -6
_PERTURB = "MALLOC_PERTURB_"
MUTATIONS = ("flip", "set", "cut", "insert", "double")


def remove(path: Path) -> None:
    """Removes a file, or a folder with all that is in it."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """For the block, root (in a container, say) is somebody whom permissions keep out."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@contextlib.contextmanager
def filled_memory(byte: int) -> Iterator[None]:
    """For the block, memory that is asked for is full of this byte's complement, in this process
    and in those that it starts; so what was never written shows. byte: 1 to 255.

    Raises NotImplementedError where the C library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not mallopt(_M_PERTURB, byte):
        raise NotImplementedError("only glibc can fill memory before it hands it out")
    before = os.environ.get(_PERTURB)
    os.environ[_PERTURB] = str(byte)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, int(before or 0))
        os.environ.pop(_PERTURB)
        if before is not None:
            os.environ[_PERTURB] = before


def mutate(data: bytearray, position: int, kind: str, value: int) -> None:
    """Changes bytes in place. kind: one of MUTATIONS."""
    position = min(position, len(data) - 1)
    if not data:
        return
    if kind == "flip":
        data[position] ^= 1 << value % 8
    elif kind == "set":
        data[position] = value
    elif kind == "cut":
        del data[position : position + 1 + value]
    elif kind == "insert":
        data[position:position] = bytes([value])
    else:
        data[position:position] = data[position : position + 1 + value]


Arrays = dict[str, np.ndarray[Any, Any]]

ALL_DTYPES = (
    "|b1", "|i1", "|u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8",
    "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16", "|S5", "<U3", ">U3",
)  # fmt: skip
ALL_SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (0,), (1,), (7,), (1000,), (3, 5), (0, 4), (4, 0)),
    *((2, 3, 4), (1, 1, 1), (5, 1, 7)),
)


def sample(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """An array of that dtype and shape with the same values every time, extremes among them."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if kind.kind == "b":
        values = generator.integers(0, 2, count).astype(kind)
    elif kind.kind in "iu":
        limits = np.iinfo(kind)
        values = generator.integers(limits.min, limits.max, count, dtype=kind.newbyteorder("="))
        values[:2] = [limits.min, limits.max][: min(2, count)]
    elif kind.kind == "c":
        values = (generator.normal(size=count) + 1j * generator.normal(size=count)).astype(kind)
    elif kind.kind == "f":
        values = generator.normal(size=count).astype(kind)
        special = [np.nan, np.inf, -np.inf, -0.0, np.finfo(kind).tiny, np.finfo(kind).max]
        values[: len(special)] = special[:count]
    else:
        words = ["", "a", "ab", "xyz", "q r"]
        values = np.array([words[n % len(words)] for n in range(count)], dtype=kind)
    return values.astype(kind).reshape(shape)


def same_values(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays hold the same dtype and the same bits."""
    return found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()


# What memory is filled with before a file is read once and again.
MEMORY_BYTES = (17, 99)
SLAB_BYTES = (1, 7, 64, 1000, 1 << 20)


class ReaderSuite:
    """Tests of one reader. Subclasses implement `make_reader` and `write`.

    suffix: of the files that are written. dtypes and shapes: what the format can hold; a format
    that changes a dtype on the way (text turns float32 into float64) lists only those it keeps.
    holds_many: whether a file can hold several variables. fixed_size: whether every file that is
    cut off or has bytes appended must be refused; allows_tail: whether bytes after the end are
    no concern of the format. options: what `open` is given. keeps_order: whether variables are
    listed in the order in which they were written. slowly: only every so many lengths of a
    truncated file are tried, for formats whose small files are large. fuzz_examples: how many
    damaged files are read. damaged_examples: how many of them are read twice, with memory full of
    one thing and of another.
    """

    suffix: ClassVar[str]
    dtypes: ClassVar[tuple[str, ...]] = ALL_DTYPES
    shapes: ClassVar[tuple[tuple[int, ...], ...]] = ALL_SHAPES
    holds_many: ClassVar[bool] = True
    fixed_size: ClassVar[bool] = True
    allows_tail: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    slowly: ClassVar[int] = 1
    fuzz_examples: ClassVar[int] = 150
    damaged_examples: ClassVar[int] = 4

    # --- what a subclass says --------------------------------------------------------------------

    def make_reader(self) -> Reader:
        """A new instance of the reader."""
        raise NotImplementedError

    def write(self, path: Path, variables: Arrays) -> None:
        """Writes a file with these variables; one of them, named "data", if not holds_many."""
        raise NotImplementedError

    def options(self, variables: Arrays) -> Mapping[str, Any]:  # noqa: ARG002
        """The options with which a file with these variables is opened."""
        return {}

    def part(self, path: Path) -> Path:
        """The file that is damaged, where an output is a folder; default: the output itself."""
        return path

    def expected(self, variables: Arrays) -> Arrays:
        """What should be read back; default: the variables themselves."""
        return variables

    # --- helpers ---------------------------------------------------------------------------------

    def open(self, path: Path, variables: Arrays) -> Source:
        name = None if self.holds_many else "data"
        return self.make_reader().open(path, name=name, options=self.options(variables))

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        return {"data": sample(dtype, shape)}

    def example(self, folder: Path) -> tuple[Path, Arrays]:
        """A small file, and what it holds."""
        shape = next((s for s in ((7,), (3, 5), (1,), ()) if s in self.shapes), self.shapes[0])
        return self._file_of(folder / f"example{self.suffix}", shape)

    def _file_of(self, path: Path, shape: tuple[int, ...]) -> tuple[Path, Arrays]:
        dtype = next(d for d in ("<f8", *self.dtypes) if d in self.dtypes)
        arrays = self.variables(dtype, shape)
        self.write(path, arrays)
        return path, arrays

    def read_all(self, source: Source) -> None:
        """Reads everything, and compares it with what is listed."""
        for info in source.variables:
            if info.fault is not None:
                with pytest.raises(UnsupportedDtypeError):
                    source.read(info.name, 0, 1)
                continue
            count = 0
            for piece in source.slabs(info.name, 4096):
                assert piece.dtype == storage_dtype(info.dtype)
                assert piece.ndim == 1
                count += piece.size
            assert count == info.element_count

    # --- values ----------------------------------------------------------------------------------

    def test_reader_describes_itself(self) -> None:
        reader = self.make_reader()
        assert isinstance(reader, Reader)
        assert reader.name
        # One that only `format` names claims no suffix.
        assert not reader.suffixes or self.suffix in reader.suffixes
        assert all(s == s.lower() and s.startswith(".") for s in reader.suffixes)

    def test_every_dtype(self, tmp_path: Path) -> None:
        shape = (7,) if (7,) in self.shapes else self.shapes[-1]
        for number, dtype in enumerate(self.dtypes):
            arrays = self.variables(dtype, shape)
            self.check(tmp_path / f"{number}{self.suffix}", arrays)

    def test_every_shape(self, tmp_path: Path) -> None:
        for number, shape in enumerate(self.shapes):
            for dtype in self.dtypes[-1], self.dtypes[0]:
                self.check(tmp_path / f"{number}{self.suffix}", self.variables(dtype, shape))

    def test_several_variables(self, tmp_path: Path) -> None:
        if not self.holds_many:
            pytest.skip("one variable to a file")
        shape = self.shapes[-1]
        arrays = {f"v{n}": sample(dtype, shape, n) for n, dtype in enumerate(self.dtypes[:5])}
        self.check(tmp_path / f"many{self.suffix}", arrays)

    def check(self, path: Path, arrays: Arrays) -> None:
        """Writes, opens, and compares every way of reading with what was written."""
        self.write(path, arrays)
        wanted = self.expected(arrays)
        with self.open(path, arrays) as source:
            names = [info.name for info in source.variables]
            assert (names if self.keeps_order else sorted(names)) == (
                list(wanted) if self.keeps_order else sorted(wanted)
            )
            for info in source.variables:
                array = wanted[info.name]
                assert storage_dtype(info.dtype) == array.dtype
                assert info.fault is None
                assert info.shape == array.shape
                assert info.byte_count == array.nbytes
                flat = array.reshape(-1)
                self.check_slabs(source, info, flat)
                self.check_ranges(source, info, flat)
                self.check_region(info, flat)

    def check_slabs(self, source: Source, info: VariableInfo, flat: np.ndarray[Any, Any]) -> None:
        for slab_bytes in SLAB_BYTES:
            pieces = list(source.slabs(info.name, slab_bytes))
            assert all(piece.flags.c_contiguous and piece.size for piece in pieces)
            assert all(piece.nbytes <= slab_bytes or piece.size == 1 for piece in pieces), (
                "a slab is larger than was asked for"
            )
            joined = b"".join(piece.tobytes() for piece in pieces)
            assert joined == flat.tobytes(), f"slabs of {slab_bytes} bytes"

    def check_ranges(self, source: Source, info: VariableInfo, flat: np.ndarray[Any, Any]) -> None:
        """Pieces in an order that goes back and forth, and what lies outside."""
        order = random.Random(flat.size)
        for _ in range(20):
            first = order.randrange(flat.size + 1)
            count = order.randrange(flat.size - first + 1)
            found = source.read(info.name, first, count)
            assert same_values(found, flat[first : first + count]), (first, count)
        for first, count in ((0, flat.size + 1), (flat.size, 1), (-1, 1), (0, -1)):
            with pytest.raises(IndexError):
                source.read(info.name, first, count)

    def check_region(self, info: VariableInfo, flat: np.ndarray[Any, Any]) -> None:
        """A region must hold exactly the variable's bytes."""
        if info.region is None:
            return
        assert info.region.byte_count == flat.nbytes
        with Path(info.region.path).open("rb") as file:
            file.seek(info.region.offset)
            assert file.read(info.region.byte_count) == flat.tobytes()

    # --- memory ----------------------------------------------------------------------------------

    def test_what_memory_held_before(self, tmp_path: Path) -> None:
        """A file equals itself, whole or damaged, whatever was in memory before it was read."""
        path, arrays = self.large_example(tmp_path)
        self.check_memory(path, arrays)
        path, arrays = self.example(tmp_path)
        part = self.part(path)
        whole = part.read_bytes()
        order = random.Random(len(whole))
        for _ in range(self.damaged_examples):
            data = bytearray(whole)
            kind = order.choice(MUTATIONS)
            mutate(data, order.randrange(len(whole)), kind, order.randrange(256))
            part.write_bytes(bytes(data))
            self.check_memory(path, arrays)

    def large_example(self, folder: Path) -> tuple[Path, Arrays]:
        """A file whose arrays are large enough that memory for them is not taken from a cache."""
        return self._file_of(folder / f"large{self.suffix}", max(self.shapes, key=math.prod))

    def check_memory(self, path: Path, arrays: Arrays) -> None:
        found = []
        try:
            for byte in MEMORY_BYTES:
                with filled_memory(byte):
                    found.append(self.outcome(path, arrays))
        except NotImplementedError as error:
            pytest.skip(str(error))
        assert found[0] == found[1], "memory was read that nobody wrote"

    def outcome(self, path: Path, arrays: Arrays) -> object:
        """All that a file gives: its variables and their bytes, or the kind of error."""
        try:
            with self.open(path, arrays) as source:
                return [
                    (
                        info,
                        None if info.fault else [one.tobytes() for one in source.slabs(info.name)],
                    )
                    for info in source.variables
                ]
        except CiwrapError as error:
            return error.slug

    # --- errors ----------------------------------------------------------------------------------

    def test_unknown_variable(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        with self.open(path, arrays) as source, pytest.raises(VariableMissingError):
            source.read("no such variable", 0, 0)

    def test_unknown_option(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        options = {**self.options(arrays), "no_such_option": 1}
        with pytest.raises(CiwrapError, match="no_such_option"):
            self.make_reader().open(path, options=options)

    def test_missing_file(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        remove(path)
        self.refused(path, arrays, OutputMissingError)

    def test_folder_and_file_exchanged(self, tmp_path: Path) -> None:
        """A folder instead of a file, or the reverse; and an empty folder where one is wanted."""
        path, arrays = self.example(tmp_path)
        is_folder = path.is_dir()
        remove(path)
        if is_folder:
            path.write_bytes(b"no folder")
            self.refused(path, arrays, (UnreadableFileError, CorruptFileError))
            path.unlink()
        path.mkdir()
        self.refused(path, arrays, CorruptFileError if is_folder else UnreadableFileError)

    def test_pipe_instead_of_file(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        remove(path)
        os.mkfifo(path)
        self.refused(path, arrays, UnreadableFileError)

    def test_unreadable_file(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        path.chmod(0)
        try:
            with ordinary_user():
                self.refused(path, arrays, UnreadableFileError)
        finally:
            path.chmod(stat.S_IRWXU)

    def test_empty_file(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        self.part(path).write_bytes(b"")
        self.refused(path, arrays, CorruptFileError)

    def test_garbage(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        for seed in range(20):
            self.part(path).write_bytes(random.Random(seed).randbytes(1 + seed * 50))
            self.refused(path, arrays, (CorruptFileError, UnsupportedFormatError))

    def test_truncated_file(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        part = self.part(path)
        whole = part.read_bytes()
        for length in (*range(0, len(whole) - 1, self.slowly), len(whole) - 1):
            part.write_bytes(whole[:length])
            if self.fixed_size:
                self.refused(path, arrays, (CorruptFileError, UnsupportedFormatError))
            else:
                self.read_or_refused(path, arrays)

    def test_bytes_left_over(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        if not self.fixed_size or self.allows_tail:
            pytest.skip("more bytes are more data")
        part = self.part(path)
        part.write_bytes(part.read_bytes() + b"\0" * 8)
        self.refused(path, arrays, CorruptFileError)

    def test_mutated_file(self, tmp_path: Path) -> None:
        """Whatever the bytes are: what is listed can be read, or a CiwrapError says why not."""
        path, arrays = self.example(tmp_path)
        part = self.part(path)
        whole = part.read_bytes()

        @settings(
            max_examples=self.fuzz_examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(
            st.lists(
                st.tuples(
                    st.integers(0, len(whole) - 1),
                    st.sampled_from(MUTATIONS),
                    st.integers(0, 255),
                ),
                min_size=1,
                max_size=4,
            )
        )
        def change(changes: list[tuple[int, str, int]]) -> None:
            data = bytearray(whole)
            for position, kind, value in changes:
                mutate(data, position, kind, value)
            part.write_bytes(bytes(data))
            self.read_or_refused(path, arrays)

        change()

    def refused(
        self, path: Path, arrays: Arrays, kinds: type[CiwrapError] | tuple[type[CiwrapError], ...]
    ) -> None:
        """Opening or reading raises one of these errors, as one line that names the file; or every
        variable is listed with why it cannot be read.
        """
        wanted = (*(kinds if isinstance(kinds, tuple) else (kinds,)), UnsupportedDtypeError)
        with pytest.raises(wanted) as caught, self.open(path, arrays) as source:
            self.read_what_is_whole(source)
        text = str(caught.value)
        assert path.name in text
        assert text.isprintable()

    def read_what_is_whole(self, source: Source) -> None:
        """Reads everything; raises UnsupportedDtypeError if every variable has a fault."""
        faults = [info.fault for info in source.variables]
        if faults and all(faults):
            source.read(source.variables[0].name, 0, 1)
        self.read_all(source)

    def read_or_refused(self, path: Path, arrays: Arrays) -> None:
        message = ""
        try:
            with self.open(path, arrays) as source:
                self.read_all(source)
        except CiwrapError as error:
            message = str(error)
        assert message.isprintable()
