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
# How a number goes on: `1,234.5` and `1'234.5` are thousands, `1,5` is a fraction elsewhere, and
# `10^3`, `1.5 x 10^-3`, `1.5*^-3` and the like have an exponent. What stands before is not the
# number.
_TIMES = rb"[xX*]|\xc3\x97|\xd7|\xc2\xb7|\xb7|\xe2\x8b\x85"
_RAISED = rb"\xe2\x81[\xb0-\xbb]|\xc2[\xb2\xb3\xb9]|[\xb2\xb3\xb9]"
_POWER = rb"\^|\*\*|" + _RAISED
GOES_ON = re.compile(
    rb"[,'][0-9]|\*\^|(?:\^|\*\*)[+\-({]*[0-9]|"
    + _RAISED
    + rb"|%b*(?:%b)%b*10(?:%b)" % (WHITE, _TIMES, WHITE, _POWER)
)
# A number ends where neither a letter, a digit nor a second fraction follows, and does not go on.
NUMBER = re.compile(_NUMBER + rb"(?![A-Za-z0-9_]|\.[0-9]|%b)" % GOES_ON.pattern)
# A whole number that is no part of any other one: of what NUMBER takes, what WHOLE takes.
WHOLE_ALONE = WHOLE.pattern + rb"(?![A-Za-z0-9_.]|[+-][0-9]{3}(?![0-9])|%b)" % GOES_ON.pattern
# One behind which the template says what follows at once, as in `{x}eV` and `{x},{y}`.
GLUED_NUMBER = re.compile(_NUMBER + rb"(?![0-9]|\.[0-9])")
# Anywhere in a line: a number follows no letter, no digit, and is no group of thousands.
_APART = rb"(?<![A-Za-z0-9_.])(?<![0-9][,'])"
NEXT_NUMBER = re.compile(_APART + NUMBER.pattern)
NEXT_GLUED_NUMBER = re.compile(_APART + GLUED_NUMBER.pattern)

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
