"""FITS files: headers through astropy, data straight from where they lie."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from ciwrap.arrays.values import FileRegion, Labels, fields_of
from ciwrap.base.errors import CorruptFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.apart import SourceApart, bytes_below
from ciwrap.formats.entries import EntrySource, FlatReader, Listing, Packing, field_reader
from ciwrap.formats.reader import (
    AttributeRule,
    CheckedReader,
    InputFile,
    Source,
    check_is_file,
    guarded,
    library,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


_TYPES = {8: "|u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
# Unsigned (and signed 8-bit) numbers are stored with an offset: BZERO by type.
_OFFSETS = {"|u1": -128, ">i2": 1 << 15, ">i4": 1 << 31, ">i8": 1 << 63}
_WITHOUT_MEANING = {"", "COMMENT", "HISTORY", "END"}


class FitsReader(CheckedReader):
    """Images by the name of their extension; columns of binary tables as EXTENSION.COLUMN.

    Units (BUNIT, TUNITn) are labels; all cards are compared if `attributes` asks for it.
    """

    name: ClassVar[str] = "fits"
    option_names: ClassVar[tuple[str, ...]] = ("attributes",)

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        library("astropy.io.fits", file=path)
        rule = AttributeRule.of(options)
        found = _source(path, rule, unpacks=False)
        if found is None:
            found = SourceApart(path, partial(_unpacked, path, rule), bytes_below(path))
        return found


def _unpacked(path: Path, rule: AttributeRule) -> Source:
    """For a process of its own: astropy crashes on some packed images that are damaged."""
    with guarded(path):
        found = _source(path, rule, unpacks=True)
    assert found is not None
    return found


def _source(path: Path, rule: AttributeRule, *, unpacks: bool) -> Source | None:
    """The open file; None if it holds packed images and these are not to be unpacked here."""
    fits = library("astropy.io.fits", file=path)
    with contextlib.ExitStack() as opened:
        file = InputFile(path)
        opened.callback(file.close)
        # A file that astropy opens itself stays open when it gives up half-way.
        handle = opened.enter_context(path.open("rb"))
        with warnings.catch_warnings():
            # What is wrong with the file is looked at below; the rest is no concern of ours.
            warnings.simplefilter("ignore")
            hdus = fits.open(
                handle, memmap=False, lazy_load_hdus=False, do_not_scale_image_data=True
            )
            opened.callback(hdus.close)
            if not unpacks and any(isinstance(hdu, fits.CompImageHDU) for hdu in hdus):
                return None
            listing = _Fits(fits, file, rule).listing_of(hdus)
        return EntrySource(path, listing.entries, opened.pop_all().close)


class _Fits:
    def __init__(self, fits: Any, file: InputFile, attributes: AttributeRule) -> None:
        self._fits = fits
        self._file = file
        self._attributes = attributes
        self._listing = Listing(file.path)
        self._version: Labels = ()

    def listing_of(self, hdus: Any) -> Listing:
        end = 0
        names: set[str] = set()
        counts = Counter(hdu.name for hdu in hdus)
        for number, hdu in enumerate(hdus):
            name = hdu.name or f"HDU{number}"
            name = f"HDU{number}" if name in names else name
            names.add(name)
            # Of several extensions of one name, this says which one is meant.
            is_one_of_many = hdu.name and counts[hdu.name] > 1
            self._version = (("EXTVER", str(hdu.ver)),) if is_one_of_many else ()
            where = hdu.fileinfo()
            end = max(end, int(where["datLoc"]) + int(where["datSpan"]))
            if end > self._file.byte_count:
                raise CorruptFileError(
                    f"is truncated: {name} ends at byte {end} of {self._file.byte_count}"
                )
            self._hdu(hdu, name, int(where["datLoc"]))
            if self._attributes.has_all:
                self._cards(hdu.header, name)
        if end != self._file.byte_count:
            raise CorruptFileError(
                f"has {self._file.byte_count - end} bytes that belong to no extension"
            )
        return self._listing

    def _cards(self, header: Any, name: str) -> None:
        seen: set[str] = set()
        for card in header.cards:
            if card.keyword in _WITHOUT_MEANING or card.keyword in seen:
                continue
            seen.add(card.keyword)
            value = (
                card.value if isinstance(card.value, (bool, int, float, str)) else str(card.value)
            )
            self._listing.add_array(f"{name}@{card.keyword}", value)

    def _hdu(self, hdu: Any, name: str, at: int) -> None:
        if isinstance(hdu, self._fits.CompImageHDU):
            self._packed_image(hdu, name)
        elif isinstance(hdu, (self._fits.PrimaryHDU, self._fits.ImageHDU)):
            if hdu.header.get("NAXIS", 0):
                self._image(hdu, name, at)
            elif not isinstance(hdu, self._fits.PrimaryHDU):  # which every file has
                self._nothing(name, (0,))
        elif isinstance(hdu, self._fits.BinTableHDU):
            self._table(hdu, name, at)
        else:
            self._listing.add_fault(name, f"is a {type(hdu).__name__}, which is not compared")

    def _image(self, hdu: Any, name: str, at: int) -> None:
        header = hdu.header
        axes = int(header["NAXIS"])
        shape = tuple(int(header[f"NAXIS{axis}"]) for axis in range(axes, 0, -1))
        dtype = _TYPES.get(int(header["BITPIX"]))
        if dtype is None:
            raise CorruptFileError(f"has BITPIX={header['BITPIX']}")
        if header.get("GROUPS") is True:
            self._listing.add_fault(name, "is random groups data, which are not compared")
            return
        count = int(np.prod(shape, dtype=object))
        if at + count * np.dtype(dtype).itemsize > self._file.byte_count:
            raise CorruptFileError("ends before its last value")
        stored = np.dtype(dtype)
        region = FileRegion(str(self._listing.path), at, count * stored.itemsize)
        read = self._file.elements(at, dtype)
        packing, unit = _packing_of(header), header.get("BUNIT")
        self._numbers(name, stored, shape, read, packing, unit=unit, region=region)

    def _numbers(
        self,
        name: str,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        read: Callable[[int, int], NDArray[Any]],
        packing: _Stored,
        *,
        unit: Any,
        region: FileRegion | None = None,
    ) -> None:
        """Lists what numbers of that dtype stand for. region: where they are stored."""
        labels = self._labels(unit, dtype, packing)
        if packing.scale == 0:
            fault = "has a scale of 0, which makes all of its numbers equal"
            self._listing.add_fault(name, fault, labels=labels)
            return
        scaled, target = _scaled(read, dtype, packing)
        region = region if target == dtype and packing.is_none else None
        self._listing.add(name, target, shape, scaled, region=region, labels=labels)

    def _nothing(self, name: str, shape: tuple[int, ...]) -> None:
        """What has no elements; without a variable nobody would see that it is there."""
        self._listing.add_array(name, np.empty(shape, dtype=bool), labels=self._version)

    def _packed_image(self, hdu: Any, name: str) -> None:
        shape = tuple(int(length) for length in hdu.shape)
        if not shape or 0 in shape:
            self._nothing(name, shape or (0,))
            return
        dtype = np.asarray(hdu.section[tuple(slice(0, 1) for _ in shape)]).dtype

        def read_box(start: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
            box = tuple(slice(at, at + n) for at, n in zip(start, lengths, strict=True))
            return np.asarray(hdu.section[box])

        rows = max(1, (1 << 20) // max(1, int(np.prod(shape[1:])) * dtype.itemsize))
        flat = FlatReader(shape, dtype, read_box, rows)
        packing, unit = _packing_of(hdu.header), hdu.header.get("BUNIT")
        self._numbers(name, dtype, shape, flat.read, packing, unit=unit)

    def _labels(self, unit: Any, dtype: np.dtype[Any], packing: _Stored) -> Labels:
        """The unit, and what the values themselves do not tell of how they are stored."""
        found = {"units": unit} if unit else {}
        # The values that are made of numbers tell all of it, but for which of them is missing.
        if dtype.kind not in "iuf" or (packing.is_none and packing.blank is not None):
            found |= packing.attributes
        return tuple(sorted((*self._attributes.labels(None, found), *self._version)))

    def _table(self, hdu: Any, name: str, at: int) -> None:
        rows, width = int(hdu.header["NAXIS2"]), int(hdu.header["NAXIS1"])
        record = hdu.columns.dtype.newbyteorder(">")
        if record.itemsize != width:
            self._listing.add_fault(
                name, f"has rows of {width} bytes, its columns {record.itemsize}"
            )
            return
        if not width:
            self._nothing(name, (rows, 0))
            return
        raw = self._file.elements(at, f"V{width}")
        for column, field_name in zip(hdu.columns, record.names, strict=True):
            path = f"{name}.{column.name}"
            fields = fields_of(path, record.fields[field_name][0])
            if _code_of(column) in "PQX" or len(fields) != 1:
                self._listing.add_fault(
                    path, f"has the format {column.format}, which is not compared"
                )
                continue
            self._column(path, column, raw, record, field_name, rows)

    def _column(
        self, path: str, column: Any, raw: Any, record: np.dtype[Any], field_name: str, rows: int
    ) -> None:
        kind = record.fields[field_name][0] if record.fields is not None else record
        one = next(field for field in fields_of("x", record) if field.name == f"x.{field_name}")
        per_row = int(np.prod(one.inner_shape, dtype=np.int64))
        if kind.itemsize == 0 or per_row == 0:
            self._nothing(path, (rows, 0))
            return

        values = field_reader(raw, record, one)
        # T, F or zero, which no bound for numbers is meant for.
        is_logical = _code_of(column) == "L"
        stored = np.dtype("S1" if is_logical else one.dtype)
        scale = 1.0 if column.bscale in (None, "") else column.bscale
        packing = _Stored(scale, column.bzero or 0.0, column.null)
        shape = (rows, *one.inner_shape)

        def read(first: int, count: int) -> NDArray[Any]:
            return values(first, count).view(stored)

        self._numbers(path, stored, shape, read, packing, unit=column.unit)


def _code_of(column: Any) -> str:
    """The letter of a column's format, such as J of 3J."""
    return str(column.format).lstrip("0123456789")[:1]


class _Stored(Struct, frozen=True):
    """What a header says of stored numbers: value = stored * scale + zero, and which one of them
    means "missing".
    """

    scale: float = 1.0
    zero: float = 0.0
    blank: int | None = None

    @property
    def is_none(self) -> bool:
        return self.scale == 1 and self.zero == 0

    @property
    def attributes(self) -> dict[str, Any]:
        """As NetCDF calls them."""
        found = {} if self.is_none else {"scale_factor": self.scale, "add_offset": self.zero}
        return found if self.blank is None else {**found, "_FillValue": self.blank}


def _packing_of(header: Any) -> _Stored:
    """Of an image."""
    return _Stored(header.get("BSCALE", 1.0), header.get("BZERO", 0.0), header.get("BLANK"))


def _scaled(
    read: Callable[[int, int], NDArray[Any]], dtype: np.dtype[Any], stored: _Stored
) -> tuple[Callable[[int, int], NDArray[Any]], np.dtype[Any]]:
    """The values that stored numbers stand for, and their dtype."""
    scale, zero, blank = stored.scale, stored.zero, stored.blank
    if dtype.kind not in "iuf" or stored.is_none:
        return read, dtype
    if scale == 1 and _OFFSETS.get(dtype.newbyteorder(">").str) == zero and blank is None:
        other = np.dtype(f"{dtype.str[0]}{'i' if dtype.kind == 'u' else 'u'}{dtype.itemsize}")
        flip = np.array(1 << (8 * dtype.itemsize - 1), dtype=f"u{dtype.itemsize}")

        def unsigned(first: int, count: int) -> NDArray[Any]:
            bits = read(first, count).astype(dtype.newbyteorder("=")).view(f"u{dtype.itemsize}")
            values: NDArray[Any] = (bits ^ flip).view(other.newbyteorder("=")).astype(other)
            return values

        return unsigned, other
    packing = Packing(
        float(scale), float(zero), () if blank is None else (blank,), np.dtype(np.float64)
    )
    return packing.reader(read), packing.dtype
