"""Parquet and safetensors."""

from __future__ import annotations

import os
import signal
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from optional_libraries import needs
from told_by_readers import reader_for

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats import parquet
from ciwrap.formats.parquet import ParquetReader
from ciwrap.formats.safetensors import SafetensorsReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


def test_safetensors_as_its_own_library_writes_them(tmp_path: Path) -> None:
    numpy = needs("safetensors.numpy")
    arrays = {"w": np.arange(12, dtype="<f4").reshape(3, 4), "b": np.ones(3, "<f8")}
    numpy.save_file(arrays, str(tmp_path / "x.safetensors"))
    with SafetensorsReader().open(tmp_path / "x.safetensors") as source:
        for info in source.variables:
            found = source.read(info.name, 0, info.element_count).reshape(info.shape)
            assert np.array_equal(found, arrays[info.name])
        assert {info.name for info in source.variables} == set(arrays)


class TestParquet(ReaderSuite):
    suffix = ".parquet"
    dtypes = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
    shapes = ((0,), (1,), (7,), (1000,), (7, 3))
    keeps_order = True

    def make_reader(self) -> Reader:
        return ParquetReader()

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("pyarrow.parquet")

    def write(self, path: Path, variables: Arrays) -> None:
        arrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
        columns = {
            name: arrow.FixedSizeListArray.from_arrays(arrow.array(array.reshape(-1)), 3)
            if array.ndim == 2
            else arrow.array(array)
            for name, array in variables.items()
        }
        parquet.write_table(arrow.table(columns), path, row_group_size=300)


def test_arrow_that_ends_the_process_is_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, pq = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    pq.write_table(arrow.table({"x": arrow.array([1.0])}), path)
    monkeypatch.setattr(parquet, "_list", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(CorruptFileError) as caught:
        ParquetReader().open(path)
    assert caught.value.file == str(path)


def test_parquet_nulls_texts_and_times(tmp_path: Path) -> None:
    arrow, pq = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = arrow.table(
        {
            "x": arrow.array([1.0, None, float("nan"), 4.0]),
            "n": arrow.array([1, 2, None, 4]),
            "name": arrow.array(["a", None, "ccc", "dd"]),
            "kind": arrow.array(["a", "b", "a", "b"]).dictionary_encode(),
            "when": arrow.array([1, 2, 3, 4], arrow.timestamp("us")),
            "list": arrow.array([[1], [2, 3], [], [4]]),
        }
    )
    pq.write_table(table, path, row_group_size=2)
    with ParquetReader().open(path) as source:
        faults = {info.name for info in source.variables if info.fault is not None}
        found = {
            info.name: source.read(info.name, 0, 4).tolist()
            for info in source.variables
            if info.name not in faults
        }
    assert faults == {"list"}
    assert found["x.is_null"] == [False, True, False, False]
    assert found["x"][0::3] == [1, 4]
    assert np.isnan(found["x"][2])
    assert found["x"][1] == 0
    assert found["n"] == [1, 2, 0, 4]
    assert found["n.is_null"] == [False, False, True, False]
    assert found["name"] == ["a", "", "ccc", "dd"]
    assert found["kind"] == ["a", "b", "a", "b"]
    assert found["when"] == [1, 2, 3, 4]


def test_what_columns_of_parquet_mean(tmp_path: Path) -> None:
    """Metadata of a column, of which those that other formats have as attributes count."""
    arrow, pq = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    columns = {"x": arrow.float64(), "name": arrow.string(), "when": arrow.timestamp("us")}
    fields = [
        arrow.field(name, kind, metadata={"units": "K", "made": "today", "PARQUET:field_id": "7"})
        for name, kind in columns.items()
    ]
    values = [
        arrow.array([value], kind)
        for value, kind in zip((1.0, "a", 1), columns.values(), strict=True)
    ]
    of_the_table = {"units": "of the whole table"}
    pq.write_table(arrow.table(values, schema=arrow.schema(fields, of_the_table)), path)
    with ParquetReader().open(path) as source:
        found = {info.name: dict(info.labels) for info in source.variables}
    units = {"units": "K"}
    assert found == {"x": units, "name": units, "when": {"type": "timestamp[us]", **units}}


def test_what_is_said_beside_the_numbers_of_plain_formats_is_not_compared(tmp_path: Path) -> None:
    """As docs/how-to/formats.md tells: metadata of safetensors, the time step of a DCD."""

    def record(data: bytes) -> bytes:
        mark = struct.pack("<i", len(data))
        return mark + data + mark

    found = []
    for number in (1, 2):
        meta = b'{"__metadata__": {"k": "%d"}, "x": {"dtype": "F32", "shape": [1], ' % number
        header = meta + b'"data_offsets": [0, 4]}}'
        path = tmp_path / "x.safetensors"
        path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        control = [1, 0, 1, 0, 0, 0, 0, 0, 0, number, *[0] * 10]
        title = struct.pack("<i80s", 1, b"title %d" % number)
        head = record(b"CORD" + struct.pack("<20i", *control)) + record(title)
        atoms = record(struct.pack("<i", 1)) + record(bytes(4)) * 3
        (tmp_path / "x.dcd").write_bytes(head + atoms)
        for name in ("x.safetensors", "x.dcd"):
            with reader_for(tmp_path / name).open(tmp_path / name) as source:
                found.append([(info.name, info.shape, info.labels) for info in source.variables])
    assert found[:2] == found[2:]
    assert [len(one) for one in found] == [1, 1, 1, 1]
