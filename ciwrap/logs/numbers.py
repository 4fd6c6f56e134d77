"""Numbers as programs print them: how to find one in a line, and how many digits it shows."""

from __future__ import annotations

import re

WHITE = rb"[ \t\r\f\v]"
WORD = re.compile(rb"[^ \t\r\f\v]+")
# What Fortran prints for a number that its field is too narrow for.
STARS = re.compile(rb"\*+(?![^ \t\r\f\v,;)\]])")
WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")

# No part of it can give back digits and match in another way, so it takes linear time.
_NUMBER = (
    rb"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eEdDqQ][+-]?[0-9]+|[+-][0-9]{3}(?![0-9]))?"
    rb"|(?i:nan|inf(?:inity)?))"
)
# How a number goes on: `1,234.5` and `1'234.5` are thousands, as are groups apart by a space that
# does not break; `1,5` is a fraction elsewhere; `10^3`, `1.5 x 10^-3`, `1.5*^-3`, `1.5(3)e-5`,
# `1.0+05` and the like have an exponent; `3-5` is a range, `1:30` a time, `3*0.5` are three
# numbers, and `1.#INF` is none; `1/3` is a fraction, so is 1 with a half in one character behind
# it, `1..5` is a range, and degrees with minutes an angle. What stands before is not the number.
_TIMES = rb"[xX*]|\xc3\x97|\xd7|\xc2\xb7|\xb7|\xe2\x8b\x85"
_RAISED = rb"\xe2\x81[\xb0-\xbb]|\xc2[\xb2\xb3\xb9]|[\xb2\xb3\xb9]"
_POWER = rb"\^|\*\*|" + _RAISED
_DASH = rb"\xe2\x88\x92|\xe2\x80[\x90-\x95]"
_FRACTION = rb"/|\xe2\x81\x84|\xe2\x88\x95"
_PART = rb"\xc2[\xbc-\xbe]|[\xbc-\xbe]|\xe2\x85[\x90-\x9e]"
_NO_BREAK = rb"\xc2\xa0|\xe2\x80[\x87\x89\xaf]|\xa0"
GOES_ON = re.compile(
    rb"[,':][0-9]|\*\^|(?:\^|\*\*)[+\-({]*[0-9]|%b|(?:%b)[0-9]{3}(?![0-9])"
    rb"|\.?(?:[+\-]|%b)\.?[0-9]|\.?\*\.?[0-9]|\.?#[A-Z]|(?:\xc2\xb7|\xd9\xab)[0-9]"
    rb"|(?:%b)[+\-]?\.?[0-9]|%b|\.\.+[0-9]|\xc2?\xb0[0-9]"
    rb"|(?:\([0-9]+\))?%b*(?:%b)%b*10(?:%b)|\([0-9]+\)[eEdDqQ][+-]?[0-9]|%b+[eEdDqQ][+-][0-9]"
    % (_RAISED, _NO_BREAK, _DASH, _FRACTION, _PART, WHITE, _TIMES, WHITE, _POWER, WHITE)
)
# A number ends where neither a letter, a digit nor a second fraction follows, and does not go on.
NUMBER = re.compile(_NUMBER + rb"(?![A-Za-z0-9_]|\.[0-9]|%b)" % GOES_ON.pattern)
# A whole number that is no part of any other one: of what NUMBER takes, what WHOLE takes.
WHOLE_ALONE = WHOLE.pattern + rb"(?![A-Za-z0-9_.]|[+-][0-9]{3}(?![0-9])|%b)" % GOES_ON.pattern
# One behind which the template says what follows at once, as in `{x}eV` and `{x},{y}`.
GLUED_NUMBER = re.compile(_NUMBER + rb"(?![0-9]|\.[0-9])")
# Anywhere in a line: a number follows no letter, no digit, no sign, and is neither a group of
# thousands, nor an exponent, nor what is repeated, nor minutes, nor what divides another one.
_APART = (
    rb"(?<![A-Za-z0-9_.+\-^])(?<![0-9][,':*/])(?<!\*\*)(?<![0-9]\xa0)(?<!\xe2\x88\x92)"
    rb"(?<!\xe2\x80[\x90-\x95])(?<![0-9]\xc2\xa0)(?<![0-9]\xe2\x80[\x87\x89\xaf])"
    rb"(?<![0-9]\xc2\xb7)(?<![0-9]\xd9\xab)(?<![0-9]\xe2\x81\x84)(?<![0-9]\xe2\x88\x95)"
    rb"(?<![0-9]\xb0)(?<![0-9]\xc2\xb0)"
)
NEXT_NUMBER = re.compile(_APART + NUMBER.pattern)
NEXT_GLUED_NUMBER = re.compile(_APART + GLUED_NUMBER.pattern)
# How a word begins that is a number, or means to be one.
_MEANS_NUMBER = re.compile(rb"(?:[+\-.]|%b)*[0-9]" % _DASH)


def means_number(word: bytes) -> bool:
    """Whether a word begins as numbers do, also one that its field was too narrow for."""
    return STARS.match(word) is not None or _MEANS_NUMBER.match(word) is not None


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
