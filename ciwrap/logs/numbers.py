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
# it, `1..5` and `1~5` are ranges, `1;5` two numbers, and degrees with minutes an angle; an exponent
# may stand behind what `(1.5 +- 0.1)` encloses. What stands before is not the number. Where an
# uncertainty alone follows (`1.5+-0.1`, `1.5(1)`), it is.
_TIMES = (
    rb"[xX*]|\xc3\x97|\xd7|\xc2\xb7|\xb7|\xe2\x8b\x85|\xe2\x88[\x97\x99]|\xe2\xa8\xaf"
    rb"|\\times|\\cdot"
)
_RAISED = rb"\xe2\x81[\xb0-\xbb]|\xc2[\xb2\xb3\xb9]|[\xb2\xb3\xb9]"
_POWER = rb"\^|\*\*|" + _RAISED
_DASH = rb"\xe2\x88\x92|\xe2\x80[\x90-\x95]"
_FRACTION = rb"/|\xe2\x81\x84|\xe2\x88\x95"
_PART = rb"\xc2[\xbc-\xbe]|[\xbc-\xbe]|\xe2\x85[\x90-\x9e]"
_NO_BREAK = rb"\xc2\xa0|\xe2\x80[\x87\x89\xaf]|\xa0"
# Digits of other widths, below the line and of Arabic; what stands for `..` and `~`; full-width
# signs; what cannot be seen.
_DIGIT = rb"\xef\xbc[\x90-\x99]|\xe2\x82[\x80-\x89]|\xd9[\xa0-\xa9]|\xdb[\xb0-\xb9]"
_RANGE = rb"~|\xe2\x88\xbc|\xef\xbd\x9e|\xe3\x80\x9c|\xe2\x80[\xa4-\xa6]"
_WIDE = rb"\xef\xbc[\x8b-\x8f\x9a\x9b]"
_UNSEEN = rb"\xe2\x80[\x8b-\x8f]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\xc2\xad"
_BETWEEN = rb"(?:;|%b)" % rb"|".join((_RANGE, _WIDE, _UNSEEN))
_PLUS_MINUS = rb"\+/?-|\xc2\xb1|\xb1"
# No part of a number, and a reason why what follows it is not looked for behind it.
UNCERTAIN = re.compile(rb"(?:%b)\.?[0-9]" % _PLUS_MINUS)
_UNCERTAIN = rb"%b*(?:%b)%b*[0-9.]+" % (WHITE, _PLUS_MINUS, WHITE)
GOES_ON = re.compile(
    rb"[,':][0-9]|\*\^|(?:\^|\*\*)[+\-({]*[0-9]|%b|(?:%b)[0-9]{3}(?![0-9])"
    rb"|\.?(?:[+\-]|%b)\.?[0-9]|\.?\*\.?[0-9]|\.?#[A-Z]|(?:\xc2\xb7|\xd9\xab)[0-9]"
    rb"|(?:%b)[+\-]?\.?[0-9]|%b|\.\.+[0-9]|\xc2?\xb0[0-9]"
    rb"|(?:\([0-9]+\))?%b*(?:%b)%b*10(?:%b)|\([0-9]+\)[eEdDqQ][+-]?[0-9]|%b+[eEdDqQ][+-][0-9]"
    rb"|%b|%b[0-9]|(?:%b)?\)%b*(?:[eEdDqQ][+-]?[0-9]|(?:%b)%b*10(?:%b))"
    % (
        *(_RAISED, _NO_BREAK, _DASH, _FRACTION, _PART, WHITE, _TIMES, WHITE, _POWER, WHITE),
        *(_DIGIT, _BETWEEN, _UNCERTAIN, WHITE, _TIMES, WHITE, _POWER),
    )
)
# A number ends where neither a letter, a digit nor a second fraction follows, and does not go on.
NUMBER = re.compile(_NUMBER + rb"(?![A-Za-z0-9_]|\.[0-9]|%b)" % GOES_ON.pattern)
# A whole number that is no part of any other one: of what NUMBER takes, what WHOLE takes.
WHOLE_ALONE = WHOLE.pattern + rb"(?![A-Za-z0-9_.]|[+-][0-9]{3}(?![0-9])|%b)" % GOES_ON.pattern
# One behind which the template says what follows at once, as in `{x}eV` and `{x},{y}`.
GLUED_NUMBER = re.compile(_NUMBER + rb"(?![0-9]|\.[0-9])")
# Anywhere in a line: a number follows no letter, no digit, no sign, and is neither a group of
# thousands, nor an exponent, nor what is repeated, nor minutes, nor what divides another one, nor
# the end of a range, nor an uncertainty.
_APART = (
    rb"(?<![A-Za-z0-9_.+\-^])(?<![0-9][,':*/])(?<!\*\*)(?<![0-9]\xa0)(?<!\xe2\x88\x92)"
    rb"(?<!\xe2\x80[\x90-\x95])(?<![0-9]\xc2\xa0)(?<![0-9]\xe2\x80[\x87\x89\xaf])"
    rb"(?<![0-9]\xc2\xb7)(?<![0-9]\xd9\xab)(?<![0-9]\xe2\x81\x84)(?<![0-9]\xe2\x88\x95)"
    rb"(?<![0-9]\xb0)(?<![0-9]\xc2\xb0)(?<![0-9][;~])(?<!\xc2\xb1)(?<!\xc2\xb1 )(?<![ 0-9]\xb1)"
    rb"(?<![ 0-9]\xb1 )(?<!\+/)(?<!\+/- )(?<!\+- )(?<!\xef\xbc[\x8b-\x9b])(?<!\xe2\x82[\x80-\x89])"
    rb"(?<![0-9]\xe2\x88\xbc)(?<![0-9]\xef\xbd\x9e)(?<![0-9]\xe3\x80\x9c)(?<![0-9]\xe2\x80[\x8b-\x8f])"
    rb"(?<![0-9]\xe2\x80[\xa4-\xa6])(?<![0-9]\xe2\x81[\xa0-\xa4])(?<![0-9]\xef\xbb\xbf)(?<![0-9]\xc2\xad)"
)
NEXT_NUMBER = re.compile(_APART + NUMBER.pattern)
NEXT_GLUED_NUMBER = re.compile(_APART + GLUED_NUMBER.pattern)
# How a word begins that is a number, or means to be one.
_MEANS_NUMBER = re.compile(rb"(?:[+\-.]|%b)*(?:[0-9]|%b)" % (_DASH, _DIGIT))


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
