"""Files that hold the same numbers and mean something else: what readers tell has to differ.

What is told of a variable (type, shape, labels, values, or why it is not compared) is all that two
runs are compared by.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from optional_libraries import needs
from told_by_readers import told

from ciwrap.base.errors import DuplicateVariableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# Parquet


def parquet(path: Path, kind: Callable[[Any], Any]) -> Path:
    arrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
    parquet.write_table(arrow.table({"t": arrow.array([1000, 2000], type=kind(arrow))}), path)
    return path


def test_times_of_parquet_tell_what_they_count(tmp_path: Path) -> None:
    kinds: list[Callable[[Any], Any]] = [
        lambda arrow: arrow.int64(),
        lambda arrow: arrow.timestamp("ms"),
        lambda arrow: arrow.timestamp("us"),
        lambda arrow: arrow.timestamp("us", tz="UTC"),
        lambda arrow: arrow.timestamp("us", tz="Europe/Paris"),
        lambda arrow: arrow.duration("us"),
        lambda arrow: arrow.time64("us"),
    ]
    found = [told(parquet(tmp_path / f"{at}.parquet", kind)) for at, kind in enumerate(kinds)]
    assert all(one["t"][3] == [1000, 2000] for one in found)
    assert len({one["t"][2] for one in found}) == len(kinds)
    assert found[0]["t"][2] == ()


def test_texts_that_end_with_a_zero(tmp_path: Path) -> None:
    """NumPy takes them for the texts without it."""
    arrow, parquet = needs("pyarrow"), needs("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(arrow.table({"t": ["a", "b\0"], "u": ["c\0d", "e"]}), path)
    found = told(path)
    assert "ends with a zero" in found["t"]
    assert found["u"][3] == ["c\0d", "e"]


# JSON


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([2**53 + 1, 0.5], [2**53, 0.5]),
        ([[2**53 + 1], [0.5]], [[2**53], [0.5]]),
        ("a\0", "a"),
        (["a\0", "b"], ["a", "b"]),
    ],
    ids=["beside a float", "in a list", "text", "texts"],
)
def test_values_of_json_that_numpy_would_take_for_one(tmp_path: Path, one: Any, other: Any) -> None:
    found = []
    for value in (one, other):
        path = tmp_path / "x.json"
        path.write_text(json.dumps({"x": value}))
        found.append(told(path, "json"))
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": [1, "x"]}, {"a": {"0": 1, "1": "x"}}),
        ({"a": {"b": 1}}, {"a.b": 1}),
        ({"b": 1}, {"": {"b": 1}}),
        ({"a": None}, {"a": {"is_null": True}}),
        ({"a.b": {"c": 1}}, {"a": {"b.c": 1}}),
    ],
    ids=["element and member", "dot", "no name", "null", "other dot"],
)
@pytest.mark.parametrize("reader", ["json", "yaml"])
def test_keys_that_read_alike_and_are_not(
    tmp_path: Path, one: Any, other: Any, reader: str
) -> None:
    found = []
    for value in (one, other):
        path = tmp_path / "x.json"
        path.write_text(json.dumps(value))
        found.append(told(path, reader))
    assert found[0] != found[1]


# LAMMPS


def test_what_the_rows_of_a_dump_are_of(tmp_path: Path) -> None:
    found = []
    for rows in ("ATOMS", "ENTRIES", "BONDS"):
        path = tmp_path / "x.lammpstrj"
        path.write_text(
            f"ITEM: TIMESTEP\n0\nITEM: NUMBER OF {rows}\n1\nITEM: {rows} id x\n1 0.5\n",
            encoding="utf-8",
        )
        found.append(told(path))
    assert found[0]["x[0]"] == ("<f8", (1,), (), [0.5])
    assert len({repr(one) for one in found}) == 3


# MAT


def mat(path: Path, **values: Any) -> dict[str, Any]:
    needs("scipy.io").savemat(path, {"x": 1.0, **values})
    return told(path)


def cells(*shape: int) -> Any:
    found = np.empty(shape, dtype=object)
    for at in np.ndindex(*shape):
        found[at] = 1.0
    return found


def test_how_cells_and_structures_lie_in_mat_files(tmp_path: Path) -> None:
    shapes = [(2, 3), (3, 2), (1, 6), (6, 1), (0, 0), (0, 2)]
    found = [mat(tmp_path / "x.mat", c=cells(*shape)) for shape in shapes]
    assert len({repr(one) for one in found}) == len(shapes)
    assert found[0]["c.shape"][3] == ["2x3"]
    records = [np.zeros(shape, dtype=[("a", "<f8")]) for shape in ((2, 3), (3, 2), (0, 0))]
    found = [mat(tmp_path / "x.mat", s=one) for one in records]
    assert len({repr(one) for one in found}) == 3


def test_a_structure_without_fields_is_there(tmp_path: Path) -> None:
    found = mat(tmp_path / "x.mat", s={})
    assert [name for name in found if name.startswith("s")] == ["s.shape", "s.0."]


def test_a_variable_of_a_mat_file_that_scipy_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives a text in its place, which would be the same for all that it cannot read."""
    path = tmp_path / "x.mat"
    mat(path)
    found = {"x": "Read error: of a class that nobody knows", "y": np.ones((1, 1))}
    monkeypatch.setattr(needs("scipy.io"), "loadmat", lambda *_, **__: dict(found))
    assert "Read error" in told(path)["x"]


def test_a_name_that_comes_twice_in_a_mat_file(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    mat(path, y=2.0)
    path.write_bytes(path.read_bytes().replace(b"\x01\0\x01\0y\0", b"\x01\0\x01\0x\0"))
    with pytest.raises(DuplicateVariableError, match="Duplicate variable name"):
        told(path)


def test_classes_of_mat_files(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    found = [mat(path, v=np.array([[1, 0]], dtype=dtype))["v"][0] for dtype in "?Bd"]
    assert found == ["|b1", "|u1", "<f8"]
    # A complex number beside them, in a cell of a structure.
    one = np.empty((1, 2), dtype=object)
    one[0, 0], one[0, 1] = np.array([[1 + 2j]]), np.array([[True]])
    both = mat(path, s={"c": one, "v": np.array([[True]])}, z=np.array([[3j]]))
    assert both["s.c.0"] == ("<c16", (1, 1), (), [1 + 2j])
    assert both["z"][3] == [3j]
    assert [both[name][0] for name in ("s.c.1", "s.v")] == ["|b1", "|b1"]


# FITS


def fits_file(path: Path, *cards: tuple[str, Any], packed: bool = False) -> dict[str, Any]:
    fits = needs("astropy.io.fits")
    values = np.arange(64, dtype="<i2").reshape(8, 8)
    hdu = fits.CompImageHDU(values, compression_type="RICE_1") if packed else fits.ImageHDU(values)
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(path, overwrite=True)
    with (
        warnings.catch_warnings(),
        fits.open(
            path, mode="update", do_not_scale_image_data=True, disable_image_compression=True
        ) as file,
    ):
        warnings.simplefilter("ignore")
        for name, value in cards:
            file[1].header[name] = value
    return told(path)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("cards", [[("BLANK", 3)], [("BSCALE", 2.0)], [("BZERO", 5.0)]])
def test_what_cards_say_of_images(tmp_path: Path, cards: Any, packed: bool) -> None:
    path = tmp_path / "x.fits"
    assert fits_file(path, packed=packed) != fits_file(path, *cards, packed=packed)


def test_scaled_and_missing_columns(tmp_path: Path) -> None:
    fits = needs("astropy.io.fits")
    found = []
    for cards in ({}, {"TSCAL1": 2.0}, {"TNULL2": 3}):
        columns = [
            fits.Column("z", "C", array=np.array([1 + 2j, 3], dtype="c8")),
            fits.Column("n", "I", array=np.array([1, 3], dtype="i2")),
        ]
        table = fits.BinTableHDU.from_columns(columns, name="T")
        table.header.update(cards)
        table.writeto(tmp_path / "x.fits", overwrite=True)
        found.append(told(tmp_path / "x.fits"))
    assert len({repr(one) for one in found}) == 3


# NetCDF, HDF5


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_the_name_of_the_dimension_that_iterations_are_of(tmp_path: Path, kind: str) -> None:
    netcdf4 = needs("netCDF4")
    found = []
    for name in ("time", "step"):
        path = tmp_path / "x.nc"
        with netcdf4.Dataset(path, "w", format=kind) as file:
            file.createDimension(name, None)
            file.createVariable("y", "f8", (name,))[:] = [1.0, 2.0]
        found.append(told(path))
    assert found[0].keys() == found[1].keys() == {"y[0]", "y[1]"}
    assert found[0] != found[1]


@pytest.mark.parametrize("what", ["variable", "group", "soft"])
def test_links_of_netcdf_to_other_files(tmp_path: Path, what: str) -> None:
    h5py, netcdf4 = needs("h5py"), needs("netCDF4")
    for name, value in (("x.nc", 1.0), ("other.nc", 2.0)):
        with netcdf4.Dataset(tmp_path / name, "w") as file:
            for where in (file, file.createGroup("g")):
                where.createDimension("d", 3)
                where.createVariable("y", "f8", ("d",))[:] = value
    with h5py.File(tmp_path / "x.nc", "r+") as file:
        if what == "soft":
            file["inner"] = h5py.ExternalLink("other.nc", "/g")
            file["link"] = h5py.SoftLink("/inner/y")
        else:
            file["link"] = h5py.ExternalLink("other.nc", "/y" if what == "variable" else "/g")
    found = told(tmp_path / "x.nc")
    assert "another file" in str(found["link"])
    assert found["y"][3] == [1.0, 1.0, 1.0]


def test_words_of_enumerations_in_hdf5(tmp_path: Path) -> None:
    h5py = needs("h5py")
    found = []
    for words in ({"RED": 0, "BLUE": 1}, {"RED": 1, "BLUE": 0}, {"BLUE": 1, "RED": 0}):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            kind = h5py.enum_dtype(words, basetype="i4")
            file.create_dataset("x", (2,), dtype=kind)[:] = [0, 1]
            file["flags"] = np.array([True, False])
            records = np.dtype([("a", [("e", kind, (2,))]), ("x", "<f4")])
            file.create_dataset("records", (3,), dtype=records)
        found.append(told(tmp_path / "x.h5"))
    assert found[0]["x"][2] == (("enum", "0=RED 1=BLUE"),)
    assert found[0]["x"] == found[2]["x"] != found[1]["x"]
    assert found[0]["records.a.e"][2] == (("enum", "a.e.0=RED a.e.1=BLUE"),)
    assert found[0]["flags"] == ("|b1", (2,), (), [True, False])


@pytest.mark.parametrize(
    ("comment", "facts"),
    [
        ("E=1 E=2", {"E": [1.0], "E.2": [2.0]}),
        ("i=3,time=1.5,E=-17", {"i": [3.0], "time": [1.5], "E": [-17.0]}),
        ("virial=[[1, 2], [3, 4]] E=5", {"virial": [1.0, 2.0, 3.0, 4.0], "E": [5.0]}),
        ("tags=[a, b] E=5", {"tags": ["[a, b]"], "E": [5.0]}),
        ("E(eV) = -3 F[eV/A]: 2", {"E(eV)": [-3.0], "F[eV/A]": [2.0]}),
        ("box='1 2 3' \u0394E=4", {"box": [1.0, 2.0, 3.0], "\u0394E": [4.0]}),
        ("none=[] E=5", {"none": ["[]"], "E": [5.0]}),
    ],
)
def test_everything_that_a_comment_of_xyz_says(
    tmp_path: Path, comment: str, facts: dict[str, Any]
) -> None:
    (tmp_path / "x.xyz").write_text(f"1\n{comment}\nH 0 0 0\n", encoding="utf-8")
    found = {name.removesuffix("[0]"): one[3] for name, one in told(tmp_path / "x.xyz").items()}
    assert found == {"species": ["H"], "pos": [0.0, 0.0, 0.0], **facts}
