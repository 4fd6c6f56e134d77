"""FITS."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from optional_libraries import needs

from ciwrap.base.errors import CorruptFileError
from ciwrap.formats.fits import FitsReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

needs("astropy")


class TestFitsImages(ReaderSuite):
    suffix = ".fits"
    dtypes = (">f8", "|u1", ">i2", ">i4", ">i8", ">f4", ">u2", ">u4", ">u8", "|i1")
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4), (1, 1, 1), (5, 1, 7))
    fuzz_examples = 60
    slowly = 401

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("astropy.io.fits")

    def make_reader(self) -> Reader:
        return FitsReader()

    def hdu(self, fits: Any, array: Any, name: str) -> Any:
        return fits.ImageHDU(array, name=name)

    def write(self, path: Path, variables: Arrays) -> None:
        fits = needs("astropy.io.fits")
        hdus = [self.hdu(fits, array, name.upper()) for name, array in variables.items()]
        fits.HDUList([fits.PrimaryHDU(), *hdus]).writeto(path, overwrite=True)

    def expected(self, variables: Arrays) -> Arrays:
        return {name.upper(): array for name, array in variables.items()}

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        return {"data": np.random.default_rng(3).integers(0, 100, shape).astype(dtype)}


class TestFitsTables(TestFitsImages):
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4))
    dtypes = (">f8", "|u1", ">i2", ">i4", ">i8", ">f4", ">u2", ">u4", ">c8", ">c16", "|S5")

    def hdu(self, fits: Any, array: Any, name: str) -> Any:
        record = np.zeros(len(array), [("before", ">i2"), ("x", array.dtype, array.shape[1:])])
        record["x"] = array
        return fits.BinTableHDU(record, name=name)

    def expected(self, variables: Arrays) -> Arrays:
        found: Arrays = {}
        for name, array in variables.items():
            found[f"{name.upper()}.before"] = np.zeros(len(array), ">i2")
            found[f"{name.upper()}.x"] = array
        return found


class TestFitsPackedImages(TestFitsImages):
    dtypes = (">i2", ">i4")
    shapes = ((3, 5), (60, 40))
    fixed_size = False

    def hdu(self, fits: Any, array: Any, name: str) -> Any:
        return fits.CompImageHDU(array, name=name, compression_type="RICE_1")

    def test_several_variables(self, tmp_path: Path) -> None:
        self.check(tmp_path / "x.fits", {"a": self.variables(">i4", (3, 5))["data"]})

    def expected(self, variables: Arrays) -> Arrays:
        return {
            name.upper(): array.astype(array.dtype.newbyteorder(self.order))
            for name, array in variables.items()
        }

    order: ClassVar[str] = "<"


def test_a_packed_image_that_crashes_the_library(tmp_path: Path) -> None:
    """A tile that says it has no rows and columns: astropy's decoder divides by them."""
    fits = needs("astropy.io.fits")
    path = tmp_path / "x.fits"
    one = fits.CompImageHDU(
        np.arange(256, dtype="i2").reshape(16, 16), compression_type="HCOMPRESS_1"
    )
    fits.HDUList([fits.PrimaryHDU(), one]).writeto(path)
    data = path.read_bytes()
    at = data.index(b"\xdd\x99\0\0\0\x10\0\0\0\x10") + 2
    path.write_bytes(data[:at] + bytes(8) + data[at + 8 :])
    with pytest.raises(CorruptFileError, match="crash") as caught:
        FitsReader().open(path)
    assert caught.value.file == str(path)


def test_fits_scaled_and_odd_columns(tmp_path: Path) -> None:
    fits = needs("astropy.io.fits")
    path = tmp_path / "x.fits"
    image = fits.ImageHDU(np.arange(6, dtype=">i2").reshape(2, 3), name="SKY")
    image.header["BSCALE"], image.header["BZERO"], image.header["BLANK"] = 0.5, 10.0, 3
    table = fits.BinTableHDU.from_columns(
        [
            fits.Column("flag", "L", array=[True, False]),
            fits.Column("many", "PJ()", array=np.array([[1], [2, 3]], dtype=object)),
        ],
        name="T",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits.HDUList([fits.PrimaryHDU(), image, table]).writeto(path)
    with FitsReader().open(path, options={"attributes": True}) as source:
        found = {info.name: info for info in source.variables}
        assert source.read("SKY", 0, 6)[[0, 1, 5]].tolist() == [10, 10.5, 12.5]
        assert np.isnan(source.read("SKY", 3, 1)[0])
        # A bound for numbers is not one for them.
        assert source.read("T.flag", 0, 2).tolist() == [b"T", b"F"]
        assert "format PJ" in str(found["T.many"].fault)
        assert "SKY@BSCALE" in found


def test_fits_columns_without_elements(tmp_path: Path) -> None:
    fits = needs("astropy.io.fits")
    columns = [
        fits.Column("none", "0E", array=np.zeros((2, 0))),
        fits.Column("x", "E", array=np.ones(2)),
    ]
    hdus = [fits.PrimaryHDU(), fits.BinTableHDU.from_columns(columns, name="T")]
    fits.HDUList(hdus).writeto(tmp_path / "x.fits")
    with FitsReader().open(tmp_path / "x.fits") as source:
        assert {info.name: info.shape for info in source.variables} == {
            "T.none": (2, 0), "T.x": (2,),
        }  # fmt: skip


def test_fits_extensions_without_data(tmp_path: Path) -> None:
    """A file without the extension matched one with it."""
    fits = needs("astropy.io.fits")
    parts = [fits.PrimaryHDU(), fits.ImageHDU(name="META"), fits.BinTableHDU(name="T")]
    fits.HDUList(parts).writeto(tmp_path / "x.fits")
    with FitsReader().open(tmp_path / "x.fits") as source:
        assert {info.name: info.shape for info in source.variables} == {"META": (0,), "T": (0, 0)}


def test_units_of_fits_are_labels(tmp_path: Path) -> None:
    fits = needs("astropy.io.fits")
    image = fits.ImageHDU(np.ones((2, 3)), name="IMAGE")
    image.header["BUNIT"] = "Jy/beam"
    column = fits.Column(name="v", format="D", array=np.ones(3), unit="km/s")
    bare = fits.Column(name="n", format="D", array=np.ones(3))
    table = fits.BinTableHDU.from_columns([column, bare], name="TABLE")
    path = tmp_path / "x.fits"
    fits.HDUList([fits.PrimaryHDU(), image, table]).writeto(path)
    for attributes, units in ((None, True), (["units"], True), (True, True), (False, False)):
        options = {} if attributes is None else {"attributes": attributes}
        with FitsReader().open(path, options=options) as source:
            labels = {i.name: i.labels for i in source.variables if "@" not in i.name}
        assert labels == {
            "IMAGE": (("units", "Jy/beam"),) if units else (),
            "TABLE.v": (("units", "km/s"),) if units else (),
            "TABLE.n": (),
        }


def test_extensions_of_one_name_and_another_version(tmp_path: Path) -> None:
    """EXTVER tells them apart; files in which two have each other's matched."""
    fits = needs("astropy.io.fits")
    found = []
    for versions in ((1, 2), (2, 1)):
        parts = [fits.PrimaryHDU()]
        for version in versions:
            parts.append(fits.ImageHDU(np.zeros(3), name="SCI", ver=version))
            columns = [fits.Column(name="x", format="E", array=np.zeros(2), unit="m")]
            table = fits.BinTableHDU.from_columns(columns, name="CAT", ver=version)
            parts += [table, fits.ImageHDU(name="META", ver=version)]
        parts.append(fits.ImageHDU(np.zeros(3), name="ONLY", ver=3))
        fits.HDUList(parts).writeto(tmp_path / "x.fits", overwrite=True)
        with FitsReader().open(tmp_path / "x.fits") as source:
            found.append({info.name: dict(info.labels) for info in source.variables})
    first, second = {"EXTVER": "1"}, {"EXTVER": "2"}
    assert found[0] == {
        "SCI": first, "CAT.x": {**first, "units": "m"}, "META": first,
        "HDU4": second, "HDU5.x": {**second, "units": "m"}, "HDU6": second, "ONLY": {},
    }  # fmt: skip
    assert found[1]["SCI"] == second
    assert found[1]["HDU4"] == first


@pytest.mark.parametrize("kind", ["i4", "f8"])
@pytest.mark.parametrize("is_table", [False, True])
def test_a_scale_of_zero(tmp_path: Path, kind: str, is_table: bool) -> None:
    """A column of one matched a column without any, and images of other floats each other."""
    fits = needs("astropy.io.fits")
    path, data = tmp_path / "x.fits", np.arange(3).astype(kind)
    if is_table:
        column = fits.Column(name="c", format="J" if kind == "i4" else "D", array=data)
        hdu = fits.BinTableHDU.from_columns([column], name="X")
        hdu.header["TSCAL1"] = 0.0
    else:
        hdu = fits.ImageHDU(data, name="X")
        hdu.header["BSCALE"] = 0.0
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(path)
    with FitsReader().open(path) as source:
        faults = {info.name: info.fault for info in source.variables}
    name = "X.c" if is_table else "X"
    assert faults == {name: "has a scale of 0, which makes all of its numbers equal"}
