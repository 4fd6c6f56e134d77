"""Templates of lines: literal text with places for numbers and words.

`E= {energy} Ha {*} step {n:int}`: all characters stand for themselves but white space, which means
any white space or none, `{name}` (a number), `{name:int}`, `{name:text}` (one word), `{*}`
(whatever comes), `^` at the start (the start of the line) and `{$}` at the end (its end). `{{` and
`}}` are braces. A template
matches a line that it is found in; its parts are looked for from left to right, each at the first
place where it fits, so that matching takes time in proportion to the line.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from ciwrap.logs.found import Field, Found, Match, Problem, minus_apart, no_number
from ciwrap.logs.numbers import (
    MINUS_APART,
    NEXT_NUMBER,
    NEXT_SAID_NUMBER,
    NUMBER,
    SAID_NUMBER,
    STARS,
    WHITE,
    WHOLE,
    WORD,
    end_of_more,
    means_number,
)
from ciwrap.model.forms import FormError, cut
from ciwrap.structs import Struct

KINDS = ("number", "int", "text")
MOST_CHARACTERS = 2000
# So often may a part of a template begin in a line without fitting there.
MOST_ATTEMPTS = 200
_END = "{$}"
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

    def search(self, line: bytes, at: int, found: list[Found], *, is_anchored: bool) -> Match | int:
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

    def _follow(self, line: bytes, at: int, found: list[Found]) -> int | Problem | None:
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
            found.append(Found(step.field, at, end))
            at = end
            if step.after is not None:
                after = step.after.match(line, at)
                if after is None:
                    is_damaged = self._is_damaged(step, line, found[-1])
                    return _problem(step, line, found[-1].start) if is_damaged else None
                at = after.end()
        return None if self._is_last and line[at:].strip() else at

    def _is_damaged(self, step: _Step, line: bytes, found: Found) -> bool:
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
        is_ended = text.rstrip().endswith(_END)
        text = text.rstrip().removesuffix(_END) if is_ended else text
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
        found: list[Found] = []
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
