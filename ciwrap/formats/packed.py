"""What is in files packed by gzip, bzip2, xz or Zstandard, read as a file of its own name.

They are unpacked into a temporary file, in pieces. What is cut off, or goes on with something else,
is refused, as is what fails its checksum, which Zstandard writes only if asked to.
"""

from __future__ import annotations

import bz2
import contextlib
import lzma
import tempfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    FileLimitError,
    UnreadableFileError,
    UnsupportedFormatError,
)
from ciwrap.formats.reader import InputFile, Reader, Source, guarded, library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import FileRegion, SeriesFacts
    from ciwrap.formats.reader import VariableInfo

# Zstandard makes at most 32 thousand bytes of one, and is not asked for fewer.
_STEP_BYTES = 4096
_PIECE_BYTES = 1 << 20
# What xz and Zstandard may take in memory while they unpack; their own programs refuse more, too.
_MOST_MEMORY = 1 << 30
# A small file that unpacks without end is none of results.
_ANY_BYTES = 1 << 30
_MOST_RATIO = 10_000
# As much as tells what a file is.
_HEAD_BYTES = 256 << 10
FOLDER = "ciwrap-unpacked-"


class _Zlib:
    """zlib's decompressor with the methods of the other ones."""

    def __init__(self, path: Path) -> None:
        self._one = zlib.decompressobj(31)

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._one.decompress(self._one.unconsumed_tail + data, most)

    @property
    def eof(self) -> bool:
        return self._one.eof

    @property
    def unused_data(self) -> bytes:
        return self._one.unused_data


class _Zstandard(_Zlib):
    def __init__(self, path: Path) -> None:
        module = library("zstandard", file=path)
        self._one = module.ZstdDecompressor(max_window_size=_MOST_MEMORY).decompressobj()

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._one.decompress(data)


_DECOMPRESSORS: Mapping[str, Callable[[Path], Any]] = {
    ".gz": _Zlib,
    ".bz2": lambda _: bz2.BZ2Decompressor(),
    ".xz": lambda _: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY),
    ".zst": _Zstandard,
}


@contextlib.contextmanager
def unpacked_beginning(path: Path) -> Iterator[Path]:
    """A file of the name and the first bytes of what is packed. It is empty where nothing can be
    unpacked: whoever opens the whole file says why.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER) as folder:
        found = Path(folder, path.stem)
        with found.open("wb") as out, contextlib.suppress(CiwrapError):
            for piece in pieces(path):
                out.write(piece)
                if out.tell() >= _HEAD_BYTES:
                    break
        yield found


class UnpackingReader(Reader):
    """Gives another reader what is packed in a file."""

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        names: Any = self  # class variables of other readers
        names.name, names.suffixes, names.names_inside = inner.name, (), inner.names_inside
        names.option_names = inner.option_names

    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Source:
        folder = tempfile.TemporaryDirectory(prefix=FOLDER)
        with contextlib.ExitStack() as stack:
            stack.callback(folder.cleanup)
            plain = Path(folder.name, path.stem)
            _unpack(path, plain)
            self._refuse_companions(path, plain)
            with _named_as(path, plain):
                inner = self._inner.open(plain, name=name, options=options)
            stack.pop_all()
        return _Unpacked(path, plain, inner, folder.cleanup)

    def _refuse_companions(self, path: Path, plain: Path) -> None:
        """Raises UnsupportedFormatError if a file that would be read with it lies beside it."""
        for one in self._inner.companions(plain):
            if (path.parent / one.relative_to(plain.parent)).exists():
                raise UnsupportedFormatError(
                    f"is packed, and not read together with {one.name}",
                    file=path,
                    remedy="unpack it first",
                )

    def check_options(self, options: Mapping[str, Any], path: Path) -> None:
        self._inner.check_options(options, path)


class _Unpacked(Source):
    """What is read of the temporary file. Its variables have no region, since that file has another
    name each time.
    """

    def __init__(self, path: Path, plain: Path, inner: Source, remove: Callable[[], None]) -> None:
        self.path = path
        self._plain, self._inner, self._remove = plain, inner, remove
        self.variables = tuple(replace(info, region=None) for info in inner.variables)
        self.notes = tuple(note.replace(str(plain), str(path)) for note in inner.notes)
        for fault in inner.faults:
            _rename(fault, path, plain)
        self.faults = inner.faults
        self.attributes_left_out = inner.attributes_left_out
        self.may_be_empty = inner.may_be_empty

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        with _named_as(self.path, self._plain):
            return self._inner.read(name, first_element, count)

    def facts(self, name: str) -> SeriesFacts | None:
        with _named_as(self.path, self._plain):
            return self._inner.facts(name)

    def region(self, info: VariableInfo) -> FileRegion | None:
        return self._inner.info(info.name).region

    def close(self) -> None:
        self._inner.close()
        self._remove()


@contextlib.contextmanager
def _named_as(path: Path, plain: Path) -> Iterator[None]:
    """Errors of the block name the packed file."""
    try:
        yield
    except CiwrapError as error:
        _rename(error, path, plain)
        raise


def _rename(error: CiwrapError, path: Path, plain: Path) -> None:
    error.message = error.message.replace(str(plain), str(path))
    if error.file == str(plain):
        error.file = str(path)


def _unpack(path: Path, plain: Path) -> None:
    """Writes what is packed to another file. Raises CorruptFileError for what is damaged or cut
    off, FileLimitError, UnreadableFileError.
    """
    limit = max(_ANY_BYTES, _MOST_RATIO * path.stat().st_size) if path.is_file() else 0
    count = 0
    with plain.open("wb") as out:
        for piece in pieces(path):
            count += len(piece)
            if count > limit:
                raise FileLimitError(
                    f"unpacks to more than {limit} bytes", file=path, remedy="unpack it first"
                )
            _write(out, piece, path)


def _write(out: IO[bytes], piece: bytes, path: Path) -> None:
    try:
        out.write(piece)
    except OSError as error:
        raise UnreadableFileError(
            f"cannot be unpacked into {tempfile.gettempdir()}: {error.strerror or error}",
            file=path,
            remedy="set TMPDIR to a folder with more room",
        ) from error


def pieces(path: Path) -> Iterator[bytes]:
    """What is packed in a file, stream by stream. Raises CorruptFileError, and as `InputFile`."""
    make = _DECOMPRESSORS[path.suffix.lower()]
    with guarded(path):
        yield from _streams(InputFile(path), lambda: make(path))


def _streams(file: InputFile, make: Callable[[], Any]) -> Iterator[bytes]:
    one: Any = None  # the stream that has begun
    has_ended = False
    for at in range(0, file.byte_count, _STEP_BYTES):
        data = file.read_some(at, _STEP_BYTES)
        while data:
            if one is None:
                # Zeros behind a stream fill up blocks, those of tapes and of xz.
                data = data.lstrip(b"\0") if has_ended else data
                one = make() if data else None
                continue
            while piece := one.decompress(data, _PIECE_BYTES):
                yield piece
                data = b""
                if one.eof:
                    break
            data = b""
            if one.eof:
                data, one, has_ended = one.unused_data, None, True
    if one is not None or not has_ended:
        raise CorruptFileError("is packed, and cut off")
