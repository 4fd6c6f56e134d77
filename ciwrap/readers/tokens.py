"""Texts as programs print them: compared token by token, so nothing has to be named beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.values import CUT_LABEL, TEXT_LABEL, TEXT_SETS, TextRules
from ciwrap.closing import closed_on_error
from ciwrap.errors import ConfigError, CorruptFileError
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, FileRegion, Source, VariableInfo, as_elements
from ciwrap.readers.files import InputFile
from ciwrap.readers.registry import is_known_suffix
from ciwrap.readers.sniff import formats_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

# As much as tells a text from what is none; the comparison looks at all of it.
SNIFFED_BYTES = 64 << 10
# What a number that was cut off may end with, and still be one.
_ENDS = tuple(bytes((one,)) for one in b"0123456789.")


class TokensReader(CheckedReader):
    """One text per file, named after the file: its bytes, with the rules for comparing them."""

    name: ClassVar[str] = "tokens"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["tokens"].suffixes
    names_inside: ClassVar[bool] = False
    option_names: ClassVar[tuple[str, ...]] = ("ignore", "ignore_lines")

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return TokensSource(path, name, _rules(options, path))


class TokensSource(Source):
    """An open text. Raises CorruptFileError if its beginning holds a NUL byte."""

    def __init__(self, path: Path, name: str, rules: TextRules) -> None:
        self.path = path
        self._file = InputFile(path)
        with closed_on_error(self.close):
            size = self._file.byte_count
            if b"\0" in self._file.read_at(0, min(size, SNIFFED_BYTES)):
                raise CorruptFileError("holds a NUL byte, so it is not text", file=path)
            may_be_cut = bytes(self._file.read_at(size - 1, 1)) in _ENDS if size else False
        labels = (TEXT_LABEL, CUT_LABEL) if may_be_cut else (TEXT_LABEL,)
        region = FileRegion(str(path), 0, size)
        self.variables = (VariableInfo(name, "|S1", (size,), region, labels=labels, text=rules),)

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        self.checked_range(name, first_element, count)
        return as_elements(self._file.read_at(first_element, count), "|S1")

    def close(self) -> None:
        self._file.close()


def is_unknown_text(path: Path) -> bool:
    """Whether no reader knows the file by its suffix or content, and its beginning is a text.

    Raises as `InputFile` does, and ReaderPluginError.
    """
    if not path.is_file() or is_known_suffix(path.suffix) or formats_of(path):
        return False
    file = InputFile(path)
    try:
        return b"\0" not in file.read_at(0, min(file.byte_count, SNIFFED_BYTES))
    finally:
        file.close()


def _rules(options: Mapping[str, Any], path: Path) -> TextRules:
    """The rules that `options:` states. Raises ConfigError for what means nothing."""
    ignore = _texts(options, "ignore", path)
    lines = _texts(options, "ignore_lines", path)
    for one in ignore:
        if one not in TEXT_SETS:
            known = ", ".join(TEXT_SETS)
            raise ConfigError(f"{one!r} is not one of {known}", file=path, key="options.ignore")
    for one in lines:
        if not one.replace("*", "").strip():
            raise ConfigError(
                f"{one!r} leaves out every line", file=path, key="options.ignore_lines"
            )
    return TextRules(ignore, lines)


def _texts(options: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...]:
    given = options.get(key, ())
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(one, str) and one.strip() for one in texts):
        raise ConfigError("must be a text or a list of texts", file=path, key=f"options.{key}")
    return texts


__all__ = ["TokensReader"]
