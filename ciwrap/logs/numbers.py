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
# How a number goes on: `1,234.5` and `1'234.5` are thousands; `1,5` is a fraction elsewhere;
# `10^3`, `1.5 x 10^-3`, `1.5*^-3`, `1.5(3)e-5`, `1.0+05` and the like have an exponent; `3-5` is a
# range, `1:30` a time, `3*0.5` are three numbers, `1.5 + 2.5im` is complex, and `1.#INF` is none;
# `1/3` is a fraction, so is 1 with a half in one character behind it, `1..5` and `1~5` are ranges,
# `1;5` two numbers; an exponent may stand behind what `(1.5 +- 0.1)` encloses. What stands before
# is not the number. Where an uncertainty alone follows (`1.5+-0.1`, `1.5(1)`), it is.
_TIMES = (
    rb"[xX*]|\xc3\x97|\xd7|\xc2\xb7|\xb7|\xe2\x8b\x85|\xe2\x88[\x97\x99]|\xe2\xa8\xaf"
    rb"|\\times|\\cdot"
)
_RAISED = rb"\xe2\x81[\xb0-\xbb]|\xc2[\xb2\xb3\xb9]|[\xb2\xb3\xb9]"
_POWER = rb"\^|\*\*|" + _RAISED
_DASH = rb"\xe2\x88\x92|\xe2\x80[\x90-\x95]"
_PART = rb"\xc2[\xbc-\xbe]|[\xbc-\xbe]|\xe2\x85[\x90-\x9e]"
# Digits of other widths, below the line and of Arabic.
_DIGIT = rb"\xef\xbc[\x90-\x99]|\xe2\x82[\x80-\x89]|\xd9[\xa0-\xa9]|\xdb[\xb0-\xb9]"
_PLUS_MINUS = rb"\+/?-|\xc2\xb1|\xb1"
# One character that is not of ASCII between two digits, in UTF-8 or of one byte: whatever it is (a
# space that does not break, a quote of thousands, a dash, a fraction, a sign of degrees, full-width
# signs, what cannot be seen), none of the two is known to be a number by itself.
_BETWEEN = (
    rb"(?!\xc2?\xb1)(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"
    rb"|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff])"
)
# What terminals obey: colours, and going back.
_CONTROL = rb"\x1b\[[0-9;?]*[A-Za-z]|\x08"
# What a number that was taken in part leaves behind it, if what it leaves makes it another one.
EXPONENT = re.compile(rb"[0-9]*\.?[0-9]*(?:[eEdDqQ][+-]?[0-9]+|[+-][0-9]{3}(?![0-9]))")
# No part of a number, and a reason why what follows it is not looked for behind it.
UNCERTAIN = re.compile(rb"(?:%b)\.?[0-9]" % _PLUS_MINUS)
_UNCERTAIN = rb"%b*(?:%b)%b*[0-9.]+" % (WHITE, _PLUS_MINUS, WHITE)
_IMAGINARY = rb"%b+[+\-]%b+[0-9.]+(?:[eEdD][+-]?[0-9]+)?(?:im?|j)(?![A-Za-z0-9_])" % (WHITE, WHITE)
GOES_ON = re.compile(
    rb"[,':][0-9]|\*\^|(?:\^|\*\*)[+\-({]*[0-9]|%b"
    rb"|\.?[+\-]\.?[0-9]|\.?\*\.?[0-9]|\.?#[A-Z]|/[+\-]?\.?[0-9]"
    rb"|\.?(?:%b|(?:%b)+)[+\-]?\.?[0-9]|%b|\.\.+[0-9]|[;~][0-9]"
    rb"|(?:\([0-9]+\))?%b*(?:%b)%b*10(?:%b)|\([0-9]+\)[eEdDqQ][+-]?[0-9]|%b+[eEdDqQ][+-][0-9]"
    rb"|%b|%b|(?:%b)?\)%b*(?:[eEdDqQ][+-]?[0-9]|(?:%b)%b*10(?:%b))"
    % (
        *(_RAISED, _BETWEEN, _CONTROL, _PART, WHITE, _TIMES, WHITE, _POWER, WHITE),
        *(_DIGIT, _IMAGINARY, _UNCERTAIN, WHITE, _TIMES, WHITE, _POWER),
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
# the end of a range, nor an uncertainty, nor what one went back to write.
_APART = (
    rb"(?<![A-Za-z0-9_.+\-^\x08])(?<![0-9][,':*/;~])(?<!\*\*)(?<![0-9][\x80-\xff])"
    rb"(?<![0-9][\x80-\xff]{2})(?<![0-9][\x80-\xff]{3})(?<![0-9][\x80-\xff]{4})"
    rb"(?<!\xe2\x88\x92)(?<!\xe2\x80[\x90-\x95])(?<!\xc2\xb1)(?<!\xc2\xb1 )(?<![ 0-9]\xb1)"
    rb"(?<![ 0-9]\xb1 )(?<!\+/)(?<!\+/- )(?<!\+- )(?<!\xef\xbc[\x8b-\x9b])(?<!\xe2\x82[\x80-\x89])"
)
NEXT_NUMBER = re.compile(_APART + NUMBER.pattern)
NEXT_GLUED_NUMBER = re.compile(_APART + GLUED_NUMBER.pattern)
# How a word begins that is a number, or means to be one, also in colour.
_MEANS_NUMBER = re.compile(rb"(?:[+\-.]|%b|%b)*(?:[0-9]|%b)" % (_DASH, _CONTROL, _DIGIT))
_MINUS = rb"(?:-|\xe2\x88\x92)"
_LONE_MINUS = re.compile(rb"(?:\A|(?<=%b))%b\Z" % (WHITE, _MINUS))
_LONGEST_MINUS = 3  # bytes
MINUS_APART = re.compile(rb"%b%b+" % (_MINUS, WHITE))


def means_number(word: bytes) -> bool:
    """Whether a word begins as numbers do, also one that its field was too narrow for."""
    return STARS.match(word) is not None or _MEANS_NUMBER.match(word) is not None


def end_of_more(line: bytes, at: int) -> int | None:
    """Where the word ends that a number which seems to end at `at` goes on to; None if it ends."""
    more = GOES_ON.match(line, at)
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
