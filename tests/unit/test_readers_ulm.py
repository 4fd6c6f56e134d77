"""Files of ASE and GPAW, through the published suite and as their library lays them out."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap.base.errors import CorruptFileError, UnsupportedFormatError
from ciwrap.formats.find_outputs import formats_of, reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays


def ulm(items: list[dict[str, Any]], tag: bytes = b"", order: str = "<", version: int = 3) -> bytes:
    """A file as the library writes it: the list of items moves behind an item when it is full."""
    data = bytearray(struct.pack("<8s16sqqqq", b"- of Ulm", tag.ljust(16), version, 0, 48, 0))
    places: list[int] = []
    room, at = 1, 48

    def put(value: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for key, one in value.items():
            if isinstance(one, np.ndarray):
                data.extend(bytes(-len(data) % 8))
                told[f"{key}."] = {"ndarray": [one.shape, one.dtype.name, len(data)]}
                data.extend(one.astype(one.dtype.newbyteorder(order)).tobytes())
            elif isinstance(one, dict) and key != "info":
                told[f"{key}."] = put(one)
            else:
                told[key] = one
        return told

    for number, item in enumerate(items):
        told = put(item) | ({"_little_endian": False} if order == ">" else {})
        place, text = len(data), json.dumps(told).encode()
        data.extend(struct.pack("<q", len(text)) + text)
        if number >= room:
            room *= 42
            data.extend(bytes(-len(data) % 8))
            at = len(data)
            data.extend(struct.pack(f"<{room}q", *places, *[0] * (room - number)))
            struct.pack_into("<q", data, 40, at)
        places.append(place)
        struct.pack_into("<q", data, at + 8 * number, place)
        struct.pack_into("<q", data, 32, number + 1)
    return bytes(data)


class TestUlm(ReaderSuite):
    suffix = ".gpw"
    dtypes = ("<f8", "<f4", "<i8", "<i4", "|i1", "|u1", "<c16", "|b1")
    order = "<"

    def make_reader(self) -> Reader:
        return reader_named("ulm")

    def write(self, path: Path, variables: Arrays) -> None:
        arrays = {name: np.asarray(array) for name, array in variables.items()}
        path.write_bytes(ulm([arrays], order=self.order))


def read(path: Path, **options: Any) -> dict[tuple[str, int | None], Any]:
    with reader_named("ulm").open(path, options=options) as source:
        return {
            (info.called or info.name, info.iteration): source.read(
                info.name, 0, info.element_count
            ).tolist()
            for info in source.variables
        }


def frame(step: int) -> dict[str, Any]:
    return {
        "version": 1,
        "ase_version": "3.22.1",
        "positions": np.full((2, 3), float(step)),
        "calculator": {"name": "emt", "energy": -1.5 * step, "forces": np.zeros((2, 3))},
        "info": {"key": [1, 2]},
    }


@pytest.mark.parametrize("count", [1, 2, 42, 43, 50])
def test_frames_are_iterations(tmp_path: Path, count: int) -> None:
    path = tmp_path / "a.traj"
    path.write_bytes(ulm([frame(step) for step in range(count)], b"ASE-Trajectory"))
    found = read(path)
    names = {"positions", "calculator.name", "calculator.energy", "calculator.forces", "info.key"}
    assert found.keys() == {(name, step) for name in names for step in range(count)}
    assert found["calculator.energy", count - 1] == [-1.5 * (count - 1)]
    assert found["positions", count - 1] == [count - 1] * 6
    assert len(read(path, iterations="none")) == len(found)
    assert formats_of(path) == ("ulm",)


def test_numbers_of_the_other_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "a.gpw"
    path.write_bytes(ulm([{"x": np.array([1.5, -2.0])}], order=">"))
    with reader_named("ulm").open(path) as source:
        assert source.variables[0].dtype == ">f8"
        assert source.read("x", 0, 2).tolist() == [1.5, -2]


def test_what_is_cut_off_or_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "a.traj"
    for count in (2, 43):
        whole = ulm([frame(step) for step in range(count)], b"ASE-Trajectory")
        (last,) = struct.unpack_from("<q", whole, struct.unpack_from("<q", whole, 40)[0] + 8)
        for cut in (0, 7, 30, 60, last + 4):
            path.write_bytes(whole[:cut])
            with pytest.raises(CorruptFileError):
                read(path)
        path.write_bytes(whole + bytes(48))
        with pytest.raises(CorruptFileError, match="an item that was not finished"):
            read(path)


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.traj"
    path.write_bytes(ulm([{"x": 1}], version=4))
    with pytest.raises(UnsupportedFormatError, match="unknown version 4"):
        read(path)
    for told, said in (
        ([[4], "float64", 1 << 40], "ends before its array x"),
        ([[-1], "float64", 56], "ends before its array x"),
        ([[1], "object", 56], "of a kind that is not known"),
        ([[1.5], "float64", 56], "of a kind that is not known"),
    ):
        path.write_bytes(ulm([{"x.": {"ndarray": told}}]))
        with pytest.raises(CorruptFileError, match=said):
            read(path)
    path.write_bytes(ulm([]))
    with pytest.raises(CorruptFileError, match="holds no items"):
        read(path)
