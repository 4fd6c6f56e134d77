"""Simple hypotheses on what one variable's differences have in common, tried on all of them.

Sign, factor, offset, type, fill value; wrong bits and bytes; and the bound that would have been
wide enough. Read first `explain`.
"""

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ciwrap.arrays.values import widen_bfloat16
from ciwrap.base.late import numpy as np
from ciwrap.explain.difference import (
    CLEAR,
    of_atol,
    of_period,
    of_rtol,
    on_most,
    value_apart,
    whole_or_short,
)
from ciwrap.explain.moved import MOVES, at_faces, in_a_stripe, moved_places
from ciwrap.model import two_digits_above
from ciwrap.model.variable_result import FAR_BEYOND, MOST_EXPLANATIONS, Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ciwrap.explain.difference import Difference

# Rounding turns the last bits.
_LEAST_BIT = 3
# Numbers of so few binary digits, such as 2.0 and 3.0, are often one bit apart by chance.
_ROUND_DIGITS = 10
# A number that is not just the golden's with a bit turned, since both have noise, has to be so many
# times nearer to it than to the golden's own; chance does that once in some ten thousand times.
_NEARER = 1e5


def byte_order(difference: Difference) -> Explanation | None:
    """The bytes of each number stand in the other order."""
    kind = difference.golden.dtype
    if kind.itemsize < 2 or kind.kind == "c":
        return None
    golden, new = _as_bits(difference)
    return on_most(difference, Cause.BYTE_ORDER, golden.byteswap() == new)


def one_bit(difference: Difference) -> Explanation | None:
    """The same bit of each number is another one, within what the bound leaves open; but for the
    sign, which is reported by its name, for the last bits, and for round differences.
    """
    kind = difference.golden.dtype
    if kind.kind != "f":
        return None
    golden, new = _as_bits(difference)
    below = (1 << (np.finfo(kind).nmant - _ROUND_DIGITS)) - 1 if kind.itemsize > 2 else 0
    if not np.any((golden | new) & golden.dtype.type(below)):
        return None
    sides = difference.sides
    with np.errstate(all="ignore"):
        if _are_round(sides[1] - sides[0]):
            return None
    slack = difference.slack(sides[0])
    bits = np.arange(_LEAST_BIT, 8 * kind.itemsize - 1, dtype=np.uint64)
    masks = (np.uint64(1) << bits).astype(golden.dtype)

    def explained_by(mask: Any, some: slice) -> NDArray[np.bool_]:
        turned = golden[some] ^ mask
        with np.errstate(invalid="ignore"):  # a signalling NaN
            values = turned.view(kind).astype(np.float64)
        found: NDArray[np.bool_] = _is_near(values, sides[0][some], sides[1][some], slack[some])
        # A bit of the exponent leaves numbers that are next to zero, but none that is zero.
        found &= sides[1][some] != 0
        found |= turned == new[some]
        return found

    # The first number alone tells nearly always which bits it is not.
    of_first = explained_by(masks, slice(1))
    for bit, mask in zip(bits[of_first].tolist(), masks[of_first], strict=True):
        found = on_most(difference, Cause.BIT_FLIPPED, explained_by(mask, slice(None)))
        if found is not None:
            part = "fraction" if bit < np.finfo(kind).nmant else "exponent"
            return replace(found, values=(float(bit),), words=part)
    return None


def _are_round(moved: NDArray[np.float64]) -> bool:
    """Whether the differences (the first hundred) are numbers of at most three digits: 1, or 0.25.
    That is what somebody added, though one bit says it as well.
    """
    return all(one == float(f"{one:.3g}") for one in moved[:100].tolist())


def _as_bits(difference: Difference) -> tuple[NDArray[Any], NDArray[Any]]:
    """Golden and new of the differing elements, as unsigned whole numbers."""
    kind = np.dtype(f"u{difference.golden.dtype.itemsize}")
    golden, new = (
        np.ascontiguousarray(side).reshape(-1)[difference.positions].view(kind)
        for side in (difference.golden, difference.new)
    )
    return golden, new


def _is_near(
    turned: NDArray[np.float64],
    golden: NDArray[np.float64],
    new: NDArray[np.float64],
    slack: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether new numbers are the turned ones, as far as the bound leaves that open, and far away
    from the golden's.
    """
    with np.errstate(all="ignore"):
        # What the golden is off by is scaled by a bit of the exponent, up and down: any number
        # next to zero lies within the bound of one that was turned into zero.
        wide = 2 * slack * np.abs(turned / golden)
        near = np.abs(turned - new) <= wide
        clear: NDArray[np.bool_] = np.abs(new - golden) > _NEARER * wide
        return near & clear & np.isfinite(turned)


# Factors between units and other things that have a name; each also the other way round. These are
# what they are to the last digit: 1000.1 is no unit prefix.
_EXACT_FACTORS = (
    (1e3, "a unit prefix"),
    (1e6, "a unit prefix"),
    (1e9, "a unit prefix"),
    (1e12, "a unit prefix"),
    (10.0, "nanometre and Angstrom, or centimetre and millimetre"),
    (100.0, "metre and centimetre, or percent"),
    (1e5, "bar and pascal"),
    (2.0, "counted twice, or diameter and radius"),
    (4.184, "calorie and joule"),
    (1.01325, "atmosphere and bar"),
    (101325.0, "atmosphere and pascal"),
    (9.80665, "kilogram-force and newton"),
    (3.6, "m/s and km/h"),
    (0.3048, "foot and metre"),
    (1.8, "Fahrenheit and kelvin"),
    (60.0, "minutes and seconds"),
    (3600.0, "hours and seconds"),
    (86400.0, "days and seconds"),
)
# These everybody rounds in another way.
_ROUNDED_FACTORS = (
    (180 / math.pi, "degree and radian"),
    (2 * math.pi, "angular and plain frequency"),
    (math.pi, "pi"),
    (math.sqrt(2), "the square root of 2"),
    (96.48533212, "electronvolt and kJ/mol"),
    (23.06054783, "electronvolt and kcal/mol"),
    (27.211386246, "hartree and electronvolt"),
    (0.529177210903, "bohr and Angstrom"),
    (2625.4996394799, "hartree and kJ/mol"),
    (627.5094740631, "hartree and kcal/mol"),
)
_SAME_FACTOR = 2e-4


def exact_factors() -> Iterator[tuple[float, str]]:
    """Factors that are known to the last digit, each both ways, and what they are called."""
    for factor, words in _EXACT_FACTORS:
        yield factor, words
        yield 1 / factor, words


_MOST_DIGITS = 15
_FEW_VALUES = 15
# The size of a box, as a share of the range that the values in it fill: least, most.
_ONE_WAY = (0.9, 2.0)
_BOTH_WAYS = (0.5, math.inf)
# Of numbers that were rounded some need one of the last three bits, and on average they lost a
# tenth of a step of their type: a quarter is to be expected.
_FILLED = 8
_LEAST_LOST = 0.1
# Mantissa bits of the shorter types, and what they are called.
_TYPES = ((23, "float32"), (10, "float16"), (7, "bfloat16"))


def by_value(difference: Difference) -> list[Explanation]:
    """The one hypothesis on values that holds on most of the elements."""
    found = [one for one in _hypotheses(difference) if one is not None]
    return sorted(found, key=lambda one: -one.held_count)[:1]


def _hypotheses(difference: Difference) -> Iterator[Explanation | None]:
    golden, new = difference.sides
    # Where both are NaN and one part of a complex number was none, the new one is NaN, too.
    if not np.isnan(golden).all():
        yield on_most(difference, Cause.ALL_NAN, np.isnan(new))
    yield on_most(difference, Cause.ALL_ZERO, new == 0)
    yield byte_order(difference)
    yield _less_precise(difference)
    if golden.dtype.kind != "c":
        yield _fill_value(difference, golden, new)
    if (np.isfinite(golden) & np.isfinite(new)).all():
        yield from _of_numbers(difference, golden, new)
    yield one_bit(difference)


def _of_numbers(
    difference: Difference, golden: NDArray[Any], new: NDArray[Any]
) -> Iterator[Explanation | None]:
    """The hypotheses on sides that are finite in each of the elements."""
    slack = difference.slack(golden)
    with np.errstate(all="ignore"):
        is_clear = float(np.median(np.abs(golden) / np.maximum(slack, 1e-300))) > CLEAR
        if is_clear:
            yield on_most(difference, Cause.SIGN_FLIPPED, np.abs(new + golden) <= 2 * slack)
        if golden.dtype.kind != "c":
            yield _periodic(difference, golden, new)
        if golden.dtype.kind != "c" and not _are_flags(difference):
            yield _offset(difference, golden, new, slack)
        yield _factor(difference, golden, new, slack)


def _are_flags(difference: Difference) -> bool:
    """Whether both sides are true or false, which nothing is added to."""
    sides = (difference.golden, difference.new)
    return sides[0].dtype.itemsize == 1 and all(
        bool(np.all((one == 0) | (one == 1))) for one in sides
    )


def _offset(
    difference: Difference,
    golden: NDArray[np.float64],
    new: NDArray[np.float64],
    slack: NDArray[np.float64],
) -> Explanation | None:
    moved = new - golden
    value = float(np.median(moved))
    # A sum is rounded as its own size has it, however small the golden number is.
    rounded = difference.spacing(new) / 2 + np.spacing(np.abs(moved))
    wide = np.maximum(2 * slack, rounded)

    def explained_by(value: float) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.abs(moved - value) <= wide
        return found

    is_clear = abs(value) > CLEAR * float(np.median(slack))
    if not is_clear or not difference.is_most(explained_by(value)):
        return None
    value = _shortest(value, explained_by)
    return difference.explained(Cause.CONSTANT_OFFSET, explained_by(value), values=(value,))


# An offset of so few digits is one that somebody added, if so many digits more would be seen of it.
_ROUND_OFFSET, _DIGITS_SEEN = 3, 4


def _round_offset(difference: Difference) -> Explanation | None:
    """A round number that was added to one or two elements, which are no round numbers themselves;
    of these every difference is.
    """
    kind = difference.golden.dtype
    if kind.kind != "f" or kind.itemsize < 4:
        return None
    golden, new = difference.sides
    with np.errstate(all="ignore"):
        moved = new - golden
    if not np.isfinite(moved).all():
        return None
    value = float(f"{moved[0]:.{_ROUND_OFFSET}g}")
    wide = difference.spacing(golden) / 2 + difference.spacing(new) / 2
    # The unit of its last digit, and the last digit that either side shows.
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - _ROUND_OFFSET + 1) if value else 0.0
    is_seen = unit > 10.0**_DIGITS_SEEN * float(wide.max())
    own = np.abs(golden / unit - np.rint(golden / unit)) * unit if unit else np.zeros(1)
    if not is_seen or np.any(own <= 10.0 * wide):
        return None
    return on_most(difference, Cause.CONSTANT_OFFSET, np.abs(moved - value) <= wide, value)


def _shortest(value: float, explained_by: Callable[[float], NDArray[np.bool_]]) -> float:
    """The number of the fewest digits that holds on as many elements: the last ones of a median say
    no more than which elements there are.
    """
    least = np.count_nonzero(explained_by(value))
    short = (float(f"{value:.{digits}g}") for digits in range(1, _MOST_DIGITS + 1))
    return next((one for one in short if np.count_nonzero(explained_by(one)) >= least), value)


def _factor(
    difference: Difference,
    golden: NDArray[Any],
    new: NDArray[Any],
    slack: NDArray[np.float64],
) -> Explanation | None:
    size = float(np.max(np.abs(golden)))
    is_complex = golden.dtype.kind == "c"
    spread = np.ptp(golden.real) + np.ptp(golden.imag) if is_complex else np.ptp(np.abs(golden))
    if size == 0 or spread <= CLEAR * float(np.median(slack)):
        return None  # of equal numbers a factor cannot be told from an offset
    if is_complex:
        value: float | complex
        ratio = np.vdot(golden / size, new) / np.vdot(golden / size, golden)
        value = complex(ratio) if abs(ratio.imag) > 1e-6 * abs(ratio) else float(ratio.real)
    else:
        large = np.abs(golden) >= float(np.median(np.abs(golden)))
        value = float(np.median(new[large] / golden[large]))
    if not math.isfinite(abs(value)) or value in (0.0, 1.0):
        return None
    width = 2 * slack * max(1.0, abs(value))

    def explained_by(value: float | complex) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.abs(new - value * golden) <= width
        return found

    clear = np.median(abs(value - 1) * np.abs(golden)) > CLEAR * np.median(slack)
    if not clear or not difference.is_most(explained_by(value)):
        return None
    words: str | None = None
    if isinstance(value, float):
        value = _shortest(value, explained_by)
        words = _factor_words(value, lambda known: difference.is_most(explained_by(known)))
    elif abs(abs(value) - 1) <= _SAME_FACTOR:
        words = f"a turn of the phase by {cmath.phase(value):.3g}"
    return difference.explained(
        Cause.CONSTANT_FACTOR,
        explained_by(value),
        values=(value,) if isinstance(value, float) else (value.real, value.imag),
        words=words,
    )


def _factor_words(value: float, holds: Callable[[float], bool]) -> str | None:
    """What the factor is called. holds: whether another one is as right of the elements."""
    for factor, words in (*_EXACT_FACTORS, *_ROUNDED_FACTORS):
        for known in (factor, 1 / factor):
            if abs(abs(value) / known - 1) > _SAME_FACTOR:
                continue
            if (factor, words) in _ROUNDED_FACTORS or holds(math.copysign(known, value)):
                return words
    return None


def _fill_value(
    difference: Difference, golden: NDArray[np.float64], new: NDArray[np.float64]
) -> Explanation | None:
    """One number on one side in each of them, beyond all other numbers there are."""
    every = np.concatenate([difference.golden.reshape(-1), difference.new.reshape(-1)])
    every = every[np.isfinite(every)].astype(np.float64)
    for values, others, on_golden in ((new, golden, False), (golden, new, True)):
        finite = values[np.isfinite(values)]
        if not finite.size:
            continue
        # One of the numbers: the mean of the two in the middle may be past the largest there is.
        value = float(np.partition(finite, finite.size // 2)[finite.size // 2])
        held = values == value
        rest = np.abs(every[every != value])
        is_beyond = rest.size > 0 and abs(value) > 2 * float(rest.max())
        # From one number to another is an offset.
        is_beyond = is_beyond and bool(np.any(others != others[0]))
        if value != 0 and is_beyond and difference.is_most(held):
            side = difference.golden if on_golden else difference.new
            number = side.reshape(-1)[difference.positions[np.argmax(held)]]
            exact = int(number) if number.dtype.kind in "iu" else value
            # Missing on one side alone is a difference, so no `fill_values` would make it match.
            return difference.explained(
                Cause.FILL_VALUE,
                held,
                values=(value,),
                on_golden=on_golden,
                words=None if exact == value else str(exact),  # the digits of what no double is
            )
    return None


def _less_precise(difference: Difference) -> Explanation | None:
    """One side is what is left of the other in a shorter type."""
    kind = difference.golden.dtype
    if kind.kind != "f":
        return None
    golden, new = difference.sides
    own = np.finfo(kind).nmant
    for bits, name in _TYPES:
        if bits >= own:
            continue
        for one, other, on_golden in ((golden, new, False), (new, golden, True)):
            held = np.isfinite(one) & (_rounded(one, name) == other)
            if difference.is_most(held) and _are_rounded(other[held], one[held], bits):
                # Below its normal numbers the shorter type has fewer digits.
                rtol = two_digits_above(2.0 ** -(bits + 1))
                return difference.explained(
                    Cause.LESS_PRECISE,
                    held,
                    on_golden=on_golden,
                    words=name,
                    remedy=of_rtol(difference, rtol, held),
                )
    return None


def _are_rounded(short: NDArray[np.float64], whole: NDArray[np.float64], bits: int) -> bool:
    """Whether numbers look as if they had lost digits: counts and other round numbers with noise
    beside them are what it rounds to, too, but fill a type of so few bits neither in their own
    digits nor in what they are off by.
    """
    with np.errstate(all="ignore"):
        fraction, exponent = np.frexp(short)
        digits = np.abs(np.ldexp(fraction, bits + 1))
        is_filled = bool(np.any(digits % _FILLED))
        step = np.ldexp(1.0, exponent - (bits + 1))
        return is_filled and bool(np.mean(np.abs(whole - short) / step) >= _LEAST_LOST)


def _rounded(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        if name != "bfloat16":
            return values.astype(name).astype(np.float64)
        bits = values.astype(np.float32).view(np.uint32)
        upper = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return widen_bfloat16(upper).astype(np.float64)


def _periodic(
    difference: Difference, golden: NDArray[np.float64], new: NDArray[np.float64]
) -> Explanation | None:
    """All differences are whole numbers of the size of a box that the values fill.

    The last axis counts the components, each with a period of its own, if there are two or three.
    """
    shape = difference.golden.shape
    components = shape[-1] if len(shape) > 1 and shape[-1] in (2, 3) else 1
    moved, slack = new - golden, 2 * difference.slack(golden)
    held = np.zeros(moved.shape, dtype=np.bool_)
    periods: list[float] = []
    is_known = False
    for component in range(components):
        mine = difference.positions % components == component
        every = difference.golden.reshape(-1)[component::components].astype(np.float64)
        period = _wrapped_by(moved[mine], every[np.isfinite(every)])
        if not period:
            periods.append(0.0)
            continue
        is_known = is_known or period > CLEAR * float(np.median(slack))
        periods.append(_known_period(period, moved[mine], slack[mine]))
        held[mine] = _turned(moved[mine], slack[mine], periods[-1])
    if not is_known or not difference.is_most(held):
        return None
    said = [whole_or_short(one) for one in periods]
    shown = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return difference.explained(
        Cause.PERIODIC_IMAGE,
        held,
        values=tuple(periods),
        remedy=of_period(difference, periods, shown, held),
    )


def _wrapped_by(moved: NDArray[np.float64], every: NDArray[np.float64]) -> float:
    """The size of the box that values may have crossed an edge of; 0 if they cannot have.

    moved: by how much each element that differs did. every: all elements of the golden.
    """
    # Where all elements moved the same way, it is an offset. Flags and the like lie on no circle:
    # between few values, many steps are equal.
    is_some = 0 < moved.size < every.size
    if not is_some or np.unique(every).size <= min(_FEW_VALUES, every.size // 2):
        return 0.0
    period, filled = float(np.median(np.abs(moved))), float(np.ptp(every))
    is_one_way = (moved > 0).all() or (moved < 0).all()
    # Where all of them moved the same way, an offset of some rows is as likely, unless it is by
    # just the size of what the values fill.
    least, most = _ONE_WAY if is_one_way else _BOTH_WAYS
    return period if least * filled <= period <= most * filled else 0.0


def _turned(
    moved: NDArray[np.float64], slack: NDArray[np.float64], period: float
) -> NDArray[np.bool_]:
    """Which elements moved by whole periods, within what the bound leaves open."""
    turns = np.rint(moved / period)
    found: NDArray[np.bool_] = (np.abs(moved - turns * period) <= slack) & (turns != 0)
    return found


def _known_period(value: float, moved: NDArray[np.float64], slack: NDArray[np.float64]) -> float:
    """The period that people would write, if it holds on as many elements."""
    least = np.count_nonzero(_turned(moved, slack, value))
    for known in (2 * math.pi, math.pi, 360.0, 180.0, float(f"{value:.6g}")):
        is_near = abs(value / known - 1) <= 1e-6
        if is_near and np.count_nonzero(_turned(moved, slack, known)) >= least:
            return known
    return value


# So many chunks, and this share of them, have to agree.
_FEWEST_MEANS, _MOST_MEANS = 3, 0.8


def by_means(
    golden: NDArray[np.float64], new: NDArray[np.float64], slack: float
) -> tuple[Explanation, ...]:
    """What the means of suspect chunks have in common: an offset, a sign or a factor, if it is
    clearly more than what each mean leaves open, which is `slack`.
    """
    known = np.isfinite(golden) & np.isfinite(new)
    golden, new = golden[known], new[known]
    if golden.size < _FEWEST_MEANS:
        return ()
    clear = 10 * slack
    offset = float(np.median(new - golden))
    far = np.abs(golden) > clear
    factor = float(np.median(new[far] / golden[far])) if far.any() else 1.0
    # The same factor of numbers that are next to equal is an offset.
    is_varied = far.sum() >= _FEWEST_MEANS and np.ptp(golden[far]) > 100 * slack
    rounded = slack + np.abs(golden) * 1e-12
    tried = [
        (Cause.CONSTANT_OFFSET, (offset,), golden + offset, abs(offset) > clear),
        (Cause.SIGN_FLIPPED, (), -golden, is_varied),
        (Cause.CONSTANT_FACTOR, (factor,), golden * factor, is_varied and abs(factor) > 1e-6),
    ]
    for cause, values, wanted, is_clear in tried:
        held = np.abs(new - wanted) <= 2 * rounded * max(1.0, abs(factor))
        moved = np.abs(new - golden) > clear
        count = int((held & moved).sum())
        if is_clear and count >= max(_FEWEST_MEANS, _MOST_MEANS * known.size):
            return (Explanation(cause, count, int(known.size), values=values, of_means=True),)
    return ()


# A value that moved by more than this share of itself has moved visibly, and no bound may hide that
# but of values next to zero; nor is a bound offered beyond this share of what the values span.
_MODEST = 1e-3
# Noise of rounding that has added up: a share of the largest value between the spacing of numbers
# and its root.
_NOISE_POWER = 0.75


def by_bound(difference: Difference) -> list[Explanation]:
    """The least atol, beside the rtol that is, under which all elements would have passed; none
    where it would hide that something is far beyond the bound or has moved visibly, or that is not
    small beside what the values span. A value is next to zero if rtol allows as much of the largest
    one, or rounding makes as much.
    """
    parameters = difference.parameters
    if difference.golden.dtype.kind not in "fc" or parameters.ulps:
        return []
    golden, new = difference.sides
    finite = np.isfinite(golden) & np.isfinite(new)
    # Missing equals missing only, whatever the bound.
    missing = np.isin(golden, parameters.fill_values) | np.isin(new, parameters.fill_values)
    if not finite.all() or missing.any():
        return []
    with np.errstate(all="ignore"):
        moved, open_ = _parts(new - golden), parameters.rtol * _least(golden)
        # What doubles may have lost of the difference and of what rtol allows.
        lost = np.spacing(np.maximum(moved, open_))
        beyond = moved - open_ + 2 * lost
        needed = float(np.max(beyond))
        is_far = bool(np.any(moved > FAR_BEYOND * (parameters.atol + open_)))
        largest, span = _largest_and_span(difference.golden)
        noise = float(np.finfo(difference.golden.dtype).eps) ** _NOISE_POWER
        floor = max(parameters.rtol, noise) * largest
        near = (np.abs(golden) <= floor) & (moved <= floor)
        has_moved = bool(np.any(~near & (beyond > _MODEST * np.abs(golden))))
    atol = two_digits_above(needed) if needed > 0 else math.inf
    if not math.isfinite(atol):
        return []
    is_near = bool(near.all())
    if is_far and not is_near and parameters.kind != "exact":
        return []
    if has_moved or (not is_near and needed > _MODEST * span):
        return []
    return [
        Explanation(
            Cause.NEAR_ZERO if is_near else Cause.WIDER_BOUND,
            difference.count,
            difference.count,
            values=(atol,),
            words="rtol as it is" if parameters.rtol else None,
            remedy=of_atol(atol, parameters.rtol),
        )
    ]


def _largest_and_span(golden: NDArray[Any]) -> tuple[float, float]:
    """The largest |value|, and how far values are apart at most, or from 0 if they all are equal;
    without one that stands apart from all others, as a fill value does.
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN
        values = golden.reshape(-1)
        parts = [values.real, values.imag] if values.dtype.kind == "c" else [values]
        sizes = np.abs(values).astype(np.float64)
        apart = value_apart(sizes)
        is_kept = np.isfinite(sizes)
        if apart is not None:
            is_kept &= sizes != apart[0]
        if not is_kept.any():
            return 0.0, 0.0
        spans = [float(np.ptp(part[is_kept].astype(np.float64))) for part in parts]
        largest = float(sizes[is_kept].max())
    return largest, max(spans) or largest


def _parts(moved: NDArray[Any]) -> NDArray[np.float64]:
    """|difference|; of complex numbers, of the part that moved most."""
    size: NDArray[np.float64] = np.maximum(np.abs(moved.real), np.abs(moved.imag))
    return size


def _least(golden: NDArray[Any]) -> NDArray[np.float64]:
    """What rtol is relative to; of complex numbers the smaller part, so that nothing is promised
    that does not hold.
    """
    size: NDArray[np.float64] = np.abs(golden.real)
    if golden.dtype.kind == "c":
        size = np.minimum(size, np.abs(golden.imag))
    return size


# One or two elements have something in common by chance.
_FEWEST = 3


def explain(difference: Difference) -> tuple[Explanation, ...]:
    """What the differing elements have in common, the most telling first; at most a few."""
    found: list[Explanation] = []
    if difference.count >= _FEWEST:
        found += _one_kind(moved_places(difference), by_value(difference))
        faces = at_faces(difference)
        is_moved = bool(found) and found[0].cause in MOVES
        if is_moved and faces and faces[0].words:
            # Values of one row that were copied from the next one are no shifted array.
            found = [*faces, *found]
        elif not is_moved:
            found += faces or in_a_stripe(difference)
    else:
        found += [one for one in (_round_offset(difference), one_bit(difference)) if one][:1]
    found += by_bound(difference)
    return tuple(found[:MOST_EXPLANATIONS])


def _one_kind(moves: list[Explanation], values: list[Explanation]) -> list[Explanation]:
    """Those that hold on more elements: a number that stands elsewhere needs no word on what it was
    turned into. Of numbers with a slope, 2 more is two rows further, but for the ends.
    """
    held = [max((one.held_count for one in kind), default=0) for kind in (moves, values)]
    return moves if held[0] > held[1] else values
