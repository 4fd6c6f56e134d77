"""What differing elements have in common, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from ciwrap.model import VariableResult, number_text
from ciwrap.model.variable_result import Cause, Explanation
from ciwrap.report.place_words import is_the_same_cause, of_the_first
from ciwrap.report.text import (
    GOLDEN_AND_NEW,
    at_most_text,
    index_text,
    name_in_text,
    percent_text,
    plural,
    rounded_down,
    safe_name,
    share_text,
    short_number,
    size_text,
)


def cause_lines(variable: VariableResult, sides: tuple[str, str]) -> Iterator[str]:
    """What differing elements have in common, and the line of ciwrap.yaml that would help."""
    for one in variable.explanations:
        when = remedy_words(one)
        help_ = f"; {when}: {safe_name(one.remedy)}" if one.remedy else ""
        yield f"{cause_words(one, sides, variable.name)}{help_}"


# In a cell of the table of variables.
_NAMES = {
    Cause.SIGN_FLIPPED: "sign flipped",
    Cause.CONSTANT_OFFSET: "constant offset",
    Cause.CONSTANT_FACTOR: "constant factor",
    Cause.ALL_ZERO: "zero",
    Cause.ALL_NAN: "NaN",
    Cause.FILL_VALUE: "fill value",
    Cause.LESS_PRECISE: "less precise",
    Cause.BIT_FLIPPED: "one bit flipped",
    Cause.BYTE_ORDER: "byte order",
    Cause.PERIODIC_IMAGE: "periodic image",
    Cause.SHIFTED: "shifted",
    Cause.TRANSPOSED: "transposed",
    Cause.COLUMNS_FIRST: "columns first",
    Cause.EXCHANGED: "components exchanged",
    Cause.OTHER_ORDER: "other order of rows",
    Cause.OTHER_ITERATION: "other iteration",
    Cause.SWAPPED: "swapped",
    Cause.GROWS: "grows",
    Cause.STOPPED: "not written any more",
    Cause.ONE_RANK: "one rank",
    Cause.ACROSS_RANKS: "cut among the ranks in another way",
    Cause.STRIPE: "one thread's rows",
    Cause.BOUNDARY: "at the boundary",
    Cause.NEAR_ZERO: "next to zero",
    Cause.WIDER_BOUND: "",
}


def cause_name(one: Explanation) -> str:
    """`sign flipped`, `factor 1000`; nothing for what is no cause."""
    name = _NAMES[one.cause]
    if one.cause is Cause.LESS_PRECISE and one.words:
        return f"rounded to {safe_name(one.words)}"
    if one.cause is Cause.BOUNDARY and one.words:
        return safe_name(one.words)
    if one.values and one.cause in (Cause.CONSTANT_FACTOR, Cause.CONSTANT_OFFSET):
        return f"{name.removeprefix('constant ')} {_value_words(one)}"
    return name


def first_cause(bad: Sequence[VariableResult]) -> str:
    """`sign flipped`: what the first one has in common, and of which one if not of all."""
    name = next((name for one in bad[0].explanations if (name := cause_name(one))), "")
    return name if not name or is_the_same_cause(bad[0], bad) else of_the_first(bad[0], bad, name)


def cause_words(one: Explanation, sides: tuple[str, str], name: str) -> str:
    """`in all 12 values that differ, the sign is flipped: new = -golden`; how many, where it is not
    all of them. name: of the variable.
    """
    if one.cause in _WHOLE_SENTENCES:
        return _WHOLE_SENTENCES[one.cause](one, sides, name)
    if one.cause is Cause.BOUNDARY and one.words:
        return f"all in {safe_name(one.words)}, at the boundary of axis {one.axes[0]}"
    if one.cause is Cause.ALL_NAN and one.words is not None:
        inside = f", all within {safe_name(one.words)}" if one.words else ""
        return f"{plural(one.held_count, 'value')} became NaN{inside}"
    if one.cause in (Cause.BOUNDARY, Cause.STRIPE):
        return f"all {_cause_words(one, *sides)}"
    is_whole = one.held_count >= one.differing_count
    if is_whole and one.cause in _OF_THE_ARRAY:
        return _cause_words(one, *sides)
    return f"{_which_words(one, is_whole=is_whole)}, {_cause_words(one, *sides)}"


def _which_words(one: Explanation, *, is_whole: bool) -> str:
    """On how many values, or means of blocks, it was seen."""
    count = f"{one.differing_count:,}"
    which = f"all {count}" if is_whole else f"{one.held_count:,} of {count}"
    if one.of_means:
        return f"in the means of {which} blocks that may differ, to within the bound"
    if one.of_residues:
        return f"by the golden's residues, in {which} values of the blocks that may differ"
    if one.differing_count == 1:
        return "in the one value that differs"
    return f"in {which} values that differ{_unexplained_words(one)}"


def _unexplained_words(one: Explanation) -> str:
    """` (the other 2 lie between [0, 3] and [5, 9])`; nothing where that is not known."""
    if one.unexplained is None:
        return ""
    first, last = map(index_text, (one.unexplained.first_index, one.unexplained.last_index))
    if first == last:
        return f" (the other one is at {first})"
    return f" (the other {one.differing_count - one.held_count:,} lie between {first} and {last})"


def _one_rank_words(one: Explanation) -> str:
    rank, count = one.values
    return f"of {count:.0f} ranks only rank {rank:.0f} differs"


def _passing_words(one: Explanation) -> str:
    """The bound under which the variable would match, in all checkpoints."""
    beside = f" ({safe_name(one.words)})" if one.words else ""
    return f"all of this variable would match with atol={short_number(one.values[0])}{beside}"


def remedy_words(one: Explanation) -> str:
    """When the line of configuration is right, in a few words; nothing if there is none."""
    return {
        Cause.PERIODIC_IMAGE: "if the values lie on a circle or in a periodic box",
        Cause.OTHER_ORDER: "if the order of rows means nothing"
        + ("; ID: the variable that names them" if (one.remedy or "").endswith(" ID") else ""),
        Cause.LESS_PRECISE: "if the shorter type is meant",
        Cause.ACROSS_RANKS: "beside align_by: ID, where ID is the variable that names the rows",
        Cause.NEAR_ZERO: "so that values next to zero have a bound as well",
        Cause.WIDER_BOUND: "if that much does not matter",
    }.get(one.cause, "")


def _across_ranks_words(one: Explanation, golden: str, new: str) -> str:
    """`the 4 ranks of new hold the rows of the 2 of golden, dealt out in another way`."""
    what = "rows" if one.words == "rows" else "array"
    ours, theirs = one.values
    ranks = f"the {theirs:.0f} ranks of {new} hold the {what} of the {ours:.0f} of {golden}"
    if ours == theirs:
        ranks = f"together, the {ours:.0f} ranks of {new} and {golden} hold the same {what}"
    whole = one.held_count >= one.differing_count
    but = "" if whole else f" ({one.held_count:,} of {one.differing_count:,} values)"
    return f"{ranks}, dealt out in another way{but}"


def _swapped_words(one: Explanation, sides: tuple[str, str], name: str) -> str:
    """The variables `vx` and `vy` are swapped: new `vx` = golden `vy`."""
    mine, other = name_in_text(name), name_in_text(one.words or "")
    holds = f"{sides[1]} {mine} = {sides[0]} {other}"
    is_pair = bool(one.values) and one.values[0] == 2
    what = (
        f"the variables {mine} and {other} are swapped" if is_pair else "variables changed places"
    )
    return f"{what}: {holds}"


def _growth_words(one: Explanation) -> str:
    """`the difference doubles every 10 iterations, from iteration 20 on; it is beyond the bound
    from iteration 70 on`.
    """
    if one.words == "rises":
        return _rise_words(one)
    start, rate, beyond = one.values
    how = {
        "exponential": f"doubles {_every(round(rate))}",
        "share": f"grows by {share_text(rate)} in each iteration",
    }.get(one.words or "", f"grows by {size_text(rate)} in each iteration")
    if one.words == "exponential" and rate < 1:
        how = f"grows {short_number(2 ** (1 / rate))}-fold in each iteration"
    is_later = beyond > start
    reached = f"; it exceeds the bound from iteration {beyond:.0f} on" if is_later else ""
    return f"the difference {how}, from iteration {start:.0f} on{reached}"


def _rise_words(one: Explanation) -> str:
    """`the difference grows: at most 25 % of the bound in iteration 10, more than 50 % in 60,
    beyond it or nearly so from 80 on`.
    """
    start, most, middle, least, beyond = one.values
    return (
        f"the difference grows: {at_most_text(most)} of the bound in iteration {start:.0f}, more"
        f" than {percent_text(rounded_down(least))} in iteration {middle:.0f}, and the blocks may"
        f" differ from iteration {beyond:.0f} on"
    )


def _every(iterations: int) -> str:
    return "in each iteration" if iterations <= 1 else f"every {iterations:,} iterations"


def _stopped_words(one: Explanation, sides: tuple[str, str]) -> str:
    """`rank 2 wrote nothing from iteration 50 on (18 arrays)`."""
    subject = safe_name(one.words or "nothing")
    is_rank = subject.startswith(("rank ", "ranks "))
    verb = "wrote nothing" if is_rank else "was written" if not one.words else "was not written"
    verb = verb.replace("was", "were") if ", " in subject and not is_rank else verb
    when = f" from iteration {one.values[0]:.0f} on" if one.values else ""
    arrays = plural(one.held_count, "array")
    if one.held_count < one.differing_count:
        arrays = f"{one.held_count:,} of {plural(one.differing_count, 'missing array')}"
    where = "" if sides[1] == GOLDEN_AND_NEW[1] else f"in {sides[1]} "
    return f"{where}{subject} {verb}{when} ({arrays})"


# What is said of the variable, and not of so many of its values.
_WHOLE_SENTENCES: Mapping[Cause, Callable[[Explanation, tuple[str, str], str], str]] = {
    Cause.WIDER_BOUND: lambda one, _, __: _passing_words(one),
    Cause.ONE_RANK: lambda one, _, __: _one_rank_words(one),
    Cause.ACROSS_RANKS: lambda one, sides, _: _across_ranks_words(one, *sides),
    Cause.GROWS: lambda one, _, __: _growth_words(one),
    Cause.STOPPED: lambda one, sides, _: _stopped_words(one, sides),
    Cause.SWAPPED: _swapped_words,
}

# What was seen to hold of the array, not of those of its elements alone that differ.
_OF_THE_ARRAY = (Cause.OTHER_ORDER, Cause.OTHER_ITERATION)

_WHOLE = (Cause.BIT_FLIPPED, Cause.OTHER_ITERATION, Cause.STRIPE, Cause.SHIFTED, Cause.BOUNDARY)


def _value_words(one: Explanation) -> str:
    """A count or a fill value as it is, factors and offsets in six digits, all else in three."""
    if not one.values:
        return ""
    value = one.values[0]
    if one.cause is Cause.CONSTANT_FACTOR and len(one.values) == 2:
        imaginary = _six_digits(abs(one.values[1]))
        return f"({_six_digits(value)} {'-' if one.values[1] < 0 else '+'} {imaginary}i)"
    if one.cause in _WHOLE:
        return f"{value:.0f}"
    if one.cause is Cause.CONSTANT_FACTOR:
        return _factor_text(value)
    if one.cause is Cause.FILL_VALUE:
        return safe_name(one.words) if one.words else number_text(value)
    return _six_digits(value) if one.cause is Cause.CONSTANT_OFFSET else short_number(value)


def _reordered(components: Sequence[float], axis: str) -> str:
    come = ", ".join(f"{component:.0f}" for component in components)
    named = ", ".join(f"{component:.0f}" for component in sorted(components))
    done = "exchanged" if len(components) == 2 else f"in the order {come}"
    return f"{' and '.join(named.rsplit(', ', 1))} of axis {axis} {done}"


def _six_digits(value: float) -> str:
    return number_text(float(f"{value:.6g}"))


def _factor_text(value: float) -> str:
    """Six digits; next to 1 as many as tell it from 1."""
    apart = abs(abs(value) - 1)
    more = math.ceil(-math.log10(apart)) - 3 if 0 < apart < 1e-3 else 0
    return number_text(float(f"{value:.{6 + more}g}"))


def _transposed_words(one: Explanation, golden: str, new: str) -> str:
    if one.axes == (0, 1):
        return f"{new} is {golden} transposed: {new}[i, j] = {golden}[j, i]"
    return f"{new} is {golden} with axes {' and '.join(map(str, one.axes))} exchanged"


def _cause_words(one: Explanation, golden: str, new: str) -> str:
    value = _value_words(one)
    passing = f"; {_passing_words(one)}" if one.values else ""
    layers = "layer" if value == "1" else f"{value} layers"
    moved = f"{'+' if value.startswith('-') else '-'} {value.lstrip('-')}"
    plus = f"- {value[1:]}" if value.startswith("-") else f"+ {value}"
    side, other = (golden, new) if one.on_golden else (new, golden)
    axes = " and ".join(map(str, one.axes))
    called = safe_name(one.words or "")
    named = f" ({called}{'' if len(one.values) == 2 else '?'})" if called else ""
    return {
        Cause.SIGN_FLIPPED: f"the sign is flipped: {new} = -{golden}",
        Cause.CONSTANT_OFFSET: f"{new} = {golden} {plus}",
        Cause.CONSTANT_FACTOR: f"{new} = {golden} x {value}{named}",
        Cause.ALL_ZERO: f"{new} is 0",
        Cause.ALL_NAN: f"{new} is NaN",
        Cause.FILL_VALUE: f"{side} is {value}, beyond all other finite values, as fill values are",
        Cause.LESS_PRECISE: f"{side} is {other} rounded to {called}",
        Cause.BIT_FLIPPED: f"one bit is flipped: bit {value}, of the {called}",
        Cause.BYTE_ORDER: f"{new} has the bytes of {golden} in the other order",
        Cause.PERIODIC_IMAGE: f"{new} is {golden} moved by whole periods of"
        f" {', '.join(dict.fromkeys(_six_digits(period) for period in one.values if period))}",
        Cause.SHIFTED: f"{new} is {golden} shifted by {value} along axis {axes}:"
        f" {new}[i] = {golden}[i {moved}]",
        Cause.TRANSPOSED: _transposed_words(one, golden, new),
        Cause.COLUMNS_FIRST: f"{new} is {golden} written in the other order of axes (C, Fortran)",
        Cause.EXCHANGED: f"{new} is {golden} with components {_reordered(one.values, axes)}",
        Cause.OTHER_ORDER: f"{new} has the rows of {golden} in another order",
        Cause.OTHER_ITERATION: f"{new} is {golden} of iteration {value}",
        Cause.STRIPE: f"in the rows of axis {axes} that OpenMP would deal to thread {value}"
        f" of {one.values[-1] if one.values else 0:.0f}",
        Cause.BOUNDARY: f"at the boundary of axis {axes}, in its first or last {layers}",
        Cause.NEAR_ZERO: f"{golden} is next to zero{passing}",
    }[one.cause]
