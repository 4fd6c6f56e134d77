"""Templates of log lines, numbers as programs print them, and templates proposed from two logs.

`E= {energy} Ha {*} step {n:int}`: all characters stand for themselves but white space, which means
any white space or none, `{name}` (a number), `{name:int}`, `{name:text}` (one word), `{*}`
(whatever comes), `^` at the start (the start of the line) and `{$}` at the end (its end). `{{` and
`}}` are braces. A template matches anywhere in a line; its parts are looked for from left to right,
each at the first place where it fits, so matching takes time in proportion to the line.

A number is a word of its own, but for brackets and other closing signs beside it. What stands
beside it and could be a part of it (`1,234.5`, `10^3`, `1.5 x 10^-3`, `3-5`, `1:30`, `1/3`,
`1.5(3)`, `1.5eV`) makes it no number, unless a template says what follows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct, field

from ciwrap.model.settings import FormError, cut

# A decimal number, also with Fortran's letters (`1.0D-3`); Fortran's exponents of three digits
# without a letter (`1.0-103`); and what is no number, or has no end.
DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eEdDqQ][+-]?[0-9]+)?"
WITHOUT_LETTER = r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)[+-][0-9]{3}"
NOT_FINITE = r"[+-]?(?i:nan|inf(?:inity)?)"

WHITE = rb"[ \t\r\f\v]"
WORD = re.compile(rb"[^ \t\r\f\v]+")
# What Fortran prints for a number that its field is too narrow for.
STARS = re.compile(rb"\*+(?![^ \t\r\f\v,;)\]])")
WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")

_NUMBER = f"(?:{WITHOUT_LETTER}(?![0-9])|{DECIMAL}|{NOT_FINITE})".encode()
# In words of their own: an exponent, a power of ten, an imaginary part.
_MORE = (
    rb"\)?%b+(?:[eEdDqQ][+-]?[0-9]|[^ \t\r\f\v0-9]{1,6}%b*10(?:\^|\*\*|[\x80-\xff])"
    rb"|[+-]%b+[0-9.]+(?:[eEdD][+-]?[0-9]+)?(?:im?|j)(?![A-Za-z0-9_]))" % (WHITE, WHITE, WHITE)
)
MORE = re.compile(_MORE)
# White space, the end, or closing signs, and no digit behind these.
_END_OF_NUMBER = (
    rb"(?![^ \t\r\f\v.,;:!?%)\]}>|\"'/(\[]|\.[^ \t\r\f\v]|[^ \t\r\f\vA-Za-z0-9_]+[0-9])"
    rb"(?!" + _MORE + rb")"
)
# White space, the start, or an opening sign; no sign behind a digit, and no uncertainty.
_BEGIN = (
    rb"(?<![^ \t\r\f\v=(\[{<|\"',;:])(?<![0-9][,;:'])"
    rb"(?<!\xc2\xb1 )(?<! \xb1 )(?<!\+/- )(?<!\+- )"
)
NUMBER = re.compile(_NUMBER + _END_OF_NUMBER)
# One behind which the template says what follows, as in `{x} eV` and `{x},{y}`.
SAID_NUMBER = re.compile(_NUMBER + rb"(?![0-9]|\.[0-9])")
NEXT_NUMBER = re.compile(_BEGIN + NUMBER.pattern)
NEXT_SAID_NUMBER = re.compile(_BEGIN + SAID_NUMBER.pattern)
# What a number that was taken in part leaves behind it, if what it leaves makes it another one.
EXPONENT = re.compile(rb"[0-9]*\.?[0-9]*(?:[eEdDqQ][+-]?[0-9]+|[+-][0-9]{3}(?![0-9]))")
# How a word begins that is a number, or means to be one, also in colour.
_MEANS_NUMBER = re.compile(rb"(?:[+\-.]|\x1b\[|[\x80-\xff])*[0-9]")
_MINUS = rb"(?:-|\xe2\x88\x92)"
_LONE_MINUS = re.compile(rb"(?:\A|(?<=%b))%b\Z" % (WHITE, _MINUS))
_LONGEST_MINUS = 3  # bytes
MINUS_APART = re.compile(rb"%b%b+" % (_MINUS, WHITE))


def means_number(word: bytes) -> bool:
    """Whether a word begins as numbers do, also one that its field was too narrow for."""
    return STARS.match(word) is not None or _MEANS_NUMBER.match(word) is not None


def end_of_more(line: bytes, at: int) -> int | None:
    """Where the words end that a number which seems to end at `at` goes on to; None if it ends."""
    more = MORE.match(line, at)
    if more is None:
        return None
    word = WORD.match(line, more.end())
    return more.end() if word is None else word.end()


_PARTS = re.compile(r"[+-]?([0-9]*)\.?([0-9]*)(?:[eEdDqQ]?([+-]?[0-9]+))?")


def printed_digits(text: str) -> tuple[int, int]:
    """How many significant digits a printed number shows, and the exponent of its last place.

    `-17.160` has five, the last of 10^-3. Returns (0, 0) for what is not decimal.
    """
    found = _PARTS.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        return 0, 0
    exponent = int(found[3][:6]) if found[3] else 0
    digits = (found[1] + found[2]).lstrip("0")
    return max(1, len(digits)), exponent - len(found[2])


class Field(Struct, frozen=True):
    """A place in a template. kind: "number", "int" or "text"."""

    name: str
    kind: str = "number"


class FieldPlace(Struct, frozen=True):
    """A field in a line: its bytes from `start` to before `end`."""

    field: Field
    start: int
    end: int


class Problem(Struct, frozen=True):
    """A line that fits but for one word, which is not what its field wants."""

    start: int
    end: int
    text: str


Match: TypeAlias = "tuple[FieldPlace, ...] | Problem | None"


def fits(line: bytes, found: Match) -> bool:
    """Whether a line matches, or does but for a number that is damaged. Where a word stands in
    place of the number, it is another line.
    """
    if isinstance(found, Problem):
        return means_number(line[found.start : found.end])
    return found is not None


def no_number(line: bytes, start: int, end: int, why: str = ", not a number") -> Problem:
    """Words that stand where a number should."""
    shown = cut(line[start:end].decode("utf-8", "replace"))
    return Problem(start, end, f"is {shown!r}{why}")


def minus_apart(line: bytes, at: int) -> Problem | None:
    """A minus before the number at `at`, if white space parts the two; None without one.

    Programs that fill up between sign and digits print such numbers, `-   1.5`. Whether it is of
    the value only a template tells that says where it stands.
    """
    before = line[:at].rstrip(b" \t\r\f\v")
    minus = _LONE_MINUS.search(before, max(0, len(before) - _LONGEST_MINUS))
    word = WORD.match(line, at)
    if len(before) == at or minus is None or word is None:
        return None
    return no_number(line, minus.start(), word.end(), ", a minus apart from its number")


KINDS = ("number", "int", "text")
MOST_CHARACTERS = 2000
# So often may a part of a template begin in a line without fitting there.
MOST_ATTEMPTS = 200
_END_OF_LINE = "{$}"
_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IS_WORD = re.compile(r"[A-Za-z0-9_]")


class TooManyAttemptsError(ValueError):
    """A part of a template begins so often in one line that looking on would take too long."""


class _Step(Struct, frozen=True):
    """A field, and the literal text behind it (None: nothing). is_glued: it follows at once.
    is_said: it says what follows, and is no mere white space.
    """

    field: Field
    after: re.Pattern[bytes] | None
    is_glued: bool
    is_said: bool


class _Segment:
    """What stands between two `{*}`. lead: the literal text that it begins with."""

    def __init__(
        self, lead: re.Pattern[bytes] | None, steps: tuple[_Step, ...], *, is_last: bool
    ) -> None:
        self.lead = lead
        self.steps = steps
        self._begins_with_number = lead is None and steps[0].field.kind != "text"
        self._is_last = is_last  # nothing but white space may follow

    def search(
        self, line: bytes, at: int, found: list[FieldPlace], *, is_anchored: bool
    ) -> Match | int:
        """Where the first match from `at` on ends; its fields go to `found`."""
        problem: Problem | None = None
        first = at
        for _ in range(MOST_ATTEMPTS):
            begin = self._begin(line, at, is_anchored=is_anchored)
            if begin is None:
                return problem or self._unlike(line, first, is_anchored=is_anchored)
            kept = len(found)
            end = self._follow(line, begin[1], found)
            if isinstance(end, int):
                apart = minus_apart(line, begin[1]) if self._begins_with_number else None
                return end if apart is None else apart
            del found[kept:]
            problem = problem or end
            # Of a line that two processes wrote at once the first number may be damaged; another
            # one further on is not the value.
            is_number = end is not None and means_number(line[end.start : end.end])
            if is_anchored or is_number:
                return problem
            at = begin[0] + 1
        raise TooManyAttemptsError

    def _begin(self, line: bytes, at: int, *, is_anchored: bool) -> tuple[int, int] | None:
        """Where the segment may begin, and where its first field then does."""
        pattern = self.lead
        if pattern is None:
            first = self.steps[0]
            pattern = NEXT_SAID_NUMBER if first.is_said else NEXT_NUMBER
            pattern = WORD if first.field.kind == "text" else pattern
        found = pattern.match(line, at) if is_anchored else pattern.search(line, at)
        if found is None and is_anchored and self._begins_with_number:
            minus = MINUS_APART.match(line, at)  # `minus_apart` tells of it
            found = None if minus is None else pattern.match(line, minus.end())
        if found is None:
            return None
        return found.start(), found.end() if self.lead is not None else found.start()

    def _unlike(self, line: bytes, at: int, *, is_anchored: bool) -> Problem | None:
        """What stands where the number should be that the segment begins with, and means to be one.

        Only what follows it tells of its place.
        """
        if not self._begins_with_number or not self.steps[0].is_said:
            return None
        step = self.steps[0]
        words = (WORD.match(line, at),) if is_anchored else WORD.finditer(line, at)
        for word in words:
            if word is not None and _is_unlike(step, line, word):
                return _problem(step, line, word.start())
        return None

    def _follow(self, line: bytes, at: int, found: list[FieldPlace]) -> int | Problem | None:
        """The end of the fields and literals that stand from `at` on."""
        for step in self.steps:
            end = _text_end(step, line, at) if step.field.kind == "text" else None
            if step.field.kind != "text":
                number = (SAID_NUMBER if step.is_said else NUMBER).match(line, at)
                is_whole = number is not None and (
                    step.field.kind != "int" or WHOLE.fullmatch(number[0])
                )
                if not is_whole:
                    return _problem(step, line, at)
                assert number is not None
                end = number.end()
            if end is None:
                return None
            found.append(FieldPlace(step.field, at, end))
            at = end
            if step.after is not None:
                after = step.after.match(line, at)
                if after is None:
                    is_damaged = self._is_damaged(step, line, found[-1])
                    return _problem(step, line, found[-1].start) if is_damaged else None
                at = after.end()
        return None if self._is_last and line[at:].strip() else at

    def _is_damaged(self, step: _Step, line: bytes, found: FieldPlace) -> bool:
        """Whether a number without the text behind it is one that goes on; else it is another place
        of the line.
        """
        if step.field.kind == "text" or (self._begins_with_number and step is self.steps[0]):
            return False
        return NUMBER.match(line, found.start) is None


def _is_unlike(step: _Step, line: bytes, word: re.Match[bytes]) -> bool:
    """Whether a word stands where the number should, and means to be one, but is none."""
    if not means_number(word[0]) or NUMBER.match(line, word.start()) is not None:
        return False
    assert step.after is not None
    after = step.after.search(line, word.start() + 1)
    # What it goes on with may be words of their own, as of `1.5 E+05`.
    plain = SAID_NUMBER.match(line, word.start())
    last = None if plain is None else end_of_more(line, plain.end())
    ends = [word.end(), last or word.end()]
    is_within = after is not None and after.start() <= word.end()
    return is_within or any(step.after.match(line, end) is not None for end in ends)


def _text_end(step: _Step, line: bytes, at: int) -> int | None:
    word = WORD.match(line, at)
    if word is None:
        return None
    if not step.is_glued:
        return word.end()
    assert step.after is not None
    after = step.after.search(line, at + 1)
    return None if after is None or after.start() > word.end() else after.start()


def _problem(step: _Step, line: bytes, at: int) -> Problem | None:
    """What stands where a number should, if all else fits."""
    word = WORD.match(line, at)
    if word is None or (step.after is not None and step.after.search(line, at) is None):
        return None
    stars = STARS.match(line, at)
    if stars is not None:
        return no_number(line, at, stars.end(), ": the number was too long for its field")
    number = SAID_NUMBER.match(line, at)
    more = None if number is None else end_of_more(line, number.end())
    whole = "whole " if step.field.kind == "int" else ""
    return no_number(line, at, max(word.end(), more or 0), f", not a {whole}number")


class Template:
    """A compiled template. Raises FormError for a text that is none.

    fields: in their order. literal: the longest piece of text that every matching line holds, None
    if there is none. words: its literal words, for messages.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise FormError(f"is longer than {MOST_CHARACTERS} characters")
        self.text = text
        self._is_anchored = text.startswith("^")
        is_ended = text.rstrip().endswith(_END_OF_LINE)
        text = text.rstrip().removesuffix(_END_OF_LINE) if is_ended else text
        pieces = _pieces(text[1:] if self._is_anchored else text)
        self.fields = tuple(one for one in pieces if isinstance(one, Field))
        names = [one.name for one in self.fields]
        if len({*names}) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise FormError(f"names {{{twice}}} twice")
        literals = [one for one in pieces if isinstance(one, str)]
        self.words = tuple(word for one in literals for word in one.split())
        plain = [word.encode() for word in self.words if word.isascii()]
        self.literal = max(plain, key=len, default=None)
        if not self.words and not self.fields:
            raise FormError("holds nothing to look for")
        parts = _split(pieces)
        # After whatever comes, the line's end says nothing.
        last = len(parts) if is_ended and not text.rstrip().endswith("{*}") else 0
        self._segments = [
            _segment(part, is_last=number == last) for number, part in enumerate(parts, 1)
        ]
        self._starts_free = not pieces or pieces[0] is None

    def match(self, line: bytes) -> Match:
        """The fields of a line without its line break, in order; () if there are none.

        None if the line does not match. Raises TooManyAttemptsError.
        """
        found: list[FieldPlace] = []
        at = 0
        for number, segment in enumerate(self._segments):
            is_anchored = self._is_anchored and number == 0 and not self._starts_free
            if is_anchored:
                at = len(line) - len(line.lstrip(b" \t\r\f\v"))
            end = segment.search(line, at, found, is_anchored=is_anchored)
            if not isinstance(end, int):
                return end
            at = end
        return tuple(found)


# Literal text, a field, or None for `{*}`.
_Piece: TypeAlias = "str | Field | None"


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    literal, at = "", 0
    for place in _PLACE.finditer(text):
        literal += text[at : place.start()]
        at = place.end()
        if place[0] in ("{{", "}}"):
            literal += place[0][0]
            continue
        if place[1] is None:
            raise FormError("has a single brace; write {{ or }} for a literal one")
        if literal:
            pieces.append(literal)
        literal = ""
        pieces.append(None if place[1] == "*" else _field(place[1]))
    literal += text[at:]
    return [*pieces, literal] if literal else pieces


def _field(text: str) -> Field:
    name, colon, kind = text.partition(":")
    if text == "$":
        raise FormError("{$} is the end of the line, and stands at the end")
    if not _NAME.fullmatch(name):
        raise FormError(
            f"{{{cut(text)}}} is not a field; write {{name}}, {{name:int}}, {{name:text}}"
        )
    if colon and kind not in KINDS:
        raise FormError(f"{{{cut(text)}}}: a field is a number, or ':int' or ':text'")
    return Field(name, kind or "number")


def _split(pieces: list[_Piece]) -> list[list[_Piece]]:
    """The pieces between the places for whatever comes; those that say nothing are left out."""
    parts: list[list[_Piece]] = [[]]
    for piece in pieces:
        if piece is None:
            parts.append([])
        else:
            parts[-1].append(piece)
    return [
        part for part in parts if any(isinstance(one, Field) or str(one).strip() for one in part)
    ]


def _segment(part: list[_Piece], *, is_last: bool) -> _Segment:
    if isinstance(part[0], str) and not part[0].strip():
        part = part[1:]
    lead = part[0] if isinstance(part[0], str) else None
    rest = part if lead is None else part[1:]
    steps: list[_Step] = []
    for position, piece in enumerate(rest):
        if not isinstance(piece, Field):
            continue
        after = rest[position + 1] if position + 1 < len(rest) else None
        if isinstance(after, Field):
            raise FormError(f"there is nothing between {{{piece.name}}} and {{{after.name}}}")
        text = str(after or "")
        is_glued = bool(text) and not text[0].isspace()
        follows = position + 2 < len(rest)
        pattern = _literal(text, before_field=follows) if text.strip() or follows else None
        steps.append(_Step(piece, pattern, is_glued, bool(text.strip())))
    start = None if lead is None else _literal(lead, before_field=bool(steps))
    return _Segment(start, (*steps,), is_last=is_last)


def _literal(text: str, *, before_field: bool) -> re.Pattern[bytes]:
    """Literal text with any white space where it has some.

    A number that the template sets apart from a letter or a digit has to be apart from it.
    """
    words = text.split()
    white = WHITE + b"*"
    pattern = white.join(_escaped(word) for word in words)
    if text[:1].isspace():
        pattern = white + pattern
    if before_field and text[-1:].isspace() and words:
        is_word = _IS_WORD.match(words[-1][-1]) is not None
        pattern += WHITE + b"+" if is_word else white
    return re.compile(pattern)


def _escaped(word: str) -> bytes:
    """A word in UTF-8, or in Latin-1 where that has its characters."""
    if word.isascii():
        return re.escape(word.encode())
    other = word.encode("latin-1", "ignore")
    both = [re.escape(word.encode())]
    if other.decode("latin-1") == word:
        both.append(re.escape(other))
    return b"(?:" + b"|".join(both) + b")"


LEAST_DIGITS = 7
MOST_RELATIVE = 1e-2
# The bound is so many times what two runs differ by, and so many units of the finest printed place,
# but no more than a part of the values' spread.
TIMES_VARIATION = 10
PRINTED_UNITS = 1.5
MOST_OF_SPREAD = 1e-3
# A spread of fewer units of that place says nothing: the values are one value.
_LEAST_UNITS = 1000
MOST_PROPOSED = 200
_MOST_LINES = 100_000
# What depends on the machine, not on what is computed.
_MACHINE = re.compile(
    r"(?i)(?<![a-z])(cpu|wall|walltime|elapsed|seconds?|secs?|minutes?|hours?|timings?|time|date"
    r"|memory|mem|[kmg]i?b|ranks?|process(es|ors?)?|procs?|threads?|cores?|mpi|omp|openmp|pid|hosts?"
    r"|speed|performance|load|rss|flops?|steps/s|tau/day)(?![a-z])"
)
_MARK, _OTHER_MARK = b"\x01", b"\x02"
# Also times, dates and counters such as `step 3/10`, which are no results, and by which lines of
# one kind differ.
_COUNTED = re.compile(
    NEXT_NUMBER.pattern
    + rb"|(?P<other>(?<![A-Za-z0-9_.])[0-9]+(?:(?:[/:,;~'\-]|\.\.+)[0-9]+)+(?![A-Za-z0-9_]))"
)
_LEADING = ("energy", "total", "potential", "pressure", "force", "temperature", "charge")
_LETTERS = re.compile(r"[A-Za-z]+")
_BEFORE_LETTERS = re.compile(r"\A[^A-Za-z]+")
_STEP = "iteration"


class _Place(Struct):
    """A number in lines of one kind, over a whole log. exponent: of the finest printed place; None
    where none was decimal. is_whole: whether all are whole numbers.
    """

    values: list[float] = field(default_factory=list)
    digits: int = 0
    exponent: int | None = None
    is_whole: bool = True

    @property
    def is_step(self) -> bool:
        """Whether the numbers count the lines they stand in."""
        pairs = zip(self.values, self.values[1:], strict=False)
        return self.is_whole and len(self.values) > 1 and all(a < b for a, b in pairs)


class _Kind(Struct):
    """Lines that are the same but for their numbers. example: the first one."""

    example: bytes
    count: int = 0
    places: list[_Place] = field(default_factory=list)


class Proposal(Struct, frozen=True):
    """A value to look for. text: a template, or with a column one without fields. count: matches.
    atol: the bound that is proposed. digits: that are printed.
    """

    name: str
    text: str
    column: int | None
    atol: float
    count: int
    digits: int


def propose(first: Iterable[bytes], second: Iterable[bytes]) -> list[Proposal]:
    """Values from the lines of two logs, the likeliest ones first."""
    ours, theirs = _kinds(first), _kinds(second)
    found: list[tuple[tuple[int, ...], _Kind, int, float, bool]] = []
    for position, (key, kind) in enumerate(ours.items()):
        other = theirs.get(key)
        words = key.replace(_MARK, b" ").replace(_OTHER_MARK, b" ").decode("utf-8", "replace")
        if other is None or other.count != kind.count or _MACHINE.search(words):
            continue
        for number, (mine, yours) in enumerate(zip(kind.places, other.places, strict=True)):
            largest = _variation(mine, yours)
            atol = None if largest is None else _bound(mine, largest)
            if atol is not None:
                rank = (*_rank(words), number, position)
                has_steps = all(one.places[0].is_step for one in (kind, other))
                found.append((rank, kind, number, atol, has_steps))
    found.sort(key=lambda one: one[0])
    proposals: list[Proposal] = []
    names = {_STEP}
    for _, kind, number, atol, has_steps in found[:MOST_PROPOSED]:
        made = _proposal(kind, number, atol, names, has_steps=has_steps)
        if made is not None:
            proposals.append(made)
    return proposals


def count_numbers(lines: Iterable[bytes]) -> int:
    """How many numbers the lines of a log hold."""
    return sum(len(_numbers(line)) for line in lines)


def _kinds(lines: Iterable[bytes]) -> dict[bytes, _Kind]:
    kinds: dict[bytes, _Kind] = {}
    for count, line in enumerate(lines):
        if count >= _MOST_LINES:
            break
        numbers = _numbers(line)
        if not numbers:
            continue
        key = b" ".join(_COUNTED.sub(_mark, line).split())
        kind = kinds.setdefault(key, _Kind(line, places=[_Place() for _ in numbers]))
        kind.count += 1
        for place, found in zip(kind.places, numbers, strict=True):
            text = found[0].decode("ascii")
            place.values.append(_value(text))
            digits, exponent = printed_digits(text)
            place.digits = max(place.digits, digits)
            place.is_whole = place.is_whole and WHOLE.fullmatch(found[0]) is not None
            if digits:
                is_first = place.exponent is None
                place.exponent = exponent if is_first else min(place.exponent or 0, exponent)
    return kinds


def _numbers(line: bytes) -> list[re.Match[bytes]]:
    return [found for found in _COUNTED.finditer(line) if found.lastgroup is None]


def _mark(found: re.Match[bytes]) -> bytes:
    return _MARK if found.lastgroup is None else _OTHER_MARK


def _value(text: str) -> float:
    plain = re.sub("[dDqQ]", "e", text)
    try:
        return float(plain)
    except ValueError:  # an exponent without a letter
        return math.nan


def _variation(ours: _Place, theirs: _Place) -> float | None:
    """The largest difference of two runs; None for a place that is not a result."""
    if max(ours.digits, theirs.digits) < LEAST_DIGITS:
        return None
    largest = 0.0
    for one, other in zip(ours.values, theirs.values, strict=True):
        apart = abs(one - other)
        if not apart <= MOST_RELATIVE * max(abs(one), abs(other)):
            return None
        largest = max(largest, apart)
    return largest


def _bound(place: _Place, largest: float) -> float | None:
    """The bound for values that differ by so much from run to run; None if they differ by too much
    for any bound that is narrow beside what the values go through.
    """
    finite = [abs(one) for one in place.values if math.isfinite(one)]
    if place.exponent is None or not finite:
        return None
    unit = 10.0 ** max(place.exponent, -300)
    values = [one for one in place.values if math.isfinite(one)]
    spread = max(values) - min(values)
    most = MOST_OF_SPREAD * (spread if spread >= _LEAST_UNITS * unit else max(finite))
    if largest > most:
        return None
    atol = min(max(TIMES_VARIATION * largest, PRINTED_UNITS * unit), most)
    short = float(f"{atol:.2g}")
    return short if largest <= short <= most else atol


def _rank(words: str) -> tuple[int, ...]:
    """How likely a line is to be a result: what people look at first."""
    lower = [one.lower() for one in _LETTERS.findall(words)]
    leading = [-sum(word == one for word in lower) for one in _LEADING]
    return (min(0, max(-3, sum(leading))), *leading[:2], len(lower))


def _proposal(
    kind: _Kind, number: int, atol: float, names: set[str], *, has_steps: bool
) -> Proposal | None:
    """What finds a number of lines of one kind: the words before it, else its column. has_steps:
    whether the first number of each line is its step.
    """
    place, spans = kind.places[number], [one.span() for one in _numbers(kind.example)]
    start, end = spans[number]
    before = kind.example[:start].decode("utf-8", "replace")
    counted = _COUNTED.search(kind.example)
    assert counted is not None
    first = counted.start()
    lead = " ".join(kind.example[:first].decode("utf-8", "replace").split())
    leading = _LETTERS.findall(lead)
    label = _label(kind.example, start)
    own = _LETTERS.findall(label)
    # What stands before it takes the place of as many words before the first number.
    letters = (leading[: max(0, len(leading) - len(own))] + own) or _LETTERS.findall(before)
    if len("".join(letters)) < 2:
        return None
    is_labelled = len("".join(own)) >= 2 and bool(lead)
    is_word = not before[-1:].strip() and not kind.example[end : end + 1].strip()
    if start != first and not is_labelled and not (is_word and lead):
        return None
    name = _free_name("_".join(one.lower() for one in letters[-4:]), names)
    begin, facts = f"^{_braced(lead)}", (atol, kind.count, place.digits)
    if start == first:
        return Proposal(name, f"{begin} {{{name}}}", None, *facts)
    if is_labelled:
        step = f" {{{_STEP}:int}}" if has_steps and spans[0][0] == first else ""
        return Proposal(name, f"{begin}{step} {{*}} {_braced(label)} {{{name}}}", None, *facts)
    return Proposal(name, begin, len(before.split()) + 1, *facts)


def _label(line: bytes, end: int) -> str:
    """The words between a number and what is counted before it; '' unless they are there once."""
    start = max((one.end() for one in _COUNTED.finditer(line) if one.end() <= end), default=0)
    rest = " ".join(line[start:].decode("utf-8", "replace").split())
    label = " ".join(_BEFORE_LETTERS.sub("", line[start:end].decode("utf-8", "replace")).split())
    return label if label and rest.count(label) == 1 else ""


def _braced(text: str) -> str:
    """The text as a template has it."""
    return text.replace("{", "{{").replace("}", "}}")


def _free_name(name: str, names: set[str]) -> str:
    number, free = 1, name
    while free in names:
        number += 1
        free = f"{name}_{number}"
    names.add(free)
    return free
