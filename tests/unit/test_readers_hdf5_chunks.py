"""Chunks that are unpacked here: what HDF5 says they hold, and refused where they are damaged."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ciwrap import _core
from ciwrap.base import processes
from ciwrap.base.errors import CorruptFileError
from ciwrap.cli.main import run
from ciwrap.formats import chunks
from ciwrap.formats.hdf5 import Hdf5Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

h5py = pytest.importorskip("h5py")

SHAPES = [((1000,), (64,)), ((37, 41), (8, 16)), ((9, 5, 7), (2, 5, 3)), ((6,), (50,))]
DTYPES = ["<f8", ">f4", "<i2", "|u1", "|S3", "<c16", "|b1"]


@pytest.fixture(params=[1, 4])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_most_threads", request.param)


def values_of(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    bits = random.integers(0, 100, shape)
    return bits.astype(dtype)


def written(path: Path, values: np.ndarray[Any, Any], **how: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, compression="gzip", **how)
    return path


def read(path: Path, first: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
    with Hdf5Reader().open(path) as source:
        (info,) = source.variables
        return source.read("x", first, info.element_count - first if count is None else count)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was unpacked here, and not by HDF5."""
    found: list[Any] = []
    unpacked = chunks._Chunks._unpacked

    def note(self: Any, packed: bytes) -> Any:
        found.append(packed)
        return unpacked(self, packed)

    monkeypatch.setattr(chunks._Chunks, "_unpacked", note)
    return found


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "chunk"), SHAPES)
def test_any_part_is_as_hdf5_has_it(
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    dtype: str,
    shuffle: bool,
    tmp_path: Path,
    here: list[Any],
) -> None:
    values = values_of(shape, dtype)
    chunk = tuple(min(pair) for pair in zip(shape, chunk, strict=True))
    path = written(tmp_path / "x.h5", values, chunks=chunk, shuffle=shuffle)
    flat = values.reshape(-1)
    assert read(path).tobytes() == flat.tobytes()
    assert here
    random = np.random.default_rng(1)
    with Hdf5Reader().open(path) as source:
        for _ in range(20):
            first, end = sorted(random.integers(0, flat.size + 1, 2).tolist())
            found = source.read("x", first, end - first)
            assert found.tobytes() == flat[first:end].tobytes()


def test_the_option_says_how_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_most_threads", 0)
    assert processes.thread_count() >= 1
    paths = [str(written(tmp_path / name, values_of((30,), "<f8"))) for name in ("a.h5", "b.h5")]
    assert run(["compare", *paths, "--threads", "3"]) == 0
    assert processes.thread_count() == 3


def test_other_filters_are_hdf5s(tmp_path: Path, here: list[Any]) -> None:
    values = values_of((100,), "<f8")
    for number, how in enumerate(({"fletcher32": True}, {"scaleoffset": 0})):
        if "scaleoffset" in how:
            values = values.astype("<i4")
        path = written(tmp_path / f"{number}.h5", values, chunks=(10,), **how)
        assert read(path).tolist() == values.tolist()
    assert here == []


def rewritten(path: Path, chunk: bytes, mask: int = 0) -> Path:
    with h5py.File(path, "r+") as file:
        file["x"].id.write_direct_chunk((10,), chunk, mask)
    return path


@pytest.mark.usefixtures("threads")
def test_what_hdf5_fills_in_or_did_not_pack(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset(
            "x", (30,), "<f8", chunks=(10,), compression="gzip", fillvalue=7.0
        )
        made[:10] = np.arange(10.0)
    assert read(path).tolist() == [*range(10), *[7.0] * 20]
    rewritten(path, np.full(10, 3.0).tobytes(), mask=1)
    assert read(path).tolist() == [*range(10), *[3.0] * 10, *[7.0] * 10]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda whole: zlib.compress(whole[:-8]), "it has 72"),
        (lambda whole: zlib.compress(whole + bytes(8)), "it is damaged, or has more"),
        (lambda whole: zlib.compress(whole)[:-4], "it is damaged"),
        (lambda whole: zlib.compress(whole)[:-1] + b"\0", "it is damaged"),
        (lambda _: b"no zlib at all", "it is damaged"),
    ],
)
def test_damaged_chunks_are_refused(
    damage: Callable[[bytes], bytes], words: str, tmp_path: Path
) -> None:
    values = values_of((30,), "<f8")
    path = written(tmp_path / "x.h5", values, chunks=(10,))
    rewritten(path, damage(values[10:20].tobytes()))
    with pytest.raises(CorruptFileError, match="a block should unpack to 80 bytes: " + words):
        read(path)
    assert read(path, 0, 10).tolist() == values[:10].tolist()


@pytest.mark.parametrize("unit", [1, 2, 3, 4, 8, 16])
@pytest.mark.parametrize("count", [0, 1, 7, 33, 1000])
def test_planes_of_bytes_are_joined_to_numbers(unit: int, count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, 256, (count, unit), np.uint8)
    planes = np.ascontiguousarray(numbers.T).tobytes()
    assert _core.joined_planes(planes, unit).tobytes() == numbers.tobytes()


@pytest.mark.parametrize("unit", [0, 4])
def test_planes_hold_a_whole_number_of_units(unit: int) -> None:
    with pytest.raises(ValueError, match="no whole number of units"):
        _core.joined_planes(bytes(7), unit)
