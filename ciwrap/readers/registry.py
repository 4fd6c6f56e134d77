"""Which reader opens which file: by suffix, or by the name that `format:` gives.

Our own readers come first and cannot be replaced. Readers of other packages register in the
entry-point group `ciwrap.readers` (entry name = reader name) and are loaded only when they are
asked for, or when no reader of ours knows a suffix.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import ReaderPluginError, UnknownReaderError, one_line
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import Reader

if TYPE_CHECKING:
    import os
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "ciwrap.readers"

_OWN_SUFFIXES = {suffix: name for name, one in OWN_FORMATS.items() for suffix in one.suffixes}


def reader_for(path: Path, format_name: str | None = None) -> Reader:
    """The reader for a file.

    Raises UnknownReaderError (a ConfigError) if there is none, ReaderPluginError if it is
    registered but cannot be loaded.
    """
    if format_name is not None:
        return reader_named(format_name)
    suffix = path.suffix.lower()
    if suffix in _OWN_SUFFIXES:
        return _own_reader(_OWN_SUFFIXES[suffix])
    broken: list[ReaderPluginError] = []
    for name in _entry_points():
        try:
            reader = reader_named(name)
        except ReaderPluginError as error:
            broken.append(error)
            continue
        if suffix in reader.suffixes:
            return reader
    if broken:
        raise broken[0]
    raise UnknownReaderError(
        f"no reader knows the suffix {suffix!r}" if suffix else "the file has no suffix",
        file=path,
        remedy=f"name one with 'format' ({', '.join(reader_names())}), or leave the file out with"
        " 'exclude'",
    )


def is_known_suffix(suffix: str) -> bool:
    """Whether some reader opens files of this suffix (with its dot, or '').

    Raises ReaderPluginError for a broken one.
    """
    if suffix.lower() in _OWN_SUFFIXES:
        return True
    try:
        reader_for(Path(f"name{suffix}"))
    except UnknownReaderError:
        return False
    return True


def is_output_folder(path: Path, format_name: str | None = None) -> bool:
    """Whether a folder is one output, as a Zarr store is, and not a folder with outputs in it.

    Raises as `reader_for` does, but not for a suffix that no reader knows.
    """
    if format_name is None and not (path.suffix and is_known_suffix(path.suffix)):
        return False
    return path.is_dir() and reader_for(path, format_name).is_output(path)


def reader_named(name: str, *, file: str | os.PathLike[str] | None = None) -> Reader:
    """The reader of that name; raises as `reader_for` does."""
    import difflib

    if name in OWN_FORMATS:
        return _own_reader(name)
    entry = _entry_points().get(name)
    if entry is None:
        names = reader_names()
        near = difflib.get_close_matches(name, names, 1, 0.5)
        raise UnknownReaderError(
            f"there is no reader {name!r} (known: {', '.join(names)})",
            file=file,
            key="format",
            suggestion=near[0] if near else None,
        )
    return _plugin_reader(name, entry)


def reader_names() -> list[str]:
    """Names of all readers, ours first; nothing is imported for it."""
    return [*OWN_FORMATS, *_entry_points()]


@cache
def _own_reader(name: str) -> Reader:
    module, _, attribute = OWN_FORMATS[name].reader.partition(":")
    reader = getattr(import_module(module), attribute)()
    assert isinstance(reader, Reader)
    return reader


@cache
def _entry_points() -> dict[str, EntryPoint]:
    from importlib import metadata

    found = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    return {name: found[name] for name in sorted(found) if name not in OWN_FORMATS}


_loaded: dict[str, Reader] = {}


def _plugin_reader(name: str, entry: EntryPoint) -> Reader:
    if name in _loaded:
        return _loaded[name]
    try:
        kind = entry.load()
        reader = kind()
    # Somebody else's module runs here, and any way it fails means the same to the user.
    except Exception as error:
        raise ReaderPluginError(
            f"the reader {name!r} ({entry.value}) cannot be loaded: "
            f"{type(error).__name__}: {one_line(error)}",
            remedy="reinstall or remove the package that registers it",
        ) from error
    if not isinstance(reader, Reader):
        raise ReaderPluginError(
            f"the reader {name!r} ({entry.value}) is not a ciwrap.readers.base.Reader",
            remedy="report this to the package that registers it",
        )
    _loaded[name] = reader
    return reader
