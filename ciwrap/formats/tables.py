"""Tables in text: .csv, .tsv, columns between white space. A column is a variable.

A number in text is decimal with an optional exponent, also with Fortran's letters (`1.0D-3`) or
without any (`1.0-103`), or hexadecimal (`0x1.8p+1`), or nan, inf, infinity in any case; it is the
same in every locale.
"""

from __future__ import annotations

import codecs
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import CUT_LABEL, SeriesFacts, StoredSteps
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    CorruptFileError,
    DuplicateVariableError,
    UnreadFileError,
)
from ciwrap.base.late import numpy as np
from ciwrap.base.processes import closed_on_error
from ciwrap.formats.entries import IterationRule, dtype_of_texts
from ciwrap.formats.log_template import DECIMAL, NOT_FINITE, WITHOUT_LETTER
from ciwrap.formats.reader import (
    CheckedReader,
    InputFile,
    Source,
    VariableInfo,
    as_elements,
    guarded,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


T = TypeVar("T")

# Less than what the allocator takes from the system, and gives back, each time.
BLOCK_BYTES = 96 << 10
_FIRST_BYTES = 1 << 15  # tell tables from other texts
MAX_LINE_BYTES = 16 << 20
_LINE_BREAK = ord("\n")
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
    start are no part of it. widths: of columns that stand side by side, with nothing between them.
    """

    delimiter: str | None
    comments: tuple[str, ...] = ("#",)
    final_newline: bool = False
    skipped: int = 0
    widths: tuple[int, ...] = ()

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
        return self.pieces(lambda _lines, _first, _count: None)

    def pieces(self, take: Callable[[bytes, int, int], T | None]) -> Iterator[Block | T]:
        """As `blocks`; but whole lines in ASCII without quotes go to `take` first, with the number
        of the first and how many they are, and what it returns stands for them if that is not None.
        """
        pending = b""
        line = 1
        for data in self._data():
            end = data.rfind(b"\n") + 1
            if not end:
                pending += data
                if len(pending) > MAX_LINE_BYTES:
                    raise self._error("is longer than a table's line may be", line)
                continue
            view = memoryview(data)
            whole, pending = b"".join((pending, view[:end])), bytes(view[end:])
            if whole.isascii() and b'"' not in whole:
                count = int(np.count_nonzero(np.frombuffer(whole, np.uint8) == _LINE_BREAK))
                piece = take(whole, line, count)
                if piece is not None:
                    yield piece
                    line += count
                    continue
            lines = self._text(whole).split("\n")[:-1]
            taken, block = self._block(lines, line)
            yield block
            # Lines of a quoted cell that goes on in the next block.
            pending = "".join(part + "\n" for part in lines[taken:]).encode() + pending
            line += taken
        last = self._text(pending)
        self.is_cut = not self._dialect.is_blank(last) and not last.endswith("\n")
        if not self._dialect.is_blank(last):
            if self._dialect.final_newline and not last.endswith("\n"):
                raise self._error(
                    "the last line has no line break, as of a file cut off",
                    line + last.count("\n"),
                )
            lines = last.removesuffix("\n").split("\n")
            taken, block = self._block(lines, line)
            if taken < len(lines):
                raise self._error("has a quote that is never closed", line + taken)
            yield block

    def first_line(self) -> str:
        """The first line that is neither blank nor a comment, '' if there is none."""
        pending = b""
        number = 0
        for data in self._data():
            pending += data
            end = pending.rfind(b"\n") + 1
            lines, pending = self._text(pending[:end]).split("\n")[:-1], pending[end:]
            for line in map(str.strip, lines):
                number += 1
                if number <= self._dialect.skipped:
                    continue
                if line and self._dialect.comment_of(line) is None:
                    return line
            if len(pending) > MAX_LINE_BYTES:
                break
        return self._text(pending)

    def _data(self) -> Iterator[bytes | bytearray]:
        """The file without the mark of UTF-8 at its beginning."""
        size = self._file.byte_count
        offset = 0
        while offset < size:
            data = self._file.read_at(offset, min(BLOCK_BYTES, size - offset))
            if b"\0" in data:
                raise CorruptFileError(
                    "is not text (it holds NUL bytes)", file=self._file.path, remedy=self._if_binary
                )
            yield data.removeprefix(codecs.BOM_UTF8) if offset == 0 else data
            offset += len(data)

    def _text(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise CorruptFileError("is not UTF-8 text", file=self._file.path) from None

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
            if self._dialect.widths:
                rows.append(self._cut(text, number))
            elif '"' in text:
                start = position - 1
                while text.count('"') % 2 and position < len(lines):
                    text += "\n" + lines[position].removesuffix("\r")
                    position += 1
                if text.count('"') % 2:
                    if len(text) > MAX_LINE_BYTES:
                        raise self._error("has a quote that is never closed", number)
                    return start, Block(rows, numbers, comments, is_simple, first_text, has_quotes)
                has_quotes = True
                rows.append(self._quoted(text, number))
            else:
                rows.append(text.split(delimiter))
            numbers.append(number)
            is_simple = is_simple and text.isascii() and "_" not in text
        return position, Block(rows, numbers, comments, is_simple, first_text, has_quotes)

    def _cut(self, text: str, line: int) -> list[str]:
        ends = [*accumulate(self._dialect.widths)]
        if text[ends[-1] :].strip():
            raise self._error(f"has more after its last column, which ends at {ends[-1]}", line)
        return [text[begin:end] for begin, end in pairwise((0, *ends))]

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
        if self._dialect.widths:
            return []
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
LOST_MINUS = "has a minus that a number would lose"
_AS_TEXT = "(say 'types: {column: text}')"
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
            raise CellError(row, cell, f"{LOST_MINUS} {_AS_TEXT}")
        value = int(text) if len(text) < 30 else _INT64.max + 1
        if not _INT64.min <= value <= _INT64.max:
            # As doubles, two of them would be one number.
            raise CellError(row, cell, f"does not fit 64 bits {_AS_TEXT}")
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
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
# Whoever sets one of them knows of columns.
_SAY_IT_IS_A_TABLE = frozenset(
    {"delimiter", "widths", "header", "types", "iteration", "empty_is_nan"}
)
_NO_ROW = "if it is no row, set 'comment: BEGINNING', or set 'format: tokens'"
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
    option_names: ClassVar[tuple[str, ...]] = (
        "delimiter",
        "widths",
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


# As `_core.scan_table` has it.
_Facts = tuple[int, list[tuple[bool, bool, bool, int]]]


class _Columns:
    """What is known of the columns so far. given: whose types are said."""

    def __init__(self, names: list[str], kinds: list[Kind], given: frozenset[str]) -> None:
        self.names = names
        self.kinds = kinds
        self.widths = [1] * len(names)
        self.row_count = 0
        self._given = given

    def take_cells(self, columns: Sequence[Sequence[str]], *, is_simple: bool) -> None:
        """columns: the cells of some rows, none if there are no rows."""
        for number, cells in enumerate(columns):
            kind = kind_of(cells, self.kinds[number], is_simple=is_simple)
            self._take(number, kind, max(map(len, cells)))
        self.row_count += len(columns[0]) if columns else 0

    def take_facts(self, row_count: int, facts: Sequence[tuple[bool, bool, bool, int]]) -> None:
        """facts: of columns without a word, but for those of texts."""
        for number, (is_whole, _, is_empty, width) in enumerate(facts if row_count else ()):
            kind = self.kinds[number]
            if kind is Kind.INT or (kind is Kind.UNKNOWN and not is_empty):
                kind = Kind.INT if is_whole else Kind.FLOAT
            self._take(number, kind, width)
        self.row_count += row_count

    def _take(self, number: int, kind: Kind, width: int) -> None:
        self.widths[number] = max(self.widths[number], width)
        if self.names[number] in self._given:
            return
        # The cells of earlier blocks were all empty, and whole numbers cannot be.
        late = self.kinds[number] is Kind.UNKNOWN and self.row_count > 0
        self.kinds[number] = Kind.FLOAT if kind is Kind.INT and late else kind


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
        self._is_closed = False  # whether its rows end with a delimiter that the header lacks
        self._empty_is_nan = bool(options.get("empty_is_nan", True))
        self._may_be_cut = options.get("final_newline") is None
        self._said_kinds = frozenset(options.get("types") or ())
        with closed_on_error(self.close):
            self._dialect = self._dialect_of(options)
            self._rows = RowReader(self._file, self._dialect)
            header = options.get("header", "auto")
            words = {True: "yes", False: "no"}
            is_delimited = path.suffix.lower() in _DELIMITERS
            self._is_said = bool(_SAY_IT_IS_A_TABLE & options.keys()) or is_delimited
            self._scan(words.get(header, header), options.get("types") or {})
            self._steps = self._steps_of(options)

    # --- first pass: what there is ---------------------------------------------------------------

    def _dialect_of(self, options: dict[str, Any]) -> Dialect:
        comments = options.get("comment", "#")
        marks = (comments,) if isinstance(comments, str) else tuple(map(str, comments))
        skipped = options.get("skip_rows", 0)
        if isinstance(skipped, bool) or not isinstance(skipped, int) or skipped < 0:
            raise ConfigError("must be a whole number from 0", key="options.skip_rows")
        plain = Dialect(
            None,
            tuple(mark for mark in marks if mark),
            bool(options.get("final_newline", False)),
            skipped,
        )
        given = options.get("delimiter")
        delimiter: str | None
        if "widths" in options:
            return replace(plain, widths=self._widths_of(options))
        if given is None:
            suffix = self.path.suffix.lower()
            delimiter = _DELIMITERS.get(suffix)
            if delimiter is None:  # white space, unless the first row has a mark
                text = RowReader(self._file, plain).first_line()
                delimiter = next((mark for mark in ",;" if mark in text), None)
            self._is_guessed = suffix not in _DELIMITERS and delimiter == ","
        elif given in _DELIMITER_WORDS:
            delimiter = _DELIMITER_WORDS[given]
        elif isinstance(given, str) and len(given) == 1 and given not in '\r\n"\0':
            delimiter = given
        else:
            raise ConfigError(
                "must be one character, or comma, semicolon, tab or space", key="options.delimiter"
            )
        return replace(plain, delimiter=delimiter)

    def _widths_of(self, options: dict[str, Any]) -> tuple[int, ...]:
        widths = options["widths"]
        is_list = isinstance(widths, list | tuple) and len(widths) > 0
        if not is_list or not all(type(one) is int and one > 0 for one in widths):
            raise ConfigError("must be a list of whole numbers from 1", key="options.widths")
        if "delimiter" in options:
            raise ConfigError("cannot be used with 'widths'", key="options.delimiter")
        return tuple(widths)

    def _scan(self, header: str, types: Mapping[str, str]) -> None:
        columns: _Columns | None = None
        comments: list[str] = []
        self._header_line: int | None = None

        def facts_of(lines: bytes, _first: int, _count: int) -> _Facts | None:
            return None if columns is None else self._facts(lines, columns)

        for piece in self._rows.pieces(facts_of):
            if not isinstance(piece, Block):
                assert columns is not None
                columns.take_facts(*piece)
                continue
            if columns is None:
                first_line = piece.lines[0] if piece.rows else None
                comments += [t for n, t in piece.comments if not first_line or n < first_line]
                if first_line is None:
                    continue
                names, is_header = self._names(piece, comments, header)
                self._header_line = first_line if is_header else None
                second = piece.rows[1] if is_header and len(piece.rows) > 1 else names
                self._is_closed = len(second) == len(names) + 1 and not second[-1].strip()
                columns = _Columns(names, self._given_kinds(types, names), frozenset(types))
            cells = self._columns(piece, len(columns.kinds))
            self._is_guessed = self._is_guessed and may_be_decimal(cells)
            columns.take_cells(cells, is_simple=piece.is_simple)
        if columns is None:
            raise CorruptFileError("holds no rows")
        if self._is_guessed and not self._is_said and self._header_line is None:
            raise UnreadFileError(
                "has two numbers without a point in each row, with a comma between them: it may be"
                " one column of numbers with a decimal comma",
                remedy="if it has two columns, set its option 'delimiter' to comma",
            )
        self._row_count = columns.row_count
        self._kinds = [self._settled(kind) for kind in columns.kinds]
        if Kind.TEXT in self._kinds and not self._is_said:
            raise UnreadFileError(
                "has columns of words, so it may be a text and no table",
                remedy="'format: tokens' compares texts; if it is a table, set its option 'header'"
                " to yes or no",
            )
        self.variables = tuple(
            VariableInfo(name, _dtype_of_cells(kind, width), (self._row_count,), is_written=True)
            for name, kind, width in zip(columns.names, self._kinds, columns.widths, strict=True)
        )
        if self._may_be_cut and self._rows.is_cut:
            *others, last = self.variables
            self.variables = (*others, replace(last, labels=(CUT_LABEL,)))
        self._numbers = {name: number for number, name in enumerate(columns.names)}

    def _facts(self, lines: bytes, columns: _Columns) -> _Facts | None:
        """What the core says of rows; None if it does not read them: it knows no hexadecimal
        numbers, and no columns of decimal commas.
        """
        if self._is_guessed or not self._empty_is_nan or self._dialect.widths:
            return None
        # Of numbers that are not whole, nothing more is to be known before they are read.
        is_known = [kind is Kind.FLOAT for kind in columns.kinds] + [False] * self._is_closed
        found: _Facts | None = _core.scan_table(
            lines, self._dialect.delimiter or "", self._dialect.comments, is_known
        )
        if found is None or (self._is_closed and not found[1].pop()[2]):
            return None
        each = zip(columns.kinds, found[1], strict=True)
        return found if all(kind is Kind.TEXT or one[1] for kind, one in each) else None

    def _names(self, block: Block, comments: list[str], header: str) -> tuple[list[str], bool]:
        """Names of the columns, and whether the first row is what gives them."""
        first = block.rows[0]
        if len(first) > MAX_COLUMNS:
            raise CorruptFileError(f"has more than {MAX_COLUMNS} columns")
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
            raise DuplicateVariableError("two columns have this name", variable=twice)
        return named, is_header

    def _given_kinds(self, types: Mapping[str, str], names: list[str]) -> list[Kind]:
        for name, word in types.items():
            if name not in names:
                raise ConfigError(
                    f"there is no column {name!r} (known: {', '.join(names[:20])})",
                    key="options.types",
                )
            if word not in ("int", "float", "text"):
                raise ConfigError(
                    f"{word!r} is not a column type (int, float, text)", key=f"options.types.{name}"
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
        wanted = f"{column_count} and an empty one" if self._is_closed else str(column_count)
        for row, line in zip(rows, lines, strict=True):
            has_end = not self._is_closed or not row[-1].strip()
            if len(row) != column_count + self._is_closed or not has_end:
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                raise CorruptFileError(
                    f"line {line}: has {cells} where {wanted} are expected",
                    remedy=_NO_ROW
                    if self._is_said
                    else "if it is not a table, set 'format: tokens'",
                )
        return list(zip(*rows, strict=True))[:column_count]

    def _steps_of(self, options: Mapping[str, Any]) -> NDArray[np.int64] | None:
        """The step of each row, if a column tells it; the others then are series by step."""
        name = options.get("iteration")
        if name is None:
            return None
        if name not in self._numbers:
            raise ConfigError(
                f"there is no column {name!r} (known: {', '.join([*self._numbers][:20])})",
                key="options.iteration",
            )
        rule = IterationRule.of({**options, "iteration_variable": name})
        steps = rule.numbers(self.read(name, 0, self._row_count), name)
        if max(steps, default=0) >= 1 << 62:
            raise CorruptFileError("holds a step of 2^62 or more", variable=name)
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
        with guarded(self.path):
            if self._spool is None:
                self._spool = self._converted()
            offset = self._offsets[self._numbers[name]]
            self._spool.seek(offset + first_element * info.item_bytes)
            return as_elements(self._spool.read(count * info.item_bytes), info.dtype)

    def _converted(self) -> IO[bytes]:
        """All columns one after another."""
        sizes = [info.byte_count for info in self.variables]
        self._offsets = [sum(sizes[:number]) for number in range(len(sizes))]
        # Lives as long as the source, which closes it.
        spool = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115
        try:
            done = 0
            for piece in self._rows.pieces(self._plain_values):
                columns = self._block_values(piece) if isinstance(piece, Block) else piece
                if not columns:
                    continue
                rows = len(columns[0])
                if done + rows > self._row_count:
                    raise CorruptFileError("changes while it is read")
                for offset, values in zip(self._offsets, columns, strict=True):
                    spool.seek(offset + done * values.itemsize)
                    spool.write(values.tobytes())
                done += rows
            if done != self._row_count:
                raise CorruptFileError("changes while it is read")
        except BaseException:
            spool.close()
            raise
        return spool

    def _block_values(self, block: Block) -> list[NDArray[Any]]:
        columns = self._columns(block, len(self._kinds))
        return [self._values(number, cells, block) for number, cells in enumerate(columns)]

    def _plain_values(self, lines: bytes, first_line: int, most: int) -> list[NDArray[Any]] | None:
        """The columns of rows that the core reads; None for those that it does not."""
        is_behind_head = first_line > max(self._header_line or 0, self._dialect.skipped)
        if not (is_behind_head and self._empty_is_nan and not self._dialect.widths):
            return None
        columns = [
            np.empty((most, np.dtype(info.dtype).itemsize // 4), np.uint32)
            if kind is Kind.TEXT
            else np.empty(most, info.dtype)
            for kind, info in zip(self._kinds, self.variables, strict=True)
        ]
        columns += [np.empty(most)] * self._is_closed
        dialect = self._dialect
        count = _core.read_table(lines, dialect.delimiter or "", dialect.comments, most, columns)
        if count is None:
            return None
        return [
            (one.view(info.dtype)[:, 0] if one.ndim > 1 else one)[:count]
            for one, info in zip(columns, self.variables, strict=False)
        ]

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
                variable=info.name,
            ) from None

    def close(self) -> None:
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        self._file.close()


def _dtype_of_cells(kind: Kind, width: int) -> str:
    if kind is Kind.TEXT:
        return dtype_of_texts(width)
    return "<i8" if kind is Kind.INT else "<f8"
