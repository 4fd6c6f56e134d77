"""JSON, TOML and YAML whose values are variables (`scf.energies`); and texts compared by tokens.

No suffix is claimed: most such files in a folder are settings, and some are ours.
"""

from __future__ import annotations

import json
import math
import re
import sys
from abc import abstractmethod
from collections.abc import Mapping
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from ciwrap.arrays.values import (
    CUT_LABEL,
    TEXT_LABEL,
    TEXT_SETS,
    Labels,
    SectionPlace,
    TextRules,
)
from ciwrap.base.documents import DocumentError, double_of, load_json
from ciwrap.base.errors import ConfigError, CorruptFileError, FileLimitError
from ciwrap.base.late import numpy as np
from ciwrap.base.yaml_documents import load_yaml
from ciwrap.formats.entries import (
    LOST_ZERO,
    Entry,
    EntrySource,
    Listing,
    array_of_texts,
    opened,
    stored_entry,
)
from ciwrap.formats.find_outputs import SNIFFED_BYTES
from ciwrap.formats.reader import (
    CheckedReader,
    InputFile,
    Source,
    first_bytes,
    labels_of,
    library,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MOST_BYTES = 256 << 20
_MOST_DEPTH = 64
_MOST_DIMENSIONS = 32
# Whole numbers up to here are exact in a double.
_LARGEST_EXACT = 1 << 53
# Keys that a name does not show as they are: a dot is in them, there is nothing of them, or they
# read as the number of an element, or as a null.
_AMBIGUOUS = re.compile(r"\.|\A\Z|\A(?:[0-9]+|is_null)\Z")


class ValuesReader(CheckedReader):
    """Numbers, texts and yes or no by the keys that lead to them; a list of numbers, or of lists of
    them that are equally long, is an array. Other lists are counted from 0: `steps.0.energy`.
    """

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        data = first_bytes(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise FileLimitError(f"has more than {_MOST_BYTES >> 20} MiB")
        if not data.strip():
            raise CorruptFileError("is empty")
        try:
            value = self.load(data.removeprefix(b"\xef\xbb\xbf"), path)
        except DocumentError as error:
            raise CorruptFileError(str(error)) from None
        listing = Listing(path)
        add_values(listing, value, (), name)
        written = [replace(one, info=replace(one.info, is_written=True)) for one in listing.entries]
        return EntrySource(path, written)

    @abstractmethod
    def load(self, data: bytes, path: Path) -> Any:
        """The plain values of a document. Raises DocumentError."""


class JsonReader(ValuesReader):
    """JSON, with NaN and Infinity as Python writes them."""

    name: ClassVar[str] = "json"

    def load(self, data: bytes, path: Path) -> Any:
        return load_json(data, takes_constants=True)


class YamlReader(ValuesReader):
    """YAML without anchors and tags."""

    name: ClassVar[str] = "yaml"

    def load(self, data: bytes, path: Path) -> Any:
        return load_yaml(data)


class TomlReader(ValuesReader):
    """TOML; dates are texts."""

    name: ClassVar[str] = "toml"

    def load(self, data: bytes, path: Path) -> Any:
        toml = library("tomllib" if sys.version_info >= (3, 11) else "tomli", file=path)
        try:
            return toml.loads(data.decode("utf-8"), parse_float=_toml_float)
        except UnicodeDecodeError:
            raise DocumentError("is not UTF-8 text") from None
        except toml.TOMLDecodeError as error:
            raise DocumentError(f"is not TOML: {error}") from None
        except DocumentError:
            raise
        except (RecursionError, OverflowError, ValueError):
            raise DocumentError(
                "is nested too deeply, or holds a number that is too long"
            ) from None


def _toml_float(text: str) -> float:
    return float(text) if text.lstrip("+-") in ("inf", "nan") else double_of(text)


def add_values(listing: Listing, value: Any, path: tuple[str | int, ...], root: str) -> None:
    """Adds what is at `path`: keys, and numbers in lists. root: what a document that is one value
    is called.
    """
    # The elements of a document that is a list have no key above them.
    named = path if path and isinstance(path[0], str) else (root, *path)
    name = ".".join(map(str, named))
    facts: dict[str, Any] = {"labels": _labels(path)}
    if len(path) > _MOST_DEPTH:
        raise CorruptFileError("is nested too deeply")
    if isinstance(value, dict) and value:
        for key, one in value.items():
            add_values(listing, one, (*path, key), root)
    elif isinstance(value, dict):
        listing.add_array(f"{name}.", np.empty(0, dtype="|b1"), **facts)
    elif value is None:
        # A null equals a null only, and no text.
        listing.add_array(f"{name}.is_null", np.array(True), **facts)
    elif isinstance(value, list):
        array = _array(value)
        if array is not None:
            listing.add_array(name, array, **facts)
            return
        for number, one in enumerate(value):
            add_values(listing, one, (*path, number), root)
    elif isinstance(value, int) and not isinstance(value, bool) and not -1 << 63 <= value < 1 << 63:
        listing.add_fault(name, "is a whole number that does not fit 64 bits", **facts)
    elif isinstance(value, str) and value.endswith("\0"):
        listing.add_fault(name, LOST_ZERO, **facts)
    else:
        plain = value.isoformat() if isinstance(value, (date, datetime, time)) else value
        single = _plain([plain])
        assert single is not None
        listing.add_array(name, single.reshape(()), **facts)


def _labels(path: tuple[str | int, ...]) -> Labels:
    """The keys to a value, where another way through a document would give it the same name, as one
    through a key that is called like the file.
    """
    is_named = bool(path) and isinstance(path[0], str)
    if is_named and not any(isinstance(key, str) and _AMBIGUOUS.search(key) for key in path):
        return ()
    return labels_of(None, {"keys": json.dumps(path)})


def _array(value: list[Any]) -> NDArray[Any] | None:
    """A list as an array; None if values are of several kinds, or lists of several lengths."""
    shape, items = [len(value)], value
    while items and all(isinstance(one, list) for one in items):
        lengths = {len(one) for one in items}
        if len(lengths) > 1 or len(shape) == _MOST_DIMENSIONS:
            return None
        shape.append(lengths.pop())
        items = [one for inner in items for one in inner]
    array = _plain(items)
    return None if array is None or array.size != math.prod(shape) else array.reshape(shape)


def _plain(items: list[Any]) -> NDArray[Any] | None:
    kinds = {type(one) for one in items}
    if kinds == {bool}:
        return np.array(items, dtype="|b1")
    if kinds == {str}:
        return None if any(one.endswith("\0") for one in items) else array_of_texts(items)
    if kinds == {int} and all(-1 << 63 <= one < 1 << 63 for one in items):
        return np.array(items, dtype="<i8")
    if kinds <= {int, float} and all(
        isinstance(one, float) or abs(one) <= _LARGEST_EXACT for one in items
    ):
        return np.array(items, dtype="<f8")
    return None


# What a number that was cut off may end with, and still be one.
_ENDS = tuple(bytes((one,)) for one in b"0123456789.")


class TokensReader(CheckedReader):
    """One text per file, named after the file: its bytes, with the rules for comparing them."""

    name: ClassVar[str] = "tokens"
    names_inside: ClassVar[bool] = False
    option_names: ClassVar[tuple[str, ...]] = ("ignore", "ignore_lines", "ignore_places")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return opened(path, partial(_text, name, _rules(options)))


def _text(name: str, rules: TextRules, file: InputFile) -> list[Entry]:
    """Raises CorruptFileError if the beginning of a file holds a NUL byte."""
    size = file.byte_count
    if b"\0" in file.read_some(0, SNIFFED_BYTES):
        raise CorruptFileError("holds a NUL byte, so it is not text")
    may_be_cut = file.read_some(size - 1, 1) in _ENDS if size else False
    labels = (TEXT_LABEL, CUT_LABEL) if may_be_cut else (TEXT_LABEL,)
    return [stored_entry(file, name, "|S1", (size,), 0, labels=labels, text=rules)]


def _rules(options: Mapping[str, Any]) -> TextRules:
    """The rules that `options:` states. Raises ConfigError for what means nothing."""
    ignore = _texts(options, "ignore")
    lines = _texts(options, "ignore_lines")
    places, sections = _places(options.get("ignore_places", ()))
    for one in ignore:
        if one not in TEXT_SETS:
            known = ", ".join(TEXT_SETS)
            raise ConfigError(f"{one!r} is not one of {known}", key="options.ignore")
    for one in lines:
        if not one.replace("*", "").strip():
            raise ConfigError(f"{one!r} leaves out every line", key="options.ignore_lines")
    for one in places:
        if "{}" not in one or not any(c.isalpha() for c in one):
            raise ConfigError(
                f"{one!r} is no place in a line: write its words, '{{}}' for the number to leave"
                " out and '#' for any other",
                key="options.ignore_places",
            )
    return TextRules(ignore, lines, places, sections)


def _places(given: Any) -> tuple[tuple[str, ...], tuple[SectionPlace, ...]]:
    """Those of all lines, and those of sections. Raises ConfigError for what is none."""
    entries = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    sections = tuple(one for one in entries if isinstance(one, SectionPlace))
    texts = [one for one in entries if not isinstance(one, SectionPlace)]
    for one in sections:
        if one.place and "{}" not in one.place:
            raise ConfigError(
                f"{one.place!r} names no number; write '{{}}' for the one to leave out",
                key="options.ignore_places",
            )
    return _texts({"ignore_places": texts}, "ignore_places"), sections


def _texts(options: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = options.get(key, ())
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(one, str) and one.strip() for one in texts):
        raise ConfigError("must be a text or a list of texts", key=f"options.{key}")
    return texts
