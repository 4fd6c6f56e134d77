"""Unformatted Fortran: records, marks and split records, against SciPy and GNU Fortran."""

from __future__ import annotations

import shutil
import subprocess
import tracemalloc
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pytest
from fortran_files import fortran_bytes
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import FortranFile

from ciwrap.base.errors import CiwrapError, ConfigError, CorruptFileError, NotComparableError
from ciwrap.formats.fortran import FortranReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ciwrap.formats.reader import Reader, Source
    from ciwrap.testing.reader_suite import Arrays

STATE = [{"names": ["it", "n"], "dtype": "i4"}, {"u": "f8"}]


class TestFortran(ReaderSuite):
    """Marks of 4 bytes; a variable is a record."""

    suffix = ".unf"
    mark_bytes: ClassVar[int] = 4
    order: ClassVar[Literal["little", "big"]] = "little"
    most: ClassVar[int] = 1 << 30

    def make_reader(self) -> Reader:
        return FortranReader()

    def write(self, path: Path, variables: Arrays) -> None:
        records = [array.tobytes() for array in variables.values()]
        marks: dict[str, Any] = {"mark_bytes": self.mark_bytes, "order": self.order}
        path.write_bytes(fortran_bytes(records, most=self.most, **marks))

    def options(self, variables: Arrays) -> Mapping[str, Any]:
        records = [
            {name: {"dtype": array.dtype.str, "shape": list(array.shape)}}
            for name, array in variables.items()
        ]
        return {
            "records": records,
            "mark_bytes": self.mark_bytes,
            "byte_order": self.order,
            "iterations": "none",
        }


class TestFortranWithLongMarks(TestFortran):
    mark_bytes = 8
    order = "big"


class TestFortranSplit(TestFortran):
    most = 13


def opened(path: Path, **options: Any) -> Source:
    return FortranReader().open(path, options=options)


def values(source: Source) -> dict[tuple[str, int | None], list[Any]]:
    return {
        (info.called or info.name, info.iteration): source.read(
            info.name, 0, info.element_count
        ).tolist()
        for info in source.variables
    }


@pytest.mark.parametrize("mark", ["<u4", ">u4", "<u8", ">u8"])
def test_what_scipy_writes(tmp_path: Path, mark: str) -> None:
    order = mark[0]
    u = np.random.default_rng(1).normal(size=50)
    with FortranFile(tmp_path / "u.unf", "w", header_dtype=mark) as file:
        for it in (10, 20):
            file.write_record(np.array([it, 50], f"{order}i4"))
            file.write_record((it * u).astype(f"{order}f8"))
    with opened(tmp_path / "u.unf", records=STATE) as source:
        assert values(source) == {
            ("it", 0): [10], ("n", 0): [50], ("u", 0): (10 * u).tolist(),
            ("it", 1): [20], ("n", 1): [50], ("u", 1): (20 * u).tolist(),
        }  # fmt: skip
    options = {"iteration_variable": "it", "iteration_step": 10}
    with opened(tmp_path / "u.unf", records=STATE, **options) as source:
        assert [info.iteration for info in source.variables] == [1, 1, 1, 2, 2, 2]
        assert {info.dtype[0] for info in source.variables} == {order}


PROGRAM = """
program write_records
  implicit none
  integer :: it, n, i
  real(8) :: u(5, 3)
  n = 5
  open(10, file="u.unf", form="unformatted", access="sequential")
  write(10) "made by this", n
  do it = 1, 2
    do i = 1, 15
      u(1 + mod(i - 1, 5), 1 + (i - 1) / 5) = it + 0.5d0 * i
    end do
    write(10) it, 0.25 * it, u
  end do
end program
"""


@pytest.mark.parametrize(
    "flags", [[], ["-fmax-subrecord-length=24"], ["-frecord-marker=8"], ["-fconvert=big-endian"]]
)
def test_what_gnu_fortran_writes(tmp_path: Path, flags: list[str]) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    (tmp_path / "p.f90").write_text(PROGRAM)
    subprocess.run(
        ["gfortran", *flags, "p.f90", "-o", "p"], cwd=tmp_path, check=True, capture_output=True
    )
    subprocess.run([tmp_path / "p"], cwd=tmp_path, check=True)
    first = [{"title": "S12", "n": "i4"}]
    each = [{"it": "i4", "t": "f4", "u": {"dtype": "f8", "shape": [3, 5]}}]
    with opened(
        tmp_path / "u.unf", first_records=first, records=each, iteration_variable="it"
    ) as source:
        found = values(source)
        shapes = {info.called: info.shape for info in source.variables}
    assert found["title", None] == [b"made by this"]
    assert found["n", None] == [5]
    assert shapes["u"] == (3, 5)
    for it in (1, 2):
        assert found["t", it] == [0.25 * it]
        assert found["u", it] == [it + 0.5 * i for i in range(1, 16)]


def test_a_record_of_several_has_single_numbers_unless_a_shape_is_given(tmp_path: Path) -> None:
    record = np.int32(7).tobytes() + np.arange(3.0).tobytes() + np.float32(0.5).tobytes()
    (tmp_path / "x.unf").write_bytes(fortran_bytes([record]))
    described = {"it": "i4", "u": {"dtype": "f8", "shape": [-1]}, "t": "f4"}
    with opened(tmp_path / "x.unf", records=[described]) as source:
        assert values(source) == {("it", None): [7], ("u", None): [0, 1, 2], ("t", None): [0.5]}
        assert [info.shape for info in source.variables] == [(), (3,), ()]
        assert all(info.region is not None for info in source.variables)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (fortran_bytes([b"x" * 16])[:-5], {}, "record 1 claims 16 bytes at byte 0, and the file"),
        (fortran_bytes([b"x" * 8] * 2)[:-1] + b"\1", {}, "record 2 is 8 bytes long by the mark"),
        (fortran_bytes([b"x" * 8]) + b"\1", {}, "record 2 begins at byte 16, and the file ends"),
        (fortran_bytes([b"x" * 9]), {}, "record 1 has 9 bytes, which do not hold u"),
        (fortran_bytes([b"x" * 8] * 3), {"iterations": "none"}, "has 3 records, which is not 0"),
        (
            fortran_bytes([b"x" * 8] * 3),
            {"first_records": [{"a": "f8"}, {"b": "f8"}], "records": [{"u": "f8"}, {"v": "f8"}]},
            "has 3 records, which is not 2 and a multiple of 2",
        ),
        (b"", {}, "is empty"),
    ],
)
def test_damage_is_one_clear_line(
    tmp_path: Path, data: bytes, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "x.unf").write_bytes(data)
    with pytest.raises(CorruptFileError) as caught:
        opened(tmp_path / "x.unf", **{"records": [{"u": "f8"}], **options})
    assert message in str(caught.value)
    assert "x.unf" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "options",
    [
        {"records": "u"},
        {"records": []},
        {"records": ["u"]},
        {"records": [{}]},
        {"records": [{"u": "f9x"}]},
        {"records": [{"u": 8}]},
        {"records": [{"names": [], "dtype": "i4"}]},
        {"records": [{"names": ["a"]}]},
        {"records": [{"a": {"dtype": "i4", "size": 3}}]},
        {"records": [{"a": {"dtype": "i4", "shape": [-1]}, "b": {"dtype": "i4", "shape": [-1]}}]},
        {"records": [{"a": {"dtype": "i4", "shape": [1.5]}}]},
        {"records": [{"a": "i4"}, {"a": "i4"}]},
        {"records": [{"u": "f8"}], "mark_bytes": 5},
        {"records": [{"u": "f8"}], "byte_order": "middle"},
        {"records": [{"u": "f8"}], "iteration_variable": "it"},
    ],
)
def test_a_wrong_description_is_a_mistake_of_the_user(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    (tmp_path / "x.unf").write_bytes(fortran_bytes([b"12345678"]))
    with pytest.raises(ConfigError):
        opened(tmp_path / "x.unf", **options)


def test_marks_that_fit_in_two_ways_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.unf").write_bytes(bytes(16))  # two empty records, or one with long marks
    with pytest.raises(NotComparableError, match=r"may have marks of 4 bytes.*mark_bytes"):
        opened(tmp_path / "x.unf", records=[{"u": "f8"}])
    options = {"mark_bytes": 8, "byte_order": "little"}
    with opened(tmp_path / "x.unf", records=[{"u": "f8"}], **options) as source:
        assert source.variables[0].shape == (0,)


@given(data=st.binary(max_size=80), described=st.sampled_from([STATE, [{"u": "i1"}]]))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, described: list[Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.unf"
    path.write_bytes(data)
    read, message = 0, ""
    try:
        with opened(path, records=described) as source:
            read = sum(source.read(i.name, 0, i.element_count).nbytes for i in source.variables)
    except CiwrapError as error:
        message = str(error)
    assert message.isprintable()
    assert read <= len(data)


@given(
    records=st.lists(st.binary(max_size=40), min_size=1, max_size=6),
    mark=st.sampled_from([(4, "little"), (4, "big"), (8, "little"), (8, "big")]),
    most=st.integers(1, 50),
)
def test_records_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[bytes],
    mark: tuple[int, Literal["little", "big"]],
    most: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.unf"
    path.write_bytes(fortran_bytes(records, mark_bytes=mark[0], order=mark[1], most=most))
    options = {"mark_bytes": mark[0], "byte_order": mark[1]}
    described = [{f"r{number}": "u1"} for number in range(len(records))]
    with opened(path, records=described, **options) as source:
        found = [source.read(i.name, 0, i.element_count).tobytes() for i in source.variables]
    assert found == records


def test_no_record_is_held_whole(tmp_path: Path) -> None:
    array = np.zeros(4 << 20)
    (tmp_path / "x.unf").write_bytes(fortran_bytes([array.tobytes()], most=1 << 24))
    tracemalloc.start()
    try:
        with opened(tmp_path / "x.unf", records=[{"u": "f8"}]) as source:
            assert sum(piece.size for piece in source.slabs("u", 1 << 20)) == array.size
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
