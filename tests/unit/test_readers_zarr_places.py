"""What lies in a Zarr array's folder, and is not what its description says."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from optional_libraries import needs
from told_by_readers import reader_for

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = pytest.mark.parametrize("kind", [2, 3])


def store_of(folder: Path, kind: Any, **facts: Any) -> Path:
    """A store of an array `x` of two chunks."""
    zarr = needs("zarr")
    data = np.arange(12.0).reshape(3, 4)
    facts = {"chunks": (2, 4), "compressors": None, **facts}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.open_group(folder / "x.zarr", mode="w", zarr_format=kind).create_array(
            "x", data=data, **facts
        )
    return folder / "x.zarr"


def faults_of(path: Path) -> dict[str, str | None]:
    with reader_for(path).open(path) as source:
        return {info.name: info.fault for info in source.variables}


@FORMATS
@pytest.mark.parametrize("name", ["sub", "0"])
@pytest.mark.parametrize("is_group", [True, False])
def test_groups_and_arrays_inside_an_array(
    tmp_path: Path, kind: Any, name: str, is_group: bool
) -> None:
    """Nobody lists them, so what they hold would be passed over."""
    zarr = needs("zarr")
    path = store_of(tmp_path, kind)
    inner = path / "x" / name
    if is_group:
        zarr.open_group(inner, mode="w", zarr_format=kind).create_array("y", data=np.arange(3.0))
    else:
        zarr.open_array(inner, mode="w", zarr_format=kind, shape=(3,), dtype="f8")
    assert "in its folder, which is none of its chunks" in str(faults_of(path)["x"])


@FORMATS
def test_an_array_where_a_chunk_belongs(tmp_path: Path, kind: Any) -> None:
    zarr = needs("zarr")
    # The folders of chunks have the names of chunks.
    separator = {"name": "v2", "separator": "/"}
    path = store_of(tmp_path, kind, chunk_key_encoding=separator)
    assert faults_of(path) == {"x": None}
    zarr.open_array(path / "x" / "1", mode="a", zarr_format=kind, shape=(3,), dtype="f8")
    assert "in its folder, which is none of its chunks" in str(faults_of(path)["x"])


@pytest.mark.parametrize(
    ("kind", "written", "said"),
    [(2, ".", "/"), (2, "/", "."), (3, ".", "/"), (3, "/", ".")],
)
def test_chunks_of_other_names(tmp_path: Path, kind: Any, written: str, said: str) -> None:
    """As some older programs left them: every number read would be the fill value."""
    name = "v2" if kind == 2 else "default"
    path = store_of(tmp_path, kind, chunk_key_encoding={"name": name, "separator": written})
    assert faults_of(path) == {"x": None}
    file = path / "x" / (".zarray" if kind == 2 else "zarr.json")
    described = json.loads(file.read_text())
    if kind == 2:
        described["dimension_separator"] = said
    else:
        described["chunk_key_encoding"]["configuration"]["separator"] = said
    file.write_text(json.dumps(described))
    fault = str(faults_of(path)["x"])
    assert "in its folder, which is none of its chunks" in fault


@pytest.mark.parametrize(("kind", "chunk"), [(2, "0.0"), (3, "c/0/0")])
@pytest.mark.parametrize("what", ["link", "link above"])
def test_what_stands_where_a_chunk_belongs(
    tmp_path: Path, kind: Any, chunk: str, what: str
) -> None:
    """The library takes each for a chunk that was never written."""
    path = store_of(tmp_path, kind)
    place = path / "x" / chunk
    place.unlink()
    if what == "link above" and kind == 3:
        place.parent.rmdir()
        place.parent.symlink_to(tmp_path / "elsewhere")
    else:
        place.symlink_to(tmp_path / "elsewhere")
    assert "in its folder, which is none of its chunks" in str(faults_of(path)["x"])


@FORMATS
def test_a_chunk_that_was_never_written_is_fill(tmp_path: Path, kind: Any) -> None:
    path = store_of(tmp_path, kind, fill_value=1.5)
    (path / "x" / ("0.0" if kind == 2 else "c/0/0")).unlink()
    with reader_for(path).open(path) as source:
        assert source.read("x", 0, 8).tolist() == [1.5] * 8
