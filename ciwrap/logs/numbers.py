"""Numbers as programs print them: one grammar, for logs and for tables.

A number is a word of its own, but for brackets and other closing signs beside it. What stands
beside it and could be a part of it (`1,234.5`, `10^3`, `1.5 x 10^-3`, `3-5`, `1:30`, `1/3`,
`1.5(3)`, `1.5eV`) makes it none, unless a template says what follows.
"""

from __future__ import annotations

import re

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
_END = (
    rb"(?![^ \t\r\f\v.,;:!?%)\]}>|\"'/(\[]|\.[^ \t\r\f\v]|[^ \t\r\f\vA-Za-z0-9_]+[0-9])"
    rb"(?!" + _MORE + rb")"
)
# White space, the start, or an opening sign; no sign behind a digit, and no uncertainty.
_BEGIN = (
    rb"(?<![^ \t\r\f\v=(\[{<|\"',;:])(?<![0-9][,;:'])"
    rb"(?<!\xc2\xb1 )(?<! \xb1 )(?<!\+/- )(?<!\+- )"
)
NUMBER = re.compile(_NUMBER + _END)
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


def minus_before(line: bytes, at: int) -> int | None:
    """Where the minus stands that white space parts from the number at `at`; None without one.

    Programs that fill up between sign and digits print such numbers, `-   1.5`.
    """
    before = line[:at].rstrip(b" \t\r\f\v")
    if len(before) == at:
        return None
    found = _LONE_MINUS.search(before, max(0, len(before) - _LONGEST_MINUS))
    return None if found is None else found.start()


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
