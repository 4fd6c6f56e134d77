"""Tables: .csv, .tsv, columns between white space, and Parquet (pyarrow). A column is a variable.

A number in text is decimal with an optional exponent, also with Fortran's letters (`1.0D-3`) or
without any (`1.0-103`), or hexadecimal (`0x1.8p+1`), or nan, inf, infinity in any case; it is the
same in every locale.
"""

from __future__ import annotations

import codecs
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.arrays.values import CUT_LABEL, Labels, SeriesFacts, StoredSteps
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    DuplicateVariableError,
    UnreadFileError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.apart import SourceApart, bytes_below
from ciwrap.formats.entries import MAX_TEXTS, EntrySource, IterationRule, Listing
from ciwrap.formats.log_template import DECIMAL, NOT_FINITE, WITHOUT_LETTER
from ciwrap.formats.reader import (
    AttributeRule,
    CheckedReader,
    InputFile,
    Source,
    VariableInfo,
    as_elements,
    check_is_file,
    guarded,
    library,
    reading,
)
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from numpy.typing import NDArray


BLOCK_BYTES = 1 << 18
_FIRST_BYTES = 1 << 15  # tell tables from other texts
MAX_LINE_CHARACTERS = 16 << 20
_GAPS = re.compile(r"\t| {2,}")
_WORDS = re.compile(r'"((?:[^"]|"")*)"(?!\S)|([^"\s]\S*)|(\S)')


@cache
def _cells_of(delimiter: str | None) -> re.Pattern[str]:
    """Finds the cells of a row: what stands in quotes, what does not, or a quote out of place.
    Blanks beside the quotes are no part of a cell.
    """
    if delimiter is None:
        return _WORDS
    mark = re.escape(delimiter)
    quoted, bare = rf' *"((?:[^"]|"")*)" *(?={mark}|\Z)', rf'(?! *")([^{mark}]*)'
    return re.compile(rf"(?:^|{mark})(?:{quoted}|{bare}|(.))", re.DOTALL)


class Dialect(Struct, frozen=True):
    """How a table is written. delimiter None: white space. comments: what their lines begin with.
    final_newline: whether the last line has to end with a line break. skipped: so many lines at the
    start are no part of it.
    """

    delimiter: str | None
    comments: tuple[str, ...] = ("#",)
    final_newline: bool = False
    skipped: int = 0

    def is_blank(self, text: str) -> bool:
        """Whether there is no row in it. A tab that parts cells makes one of empty cells, as a
        comma does.
        """
        return not text.strip() and (self.delimiter is None or self.delimiter not in text)

    def comment_of(self, line: str) -> str | None:
        """The text of a comment line, without what marks it; None for any other line."""
        mark = next((mark for mark in self.comments if line.startswith(mark)), None)
        return None if mark is None else line[len(mark) :]


class Block(Struct):
    """Consecutive rows. lines: where each begins. comments: (line, text) of comment lines among
    them.

    is_simple: nothing but ASCII, and no underscores. first_text: the first row as it is written.
    has_quotes: whether a cell stands in quotes.
    """

    rows: list[list[str]]
    lines: list[int]
    comments: list[tuple[int, str]]
    is_simple: bool
    first_text: str = ""
    has_quotes: bool = False


class RowReader:
    """Splits a file into rows. Raises CorruptFileError for what is not text or no such table.

    if_binary: what the user can do about a file that is not text.
    """

    def __init__(
        self,
        file: InputFile,
        dialect: Dialect,
        *,
        if_binary: str = "if it is raw binary, set 'format: raw'",
    ) -> None:
        self._file = file
        self._dialect = dialect
        self._if_binary = if_binary
        self.is_cut = False  # whether the last line had no line break, once all were read

    def blocks(self) -> Iterator[Block]:
        """All rows in order; blank lines and comments are no rows."""
        pending = ""
        line = 1
        for text in self._texts():
            pending += text
            if "\n" not in text and len(pending) > MAX_LINE_CHARACTERS:
                raise self._error("is longer than a table's line may be", line)
            end = pending.rfind("\n") + 1
            lines, pending = pending[:end].split("\n")[:-1], pending[end:]
            if not lines:
                continue
            taken, block = self._block(lines, line)
            yield block
            # Lines of a quoted cell that goes on in the next block.
            pending = "".join(part + "\n" for part in lines[taken:]) + pending
            line += taken
        self.is_cut = not self._dialect.is_blank(pending) and not pending.endswith("\n")
        if not self._dialect.is_blank(pending):
            if self._dialect.final_newline and not pending.endswith("\n"):
                raise self._error(
                    "the last line has no line break, as of a file cut off",
                    line + pending.count("\n"),
                )
            lines = pending.removesuffix("\n").split("\n")
            taken, block = self._block(lines, line)
            if taken < len(lines):
                raise self._error("has a quote that is never closed", line + taken)
            yield block

    def first_line(self) -> str:
        """The first line that is neither blank nor a comment, '' if there is none."""
        pending = ""
        number = 0
        for text in self._texts():
            *lines, pending = (pending + text).split("\n")
            for line in map(str.strip, lines):
                number += 1
                if number <= self._dialect.skipped:
                    continue
                if line and self._dialect.comment_of(line) is None:
                    return line
            if len(pending) > MAX_LINE_CHARACTERS:
                break
        return pending

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        size = self._file.byte_count
        offset = 0
        while offset < size:
            data = bytes(self._file.read_at(offset, min(BLOCK_BYTES, size - offset)))
            if b"\0" in data:
                raise CorruptFileError(
                    "is not text (it holds NUL bytes)",
                    file=self._file.path,
                    remedy=self._if_binary,
                )
            offset += len(data)
            try:
                text = decoder.decode(data, final=offset >= size)
            except UnicodeDecodeError:
                raise CorruptFileError("is not UTF-8 text", file=self._file.path) from None
            yield text

    def _block(self, lines: list[str], first_line: int) -> tuple[int, Block]:
        """The rows of these lines, and how many lines they take."""
        delimiter, skipped = self._dialect.delimiter, self._dialect.skipped
        rows: list[list[str]] = []
        numbers: list[int] = []
        comments: list[tuple[int, str]] = []
        is_simple = True
        first_text = ""
        has_quotes = False
        position = 0
        while position < len(lines):
            number = first_line + position
            text = lines[position].removesuffix("\r")
            position += 1
            stripped = text.strip()
            if self._dialect.is_blank(text) or number <= skipped:
                continue
            comment = self._dialect.comment_of(stripped)
            if comment is not None:
                comments.append((number, comment))
                continue
            if not rows:
                first_text = stripped
            if '"' in text:
                start = position - 1
                while text.count('"') % 2 and position < len(lines):
                    text += "\n" + lines[position].removesuffix("\r")
                    position += 1
                if text.count('"') % 2:
                    if len(text) > MAX_LINE_CHARACTERS:
                        raise self._error("has a quote that is never closed", number)
                    return start, Block(rows, numbers, comments, is_simple, first_text, has_quotes)
                has_quotes = True
                rows.append(self._quoted(text, number))
            else:
                rows.append(text.split(delimiter))
            numbers.append(number)
            is_simple = is_simple and text.isascii() and "_" not in text
        return position, Block(rows, numbers, comments, is_simple, first_text, has_quotes)

    def _quoted(self, text: str, line: int) -> list[str]:
        cells: list[str] = []
        for quoted, bare, stray in _cells_of(self._dialect.delimiter).findall(text):
            if stray:
                raise self._error("has a quote within a cell", line)
            cells.append(bare or quoted.replace('""', '"'))
        return cells

    def split_names(self, text: str, count: int) -> list[str]:
        """The names of `count` columns, as a line has them: as rows are split, else at two blanks,
        since a name may be of two words (`Step Nr.`); [] if there are not as many.
        """
        delimiter = self._dialect.delimiter
        names = [cell.strip() for cell in text.strip().split(delimiter)]
        if delimiter is None and len(names) != count:
            names = _GAPS.split(text.strip())
        return names if len(names) == count else []

    def _error(self, problem: str, line: int) -> CorruptFileError:
        return CorruptFileError(f"line {line}: {problem}", file=self._file.path)


_WHOLE = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(DECIMAL)
_FRACTION = re.compile(r"[0-9]+([eEdDqQ][+-]?[0-9]+)?")
# As hours and degrees are printed whose minutes follow: a 0 would be without its sign.
_MINUS_OF_MORE = re.compile(r"-00+")
_WITHOUT_LETTER = re.compile(WITHOUT_LETTER)
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?"
)
_WORD = re.compile(NOT_FINITE)
_HEXADECIMAL_WHOLE = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
_IS_NO_ZERO = re.compile(r"[+-]?(?:0[xX][0.]*[1-9a-fA-F]|[0.]*[1-9])")
LOST_MINUS = "has a minus that 0 loses, as of an angle"
_LETTERS = str.maketrans("dDqQ", "eeee")
_LARGEST_EXACT = 1 << 53  # whole numbers up to here are exact in a double
_MOST_DIGITS = 4000  # that Python makes a whole number of
_INT64 = np.iinfo(np.int64)


class Kind(Enum):
    """What a column holds. UNKNOWN: all of its cells so far are empty."""

    UNKNOWN = "unknown"
    INT = "int"
    FLOAT = "float"
    TEXT = "text"


class CellError(ValueError):
    """A cell that is not what its column holds; `row` counts from the start of the block."""

    def __init__(self, row: int, cell: str, problem: str) -> None:
        super().__init__(problem)
        self.row = row
        self.cell = cell
        self.problem = problem


def parse_float(cell: str) -> float | None:
    """The number in a cell, None if it is none. Raises OverflowError for one that a double would
    make infinite or zero, and for a whole number that no double is.
    """
    text = cell.strip()
    value = _nearest(text)
    problem = None if value is None else _lost(text, value)
    if problem is not None:
        raise OverflowError(problem)
    return value


def _nearest(text: str) -> float | None:
    if _DECIMAL.fullmatch(text):
        return float(text.translate(_LETTERS))
    if _WORD.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return float("inf")
    if _WITHOUT_LETTER.fullmatch(text):
        return float(f"{text[:-4]}e{text[-4:]}")
    return None


def _lost(text: str, value: float) -> str | None:
    """What of the number in a text the double nearest to it does not say; None if it says all."""
    is_infinite = value in (np.inf, -np.inf) and not _WORD.fullmatch(text)
    if is_infinite or (value == 0 and _IS_NO_ZERO.match(text)):
        return "is beyond the range of a double"
    if value == 0 and loses_minus(text):
        return LOST_MINUS
    if abs(value) >= _LARGEST_EXACT and _is_whole(text) and _whole(text) != value:
        return "is a whole number that a double does not hold"
    return None


def _is_whole(text: str) -> bool:
    return bool(_WHOLE.fullmatch(text) or _HEXADECIMAL_WHOLE.fullmatch(text))


def _whole(text: str) -> int | None:
    """The whole number in a text; None for one of more digits than anybody means."""
    if _HEXADECIMAL_WHOLE.fullmatch(text):
        return int(text, 16)
    return int(text) if len(text) <= _MOST_DIGITS else None


def first_lost(
    values: NDArray[np.float64], text_of: Callable[[int], str], *, takes_rounded: bool = False
) -> tuple[int, str] | None:
    """Where the first text is of which the double nearest to it does not say all, and why.

    takes_rounded: whether a double may be another whole number than its text.
    """
    with np.errstate(invalid="ignore"):
        is_far = np.isinf(values) if takes_rounded else np.abs(values) >= _LARGEST_EXACT
    for row in np.flatnonzero(is_far | (values == 0)).tolist():
        problem = _lost(text_of(row), float(values[row]))
        if problem is not None:
            return row, problem
    return None


def loses_minus(text: str) -> bool:
    """Whether the number 0 would be without the minus that a whole number has."""
    return _MINUS_OF_MORE.fullmatch(text.strip()) is not None


def parse_floats(words: Sequence[str]) -> list[float] | None:
    """The numbers in words; None if one of them is none, or one that no double is."""
    try:
        found = [parse_float(word) for word in words]
    except OverflowError:
        return None
    numbers = [value for value in found if value is not None]
    return numbers if len(numbers) == len(found) else None


def is_number(cell: str) -> bool:
    try:
        return parse_float(cell) is not None
    except OverflowError:
        return True


def kind_of(cells: Sequence[str], before: Kind, *, is_simple: bool) -> Kind:
    """What a column holds, given what the cells before these said.

    The first cell that is not empty decides between numbers and text; numbers are whole until one
    is not. is_simple: all cells are ASCII without underscores, which Python's own parsers may then
    read.
    """
    if before is Kind.TEXT or before is Kind.FLOAT:
        return before
    if before is Kind.UNKNOWN:
        first = next((cell for cell in cells if cell.strip()), None)
        if first is None:
            return Kind.UNKNOWN
        if not is_number(first):
            return Kind.TEXT
    if is_simple:
        try:
            for cell in cells:
                int(cell)
        except ValueError:
            pass  # empty cells and those too long for int() are looked at below
        else:
            return Kind.INT
    return Kind.INT if all(_WHOLE.fullmatch(cell.strip()) for cell in cells) else Kind.FLOAT


def may_be_decimal(columns: Sequence[Sequence[str]]) -> bool:
    """Whether two columns may be one of numbers with a decimal comma, of which 1,05 is no 1,5."""
    if not columns:
        return True  # without rows nothing is said
    return len(columns) == 2 and all(
        _WHOLE.fullmatch(whole) and _FRACTION.fullmatch(fraction)
        for whole, fraction in zip(*columns, strict=True)
    )


def as_ints(cells: Sequence[str], *, is_simple: bool) -> NDArray[np.int64]:
    """Raises CellError."""
    if is_simple:
        try:
            simple = np.array(list(map(int, cells)), dtype=np.int64)
            if not any(loses_minus(cells[row]) for row in np.flatnonzero(simple == 0).tolist()):
                return simple
        except (ValueError, OverflowError):
            pass  # which of them it is, and why, is found below
    found = np.empty(len(cells), dtype=np.int64)
    for row, cell in enumerate(cells):
        text = cell.strip()
        if not _WHOLE.fullmatch(text):
            problem = "is empty" if not text else "is not a whole number"
            raise CellError(row, cell, problem)
        if loses_minus(text):
            raise CellError(row, cell, f"{LOST_MINUS} (say 'types: {{column: text}}')")
        value = int(text) if len(text) < 30 else _INT64.max + 1
        if not _INT64.min <= value <= _INT64.max:
            raise CellError(row, cell, "does not fit 64 bits (say 'types: {column: float}')")
        found[row] = value
    return found


def as_floats(
    cells: Sequence[str], *, is_simple: bool, empty_is_nan: bool, takes_rounded: bool = False
) -> NDArray[np.float64]:
    """takes_rounded: whether a double may be another whole number than its cell.

    Raises CellError.
    """
    found = _doubles(cells, is_simple=is_simple, empty_is_nan=empty_is_nan)
    lost = first_lost(found, lambda row: cells[row].strip(), takes_rounded=takes_rounded)
    if lost is not None:
        row, problem = lost
        raise CellError(row, cells[row], problem)
    return found


def _doubles(cells: Sequence[str], *, is_simple: bool, empty_is_nan: bool) -> NDArray[np.float64]:
    if is_simple:
        try:
            return np.array(list(map(float, cells)), dtype=np.float64)
        except ValueError:
            pass  # another spelling, or a bad cell: one by one below
    found = np.empty(len(cells), dtype=np.float64)
    for row, cell in enumerate(cells):
        value = _nearest(cell.strip())
        if value is None:
            if cell.strip():
                raise CellError(row, cell, "is not a number")
            if not empty_is_nan:
                raise CellError(row, cell, "is empty")
            value = np.nan
        found[row] = value
    return found


def as_texts(cells: Sequence[str], width: int) -> NDArray[Any]:
    """Raises CellError for one that is longer than `width`."""
    for row, cell in enumerate(cells):
        if len(cell) > width:
            raise CellError(row, cell, "was shorter a moment ago (is the file being written?)")
    return np.array(cells, dtype=f"<U{width}")


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

    def why_other(self, path: Path) -> str | None:
        """Logs and lists have the suffixes of tables between blanks, too: the first lines tell."""
        if path.suffix.lower() in _DELIMITERS:
            return None
        options = {"final_newline": False}
        try:
            is_whole = path.stat().st_size <= _FIRST_BYTES
            with TextSource(path, options, most_bytes=_FIRST_BYTES) as source:
                is_table = source.variables[0].shape[0] or not is_whole
                return None if is_table else "holds no rows of numbers"
        except (CorruptFileError, DuplicateVariableError, UnreadFileError) as error:
            return error.message
        except (CiwrapError, OSError):
            return None  # opening it will say so


class TextSource(Source):
    """An open table. It is read through once to learn its columns, and once to convert them, into a
    temporary file if it is large. most_bytes: only the lines within so many bytes count.
    """

    def __init__(
        self, path: Path, options: dict[str, Any], *, most_bytes: int | None = None
    ) -> None:
        self.path = path
        self._file = InputFile(path)
        if most_bytes is not None:
            self._file.end_after_line(most_bytes)
        self._spool: IO[bytes] | None = None
        self._is_guessed = False  # whether its commas may be those of decimal numbers
        self._empty_is_nan = bool(options.get("empty_is_nan", True))
        self._may_be_cut = options.get("final_newline") is None
        self._said_kinds = frozenset(options.get("types") or ())
        with closed_on_error(self.close):
            self._rows = RowReader(self._file, self._dialect(options))
            header = options.get("header", "auto")
            words = {True: "yes", False: "no"}
            is_delimited = path.suffix.lower() in _DELIMITERS
            self._is_said = bool(_SAY_IT_IS_A_TABLE & options.keys()) or is_delimited
            self._scan(words.get(header, header), options.get("types") or {})
            self._steps = self._steps_of(options)

    # --- first pass: what there is ---------------------------------------------------------------

    def _dialect(self, options: dict[str, Any]) -> Dialect:
        comments = options.get("comment", "#")
        marks = (comments,) if isinstance(comments, str) else tuple(map(str, comments))
        skipped = options.get("skip_rows", 0)
        if isinstance(skipped, bool) or not isinstance(skipped, int) or skipped < 0:
            raise ConfigError(
                "must be a whole number from 0", file=self.path, key="options.skip_rows"
            )
        plain = Dialect(
            None,
            tuple(mark for mark in marks if mark),
            bool(options.get("final_newline", False)),
            skipped,
        )
        given = options.get("delimiter")
        delimiter: str | None
        if given is None:
            suffix = self.path.suffix.lower()
            delimiter = _DELIMITERS.get(suffix)
            if delimiter is None:  # white space, unless the first row has a mark
                text = RowReader(self._file, plain).first_line()
                delimiter = next((mark for mark in ",;" if mark in text), None)
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
            VariableInfo(name, _dtype_of_cells(kind, width), (self._row_count,), is_written=True)
            for name, kind, width in zip(names, self._kinds, widths, strict=True)
        )
        if self._may_be_cut and self._rows.is_cut:
            *others, last = self.variables
            self.variables = (*others, replace(last, labels=(CUT_LABEL,)))
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


def _dtype_of_cells(kind: Kind, width: int) -> str:
    if kind is Kind.TEXT:
        # In steps, so that one longer word does not make it another dtype.
        return f"<U{-(-width // _TEXT_STEP) * _TEXT_STEP}"
    return "<i8" if kind is Kind.INT else "<f8"


class ParquetReader(CheckedReader):
    """Every column is a variable. One with nulls also gives `NAME.is_null`, so that a null is no
    zero and no NaN; times count in their own units as whole numbers, and a label tells their type.
    """

    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = OWN_FORMATS["parquet"].suffixes

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        _libraries(path)  # once, and not in the process of each file
        # Arrow ends the process on some damaged files.
        return SourceApart(path, partial(_source, path), bytes_below(path))


def _libraries(path: Path) -> tuple[Any, Any]:
    return library("pyarrow", file=path), library("pyarrow.parquet", file=path)


def _source(path: Path) -> Source:
    arrow, parquet = _libraries(path)
    with guarded(path):
        file = parquet.ParquetFile(str(path), memory_map=False)
    listing = Listing(path)
    with closed_on_error(file.close), guarded(path):
        _list(arrow, file, listing)
    return EntrySource(path, listing.entries, file.close)


def _list(arrow: Any, file: Any, listing: Listing) -> None:
    rows = int(file.metadata.num_rows)
    for column in file.schema_arrow:
        groups = _Groups(arrow, file, column.name)
        kind = column.type
        inner = 1
        if arrow.types.is_fixed_size_list(kind):
            inner, kind = kind.list_size, kind.value_type
        shape = (rows,) if inner == 1 and kind is column.type else (rows, inner)
        if arrow.types.is_dictionary(kind):
            kind = kind.value_type
        labels = _labels(arrow, column, kind)
        if _is_text(arrow, kind) and len(shape) == 1:
            _texts(groups, column.name, rows, listing, labels)
            continue
        dtype = _dtype_of_column(arrow, kind)
        if dtype is None:
            listing.add_fault(column.name, f"is of type {column.type}, which is not compared")
            continue
        if groups.has_nulls():
            if len(shape) > 1:
                listing.add_fault(column.name, "holds lists with nulls, which are not compared")
                continue
            listing.add(f"{column.name}.is_null", np.dtype(bool), shape, groups.reader(None, 1))
        listing.add(column.name, dtype, shape, groups.reader(dtype, inner), labels=labels)


def _labels(arrow: Any, column: Any, kind: Any) -> Labels:
    """What the metadata of a column say that its numbers mean, and the type of times."""
    told = {
        name.decode("utf-8", "backslashreplace"): text
        for name, text in (column.metadata or {}).items()
    }
    labels = AttributeRule().labels(None, told)
    if arrow.types.is_temporal(kind):
        # The numbers of times do not tell in which unit, and from when, they count.
        labels = tuple(sorted((*labels, ("type", str(kind)))))
    return labels


def _texts(groups: _Groups, name: str, rows: int, listing: Listing, labels: Labels) -> None:
    if rows > MAX_TEXTS:
        listing.add_fault(name, f"holds more than {MAX_TEXTS} texts of any length")
        return
    texts = [one for group in groups.all() for one in group.to_pylist()]
    if any(one is None for one in texts):
        listing.add_array(f"{name}.is_null", np.array([one is None for one in texts]))
    with listing.one(name):
        filled = ["" if one is None else one for one in texts]
        listing.add_array(name, np.array(filled, dtype=object), labels=labels)


def _is_text(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _dtype_of_column(arrow: Any, kind: Any) -> np.dtype[Any] | None:
    types = arrow.types
    if types.is_boolean(kind):
        return np.dtype(bool)
    # Not by to_pandas_dtype, for which Arrow before 18 asks for pandas.
    if types.is_integer(kind):
        sign = "i" if types.is_signed_integer(kind) else "u"
        return np.dtype(f"<{sign}{kind.bit_width // 8}")
    if types.is_floating(kind):
        return np.dtype(f"<f{kind.bit_width // 8}")
    long = (types.is_timestamp, types.is_duration, types.is_time64, types.is_date64)
    if any(is_of(kind) for is_of in long):
        return np.dtype("<i8")
    if types.is_date32(kind) or types.is_time32(kind):
        return np.dtype("<i4")
    return None


class _Groups:
    """A column, one row group at a time."""

    def __init__(self, arrow: Any, file: Any, column: str) -> None:
        self._arrow = arrow
        self._file = file
        self._column = column
        counts = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
        self._firsts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._kept: tuple[int, Any] | None = None

    def group(self, number: int) -> Any:
        if self._kept is None or self._kept[0] != number:
            self._kept = None
            table = self._file.read_row_group(number, columns=[self._column], use_threads=False)
            column = table.column(self._column).combine_chunks()
            if self._arrow.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            self._kept = (number, column)
        return self._kept[1]

    def all(self) -> list[Any]:
        return [self.group(number) for number in range(len(self._firsts) - 1)]

    def has_nulls(self) -> bool:
        """By the file's statistics; where they are missing, by looking."""
        metadata = self._file.metadata
        names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
        for group in range(metadata.num_row_groups):
            if self._column in names:
                chunk = metadata.row_group(group).column(names.index(self._column))
                if chunk.statistics is not None and chunk.statistics.null_count is not None:
                    if chunk.statistics.null_count:
                        return True
                    continue
            column = self.group(group)
            flat = column.flatten() if hasattr(column, "flatten") and len(column) else column
            if column.null_count or (not isinstance(flat, list) and flat.null_count):
                return True
        return False

    def reader(self, dtype: np.dtype[Any] | None, inner: int) -> Callable[[int, int], NDArray[Any]]:
        """Reads values, nulls as 0; or, where dtype is None, which values are null."""

        def read(first: int, count: int) -> NDArray[Any]:
            found = np.empty(count, dtype=bool if dtype is None else dtype)
            done = 0
            while done < count:
                row, within = divmod(first + done, inner)
                number = int(np.searchsorted(self._firsts, row, side="right")) - 1
                values = self._values(number, dtype)
                begin = (row - int(self._firsts[number])) * inner + within
                piece = values[begin : begin + count - done]
                found[done : done + piece.size] = piece
                done += piece.size
            return found

        return read

    def _values(self, number: int, dtype: np.dtype[Any] | None) -> NDArray[Any]:
        column = self.group(number)
        if dtype is None:
            return np.asarray(column.is_null())
        if self._arrow.types.is_fixed_size_list(column.type):
            column = column.flatten()
        kind = column.type
        if kind.num_fields == 0 and not self._arrow.types.is_primitive(kind):
            raise CorruptFileError(f"holds {kind}", variable=self._column)
        if dtype.kind == "i" and not self._arrow.types.is_integer(kind):
            column = column.view(
                self._arrow.int64() if dtype.itemsize == 8 else self._arrow.int32()
            )
        if column.null_count:
            column = column.fill_null(False if dtype.kind == "b" else 0)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.size != math.prod(values.shape):
            raise CorruptFileError("holds nested values", variable=self._column)
        return values
