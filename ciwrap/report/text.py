"""Words and numbers as all renderers write them; nothing from a file gets out unescaped."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ciwrap.model import RunResult, Verdict, number_text
from ciwrap.model.repeat_result import RepeatResult
from ciwrap.model.results import grouped_plural
from ciwrap.model.variable_result import Effect

# `1 variable`, `2,000 variables`.
plural = grouped_plural
_LONGEST_NAME = 200
# A share that is hardly more than 1 is not shown in digits.
LEAST_TOLD_SHARE = 1.005
# What doubles lose; and by how much smaller steps are than they would be by the book, so that
# nothing is missed: 87.5 % is meant.
_ROUNDING = 1e-9
_HAIR = 3e-6


def safe_text(text: object) -> str:
    """The text with control characters, escapes, line breaks, direction marks and surrogates made
    visible.

    Names come from files that others wrote: none of them may move the cursor or forge a line.
    """
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in plain
    )


def safe_name(text: object, longest: int = _LONGEST_NAME) -> str:
    """A name for one line: safe, and cut in the middle if it is very long."""
    safe = safe_text(text)
    if len(safe) <= longest:
        return safe
    half = (longest - 3) // 2
    return f"{safe[:half]}...{safe[-half:]}"


def name_in_text(name: str, longest: int = _LONGEST_NAME) -> str:
    """A variable's name within a sentence, between backticks: `new` is no word of it then, and the
    page shows it as code.
    """
    return f"`{safe_name(name, longest)}`"


def counts_words(counts: Mapping[Verdict, int]) -> str:
    """`1 not comparable, 3 differ`."""
    told = [(counts.get(one, 0), one.words) for one in Verdict.worst_first()]
    return ", ".join(f"{count:,} {words}" for count, words in told if count)


def capital(text: str) -> str:
    """As the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def index_text(index: Sequence[int]) -> str:
    """`[3, 17]`; `[]` is the one element of a 0-d array. With CIWRAP_INDICES=fortran also as
    Fortran counts: `[3, 17] = (18, 4) in Fortran`.
    """
    return f"[{', '.join(map(str, index))}]{in_fortran([(one, one) for one in index])}"


def in_fortran(ranges: Sequence[tuple[int, int]]) -> str:
    """What follows indices, or ranges of them, each with its last, for those who count as Fortran
    does: from 1, the first one fastest. Nothing if nobody asked.
    """
    if os.environ.get("CIWRAP_INDICES") != "fortran" or not ranges:
        return ""
    counted = [
        str(first + 1) if first == last else f"{first + 1}:{last + 1}"
        for first, last in reversed(ranges)
    ]
    return f" = ({', '.join(counted)}) in Fortran"


def axes_words(axes: Sequence[int]) -> str:
    """`axis 2`, `axes 0, 1 and 4`."""
    *others, last = map(str, axes)
    return f"axes {', '.join(others)} and {last}" if others else f"axis {last}"


def scale_ticks(low: float, high: float) -> tuple[str, str, str]:
    """The numbers at the ends and in the middle of a scale; what is next to 0 beside them is 0."""
    # Halved first: what lies between two huge numbers may be more than a double holds.
    reach = high / 2 - low / 2
    middle = low + reach
    if abs(middle) < 1e-3 * reach:
        middle = 0.0
    low, high = (0.0 if abs(end) < 1e-9 * reach else end for end in (low, high))
    ends = numbers_apart(low, middle, high)
    return ends[0], ends[1], ends[2]


def short_number(value: float) -> str:
    """Three significant digits: enough to judge by. `0.31`, `1.2e-7`, `4200`, `1e9`."""
    return _in_digits(value, 3)


def _in_digits(value: float, digits: int) -> str:
    shown = f"{value:.{digits}g}"
    if not math.isfinite(value) or 1e-4 <= abs(value) < 1e6:
        return number_text(float(shown))
    start, exponent, power = shown.partition("e")
    return f"{start}e{int(power)}" if exponent else start


def numbers_apart(*values: float) -> list[str]:
    """Numbers beside one another, such as the ends of a range: in three digits, or in as many as
    show how far they are apart to a hundredth: `-45123 to -45113`.
    """
    reach = max(values) / 2 - min(values) / 2
    for digits in range(3, 18):
        if all(abs(float(f"{one:.{digits}g}") - one) <= reach / 50 for one in values):
            break
    if digits == 3 or not math.isfinite(reach) or not reach:
        return [short_number(one) for one in values]
    return [_in_digits(one, digits) for one in values]


def size_text(size: float) -> str:
    """A difference, in three digits: one of two finite numbers is never infinite, but perhaps more
    than a double holds.
    """
    return "over 1.79e308" if math.isinf(size) else short_number(size)


def grouped_number(value: float) -> str:
    """As `short_number`, thousands apart: `16,600`."""
    text = short_number(value)
    return f"{int(text):,}" if text.isdecimal() else text


_DTYPE_NAMES = {"f": "float", "i": "int", "u": "uint", "c": "complex", "S": "bytes", "U": "str"}


def common_start(one: str, other: str) -> int:
    """How many characters two numbers begin with alike; 0 where they are no numbers of one size."""
    heads = [re.match(r"-?\d+(?=\.|$)", text) for text in (one, other)]
    sizes = {head.end() for head in heads if head}
    if None in heads or len(sizes) > 1 or "e" in one + other:
        return 0
    return first_apart(one, other)


def first_apart(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters, or lines, two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    shorter = min(len(one), len(other))
    return next((at for at, (left, right) in pairs if left != right), shorter)


def dtype_words(dtype: str | None) -> str:
    """`float64` for `<f8`, `big-endian int32` for `>i4`; other forms as they are."""
    if not dtype:
        return ""
    if dtype[1:] == "b1":
        return "bool"
    order, kind, size = dtype[:1], dtype[1:2], dtype[2:]
    if kind not in _DTYPE_NAMES or not size.isdecimal():
        return "bfloat16" if dtype[1:] == "bf2" else safe_text(dtype)
    bits = int(size) * 8 if kind in "fiuc" else int(size)
    return ("big-endian " if order == ">" else "") + f"{_DTYPE_NAMES[kind]}{bits}"


def share_text(share: float) -> str:
    """How much of an error bound something is: `31 % of the bound`, `42 x the bound`."""
    if math.isinf(share) or math.isnan(share):
        return "far beyond the bound"
    if share >= 10:
        return f"{grouped_number(share)} x the bound"
    if share > 1:
        is_told = share >= LEAST_TOLD_SHARE
        return f"{share:.2f} x the bound" if is_told else "just beyond the bound"
    return f"{percent_text(share)} of the bound"


def percent_text(share: float) -> str:
    """`0 %`, `< 0.1 %`, `31 %`, `87.5 %`; never rounded up to 100 %."""
    if share == 0:
        return "0 %"
    if share < 0.001:
        return "< 0.1 %"
    if share < 1 <= float(f"{share:.3g}"):
        return "99.9 %"
    return f"{short_number(100 * share)} %"


def at_most_text(share: float) -> str:
    """A share that something does not pass: `at most 31 %`, `less than 0.1 %`; three digits, of
    which the last is rounded up, unless it is off by the rounding of doubles alone.
    """
    shown = rounded_up(100 * share)
    if share < 0.001:
        return "less than 0.1 %" if share else "at most 0 %"
    if share < 1 <= shown / 100:
        return "less than 100 %"
    return f"at most {short_number(shown)} %"


def rounded_up(value: float) -> float:
    """What a size does not pass, in three digits."""
    shown = float(f"{value:.3g}")
    return float(f"{shown + _step(value):.3g}") if shown < value * (1 - _ROUNDING) else shown


def rounded_down(value: float) -> float:
    """What a size reaches at least, in three digits."""
    shown = float(f"{value:.3g}")
    return float(f"{shown - _step(value):.3g}") if shown > value * (1 + _HAIR) else shown


def _step(value: float) -> float:
    """One of the last of three digits. A document may claim that a size is below zero."""
    return 10.0 ** (math.floor(math.log10(abs(value))) - 2)


def bytes_text(count: int) -> str:
    """`512 bytes`, `1.5 KiB`, `2.0 MiB`."""
    if count < 1024:
        return plural(count, "byte")
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            break
    return f"{size:.1f} {unit}"


def seconds_text(seconds: float) -> str:
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


_Result = TypeVar("_Result", RunResult, RepeatResult)

# Compiled when it is first used, which takes a while.
_ABSOLUTE = r"(?<![\w/.:~$\u2026-])/(?:[^\s/'\"`:;,()\[\]<>|]+/)+[^\s'\"`:;,()\[\]<>|]*"
_PATH_FIELDS = ("golden_path", "source_path", "file", "working_dir", "folder")
# Of records within records.
_NESTED_FIELDS = ("checks", "variables", "messages", "command", "runs")
_TEXT_FIELDS = ("text", "reason", "command", "output_tail", "name", "problem", "headline")
# What everybody has, and nobody hides.
_PUBLIC = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/etc/", "/dev/", "/proc/")


def time_text(seconds: float) -> str:
    """With three digits, where that of other texts rounds to a tenth."""
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.2f} s" if seconds < 10 else seconds_text(seconds)


def relative_to(run: _Result, base: Path, begin: str = "") -> _Result:
    """The result with all paths below `base` as seen from there. begin: stands before each."""
    prefix = f"{base}/"

    def shorten(text: str, *, is_path: bool) -> str:
        if is_path and text == str(base):
            return begin or "."
        return text.replace(prefix, begin) if prefix != "//" else text

    found: _Result = _rewritten(run, shorten)
    return found


def portable(run: _Result) -> _Result:
    """The result with absolute paths cut to their last two parts: `.../run/x.npy`."""

    def shorten(text: str, *, is_path: bool) -> str:
        if is_path:
            return _short(text) if text.startswith("/") else text
        return portable_text(text)

    found: _Result = _rewritten(run, shorten)
    return found


def portable_text(text: str) -> str:
    """The text with absolute paths cut to their last two parts."""
    return re.sub(_ABSOLUTE, lambda match: _short(match[0]), text)


def _short(path: str) -> str:
    if path.startswith(_PUBLIC):
        return path
    parts = [part for part in PurePosixPath(path).parts if part != "/"]
    return "/".join(("...", *parts[-2:])) if parts else path


def _rewritten(item: Any, shorten: Callable[..., str]) -> Any:
    """The record with its paths shortened; the same one if none is. Large results have millions of
    fields, so each costs as little as can be.
    """
    changes: dict[str, Any] = {}
    paths, texts, nested = _plan(type(item))
    for name in paths:
        value = getattr(item, name)
        if value and "/" in value and (new := shorten(value, is_path=True)) != value:
            changes[name] = new
    for name in texts:
        value = getattr(item, name)
        if not isinstance(value, str) or "/" not in value:
            continue
        if (new := shorten(value, is_path=False)) != value:
            changes[name] = new
    for name in nested:
        value = getattr(item, name)
        if isinstance(value, tuple):
            parts = tuple([_rewritten(part, shorten) for part in value])
            if any(map(operator.is_not, parts, value)):
                changes[name] = parts
        elif isinstance(value, Struct) and (one := _rewritten(value, shorten)) is not value:
            changes[name] = one
    return replace(item, **changes) if changes else item


_Plan = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_plans: dict[Any, _Plan] = {}


def _plan(kind: Any) -> _Plan:
    """The fields of a record that are paths, that are texts, and that are records themselves."""
    known = _plans.get(kind)
    if known is None:
        found = (_PATH_FIELDS, _TEXT_FIELDS, _NESTED_FIELDS)
        paths, texts, nested = (
            tuple(name for name in kind.__struct_fields__ if name in some) for some in found
        )
        known = _plans[kind] = paths, texts, nested
    return known


def range_words(effect: Effect | None, value: float) -> str:
    """`12 % of the range`: of a difference; nothing where all golden values are equal."""
    reach = 0.0 if effect is None else effect.greatest - effect.least
    if not 0 < reach < math.inf:
        return ""
    share = abs(value) / reach
    if share < 10:
        return f"{percent_text(share)} of the range"
    return f"{grouped_number(float(f'{share:.2g}'))} times the range"


def beyond_text(share: float) -> str:
    """`16,600 x the bound`."""
    return f"{grouped_number(share)} x the bound" if share >= 10 else share_text(share)


# What the sides of a comparison are called.
GOLDEN_AND_NEW = ("golden", "new")
A_AND_B = ("A", "B")
