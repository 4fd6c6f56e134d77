"""Text tables: .csv, .tsv, and columns between white space. Each column is a variable."""

from __future__ import annotations

import tempfile
from typing import IO, TYPE_CHECKING, Any, ClassVar

from ciwrap.arrays.series import StoredSteps
from ciwrap.closing import closed_on_error
from ciwrap.errors import ConfigError, CorruptFileError, DuplicateVariableError, UnreadFileError
from ciwrap.late import numpy as np
from ciwrap.model.formats import OWN_FORMATS
from ciwrap.readers.base import CheckedReader, Source, VariableInfo, as_elements, reading
from ciwrap.readers.files import InputFile
from ciwrap.readers.history import IterationRule
from ciwrap.readers.text_cells import (
    CellError,
    Kind,
    as_floats,
    as_ints,
    as_texts,
    is_number,
    kind_of,
    may_be_decimal,
)
from ciwrap.readers.text_rows import Block, Dialect, RowReader
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.arrays.series import SeriesFacts

MAX_COLUMNS = 100_000
_MEMORY_BYTES = 64 << 20
_TEXT_STEP = 16
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Whoever sets one of them knows of columns.
_SAY_IT_IS_A_TABLE = frozenset({"delimiter", "header", "types", "iteration", "empty_is_nan"})
_DELIMITER_WORDS = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "space": None,
    "whitespace": None,
    " ": None,
}


class TextReader(CheckedReader):
    """Tables in UTF-8 text.

    Columns are named by a header line, by a comment line before the first row with as many words
    (or names between two blanks) as there are columns, or col_0, col_1, ... A column of whole
    numbers is int64, of other numbers float64, of texts unicode; its first cell that is not empty
    decides between numbers and texts. Columns of words between blanks, of which nobody says that
    they are a table, are refused: they may be free text.
    """

    name: ClassVar[str] = "text"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["text"].suffixes
    option_names: ClassVar[tuple[str, ...]] = (
        "delimiter",
        "header",
        "comment",
        "types",
        "empty_is_nan",
        "final_newline",
        "skip_rows",
        "iteration",
        "iteration_step",
    )

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        return TextSource(path, options)


class TextSource(Source):
    """An open table. It is read through once to learn its columns, and once to convert them, into a
    temporary file if it is large.
    """

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self.path = path
        self._file = InputFile(path)
        self._spool: IO[bytes] | None = None
        self._is_guessed = False  # whether its commas may be those of decimal numbers
        self._empty_is_nan = bool(options.get("empty_is_nan", False))
        self._said_kinds = frozenset(options.get("types") or ())
        with closed_on_error(self.close):
            self._rows = RowReader(self._file, self._dialect(options))
            header = options.get("header", "auto")
            words = {True: "yes", False: "no"}
            self._is_said = bool(_SAY_IT_IS_A_TABLE & options.keys()) or is_delimited(path)
            self._scan(words.get(header, header), options.get("types") or {})
            self._steps = self._steps_of(options)

    # --- first pass: what there is ---------------------------------------------------------------

    def _dialect(self, options: dict[str, Any]) -> Dialect:
        comments = options.get("comment", "#")
        marks = (comments,) if isinstance(comments, str) else tuple(map(str, comments))
        plain = Dialect(
            None,
            tuple(mark for mark in marks if mark),
            bool(options.get("final_newline", True)),
            _skipped(options, self.path),
        )
        given = options.get("delimiter")
        delimiter: str | None
        if given is None:
            suffix = self.path.suffix.lower()
            delimiter = _DELIMITERS.get(suffix) or self._sniffed(plain)
            self._is_guessed = suffix not in _DELIMITERS and delimiter == ","
        elif given in _DELIMITER_WORDS:
            delimiter = _DELIMITER_WORDS[given]
        elif isinstance(given, str) and len(given) == 1 and given not in '\r\n"':
            delimiter = given
        else:
            raise ConfigError(
                "must be one character, or comma, semicolon, tab or space",
                file=self.path,
                key="options.delimiter",
            )
        return replace(plain, delimiter=delimiter)

    def _sniffed(self, plain: Dialect) -> str | None:
        """',' or ';' if the first row has one, else None for white space."""
        text = RowReader(self._file, plain).first_line()
        return next((mark for mark in ",;" if mark in text), None)

    def _scan(self, header: str, types: Mapping[str, str]) -> None:
        names: list[str] = []
        kinds: list[Kind] = []
        widths: list[int] = []
        comments: list[str] = []
        self._row_count = 0
        self._header_line: int | None = None
        for block in self._rows.blocks():
            if not names:
                first_line = block.lines[0] if block.rows else None
                comments += [t for n, t in block.comments if not first_line or n < first_line]
                if first_line is None:
                    continue
                names, is_header = self._names(block, comments, header)
                self._header_line = first_line if is_header else None
                kinds = self._given_kinds(types, names)
                widths = [1] * len(names)
            columns = self._columns(block, len(kinds))
            self._is_guessed = self._is_guessed and may_be_decimal(columns)
            for number, cells in enumerate(columns):
                widths[number] = max(widths[number], max(map(len, cells)))
                if names[number] in types:
                    continue
                kind = kind_of(cells, kinds[number], is_simple=block.is_simple)
                # The cells of earlier blocks were all empty, and whole numbers cannot be.
                late = kinds[number] is Kind.UNKNOWN and self._row_count > 0
                kinds[number] = Kind.FLOAT if kind is Kind.INT and late else kind
            self._row_count += len(block.rows) - (self._header_line in block.lines[:1])
        if not names:
            raise CorruptFileError("holds no rows", file=self.path)
        if self._is_guessed and not self._is_said and self._header_line is None:
            raise UnreadFileError(
                "has two numbers without a point in each row, with a comma between them: it may be"
                " one column of numbers with a decimal comma",
                file=self.path,
                remedy="if it has two columns, set its option 'delimiter' to comma",
            )
        self._kinds = [self._settled(kind) for kind in kinds]
        if Kind.TEXT in self._kinds and not self._is_said:
            raise UnreadFileError(
                "has columns of words, so it may be a text and no table",
                file=self.path,
                remedy="'format: tokens' compares texts; if it is a table, set its option 'header'"
                " to yes or no",
            )
        self.variables = tuple(
            VariableInfo(name, _dtype(kind, width), (self._row_count,))
            for name, kind, width in zip(names, self._kinds, widths, strict=True)
        )
        self._numbers = {name: number for number, name in enumerate(names)}

    def _names(self, block: Block, comments: list[str], header: str) -> tuple[list[str], bool]:
        """Names of the columns, and whether the first row is what gives them."""
        first = block.rows[0]
        if len(first) > MAX_COLUMNS:
            raise CorruptFileError(f"has more than {MAX_COLUMNS} columns", file=self.path)
        has_words = any(cell.strip() for cell in first) and not any(map(is_number, first))
        is_header = header == "yes" or (header == "auto" and has_words)
        names = [cell.strip() for cell in first] if is_header else []
        if is_header and len(block.rows) > 1 and len(block.rows[1]) != len(first):
            named = self._rows.split_names(block.first_text, len(block.rows[1]))
            first = names = named or names
        if comments and header == "auto" and not is_header:
            names = self._rows.split_names(comments[-1], len(first))
            self._is_said = self._is_said or bool(names)
        self._is_said = self._is_said or block.has_quotes
        if len(names) != len(first) or (not is_header and any(map(is_number, names))):
            names = [""] * len(first)
        named = [name or f"col_{number}" for number, name in enumerate(names)]
        if len(set(named)) != len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise DuplicateVariableError(
                "two columns have this name", file=self.path, variable=twice
            )
        return named, is_header

    def _given_kinds(self, types: Mapping[str, str], names: list[str]) -> list[Kind]:
        for name, word in types.items():
            if name not in names:
                raise ConfigError(
                    f"there is no column {name!r} (known: {', '.join(names[:20])})",
                    file=self.path,
                    key="options.types",
                )
            if word not in ("int", "float", "text"):
                raise ConfigError(
                    f"{word!r} is not a column type (int, float, text)",
                    file=self.path,
                    key=f"options.types.{name}",
                )
        return [Kind(types.get(name, "unknown")) for name in names]

    def _settled(self, kind: Kind) -> Kind:
        if kind is not Kind.UNKNOWN:
            return kind
        # No cell said anything: without rows a column of numbers, else one of empty cells.
        return Kind.TEXT if self._row_count and not self._empty_is_nan else Kind.FLOAT

    def _columns(self, block: Block, column_count: int) -> list[tuple[str, ...]]:
        """The block's cells by column, without the header; [] if there are none."""
        rows, lines = block.rows, block.lines
        if lines and lines[0] == self._header_line:
            rows, lines = rows[1:], lines[1:]
        for row, line in zip(rows, lines, strict=True):
            if len(row) != column_count:
                raise CorruptFileError(
                    f"line {line}: has {len(row)} cells where {column_count} are expected",
                    file=self.path,
                    remedy=None if self._is_said else "if it is not a table, set 'format: tokens'",
                )
        return list(zip(*rows, strict=True))

    def _steps_of(self, options: Mapping[str, Any]) -> NDArray[np.int64] | None:
        """The step of each row, if a column tells it; the others then are series by step."""
        name = options.get("iteration")
        if name is None:
            return None
        if name not in self._numbers:
            raise ConfigError(
                f"there is no column {name!r} (known: {', '.join([*self._numbers][:20])})",
                file=self.path,
                key="options.iteration",
            )
        rule = IterationRule.of({**options, "iteration_variable": name}, self.path)
        steps = rule.numbers(self.read(name, 0, self._row_count), self.path, name)
        if max(steps, default=0) >= 1 << 62:
            raise CorruptFileError("holds a step of 2^62 or more", file=self.path, variable=name)
        self._step_column, self._step_size = name, rule.step
        self.variables = tuple(replace(info, in_text=True) for info in self.variables)
        self.__dict__.pop("_by_name", None)
        return np.array(steps, dtype=np.int64)

    def facts(self, name: str) -> SeriesFacts | None:
        self.info(name)
        if self._steps is None:
            return None
        facts = StoredSteps(self._steps)
        facts.steps_name, facts.step_size = self._step_column, self._step_size
        return facts

    # --- second pass: values ---------------------------------------------------------------------

    def read(self, name: str, first_element: int, count: int) -> NDArray[Any]:
        info = self.checked_range(name, first_element, count)
        if self._spool is None:
            self._spool = self._converted()
        number = self._numbers[name]
        with reading(self.path):
            self._spool.seek(self._offsets[number] + first_element * info.item_bytes)
            data = self._spool.read(count * info.item_bytes)
        return as_elements(data, info.dtype)

    def _converted(self) -> IO[bytes]:
        """All columns one after another."""
        sizes = [info.byte_count for info in self.variables]
        self._offsets = [sum(sizes[:number]) for number in range(len(sizes))]
        # Lives as long as the source, which closes it.
        spool = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115
        try:
            done = 0
            for block in self._rows.blocks():
                columns = self._columns(block, len(self._kinds))
                if not columns:
                    continue
                if done + len(columns[0]) > self._row_count:
                    raise CorruptFileError("changes while it is read", file=self.path)
                for number, cells in enumerate(columns):
                    values = self._values(number, cells, block)
                    with reading(self.path):
                        spool.seek(self._offsets[number] + done * values.itemsize)
                        spool.write(values.tobytes())
                done += len(columns[0])
            if done != self._row_count:
                raise CorruptFileError("changes while it is read", file=self.path)
        except BaseException:
            spool.close()
            raise
        return spool

    def _values(self, number: int, cells: tuple[str, ...], block: Block) -> NDArray[Any]:
        kind, info = self._kinds[number], self.variables[number]
        try:
            if kind is Kind.INT:
                return as_ints(cells, is_simple=block.is_simple)
            if kind is Kind.TEXT:
                return as_texts(cells, np.dtype(info.dtype).itemsize // 4)
            return as_floats(
                cells,
                is_simple=block.is_simple,
                empty_is_nan=self._empty_is_nan,
                takes_rounded=info.name in self._said_kinds,
            )
        except CellError as error:
            line = block.lines[len(block.lines) - len(cells) + error.row]
            raise CorruptFileError(
                f"line {line}, column {number + 1}: {error.cell[:40]!r} {error.problem}",
                file=self.path,
                variable=info.name,
            ) from None

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        self._file.close()


def is_delimited(path: Path) -> bool:
    """Whether the suffix says that there is a table."""
    return path.suffix.lower() in _DELIMITERS


def _skipped(options: Mapping[str, Any], path: Path) -> int:
    count = options.get("skip_rows", 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ConfigError("must be a whole number from 0", file=path, key="options.skip_rows")
    return count


def _dtype(kind: Kind, width: int) -> str:
    if kind is Kind.TEXT:
        # In steps, so that one longer word does not make it another dtype.
        return f"<U{-(-width // _TEXT_STEP) * _TEXT_STEP}"
    return "<i8" if kind is Kind.INT else "<f8"


__all__ = ["TextReader"]
