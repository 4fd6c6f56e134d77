"""What repeated runs came to, in words: the same ones on the terminal, in JSON and in the page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ciwrap.model import number_text
from ciwrap.model.repeat_result import Behaviour, BoundFit
from ciwrap.report.sizes import relative_text
from ciwrap.report.text import percent_text, plural, safe_name, short_number, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ciwrap.model.repeat_result import (
        BoundSuggestion,
        FactorFinding,
        RepeatedRun,
        RepeatedVariable,
        RepeatResult,
    )

_MOST_NAMES = 4
_FIT_WORDS = {
    BoundFit.FITS: "fits",
    BoundFit.TOO_TIGHT: "is too tight",
    BoundFit.TOO_WIDE: "is too wide",
}


def headline(
    variables: Sequence[RepeatedVariable], runs: Sequence[RepeatedRun], reference: str = "first"
) -> str:
    """The first sentence: `6 of 8 variables vary, at most 5e-7; atol: 2e-6 would hold; no
    exponential growth seen`. reference: what runs were compared with, "first" or "golden".
    """
    failed = [run for run in runs if run.problem is not None]
    if not variables:
        return (
            f"{len(failed)} of {plural(len(runs), 'run')} could not be compared: nothing is known"
        )
    has_compared = any(one.kind is not Behaviour.NOT_COMPARABLE for one in variables)
    parts = []
    if has_compared:
        parts = [_varying_words(variables, runs, reference), *_bound_words(variables)]
    if any(one.varies for one in variables):
        parts.append(_growth_words(variables))
    faults = [one for one in variables if one.kind is Behaviour.NOT_COMPARABLE]
    if faults:
        parts.insert(0, f"{plural(len(faults), 'variable')} cannot be compared ({_names(faults)})")
    if failed:
        numbers = ", ".join(str(run.number) for run in failed[:_MOST_NAMES])
        more = ", ..." if len(failed) > _MOST_NAMES else ""
        words = ("run", "was") if len(failed) == 1 else ("runs", "were")
        parts.insert(0, f"{words[0]} {numbers}{more} of {len(runs)} {words[1]} not compared")
    return "; ".join(parts)


def _varying_words(
    variables: Sequence[RepeatedVariable], runs: Sequence[RepeatedRun], reference: str
) -> str:
    varying = [one for one in variables if one.varies]
    told = [one for one in variables if one.kind is not Behaviour.NOT_COMPARABLE]
    good = sum(run.problem is None for run in runs)
    if not varying:
        what = "the variable is" if len(told) == 1 else f"all {len(told)} variables are"
        to_it = " to the golden" if reference == "golden" else ""
        return f"{what} equal{to_it} in {plural(good, 'run')}"
    sizes = [one.max_abs for one in varying if one.max_abs is not None]
    size = f", {_reach('at most', max(sizes))}" if sizes else ""
    is_one = len(varying) == 1
    verb = "varies" if is_one else "vary"
    if reference == "golden":
        # Equal runs may be no golden's, and a golden without data tells no more than a bound.
        verb = "differs from the golden" if is_one else "differ from the golden"
        verb += ", or may" if len(sizes) < len(varying) else ""
    return f"{len(varying)} of {plural(len(told), 'variable')} {verb}{size}"


def _bound_words(variables: Sequence[RepeatedVariable]) -> list[str]:
    found = [one.suggested_bound for one in variables if one.suggested_bound is not None]
    texts = list(dict.fromkeys(map(bound_text, found)))
    varying = sum(one.varies for one in variables)
    if not texts:
        return ["no bound is suggested"] if varying else []
    of_some = f" for {len(found)} of them" if len(found) < varying else ""
    if len(texts) == 1:
        return [f"`{texts[0]}` would hold{of_some}"]
    absolute = [one.atol for one in found if one.atol]
    relative = [one.rtol for one in found if one.rtol]
    ranges = [
        _range(name, values) for name, values in (("atol", absolute), ("rtol", relative)) if values
    ]
    return [f"{' and '.join(ranges)} would hold{of_some}"]


def _range(name: str, values: Sequence[float]) -> str:
    least, most = number_text(min(values)), number_text(max(values))
    return f"`{name}: {least}`" if least == most else f"`{name}` of {least} to {most}"


def _growth_words(variables: Sequence[RepeatedVariable]) -> str:
    growing = [one for one in variables if one.kind is Behaviour.GROWING]
    unrelated = [one for one in variables if one.kind is Behaviour.UNRELATED]
    if unrelated:
        return f"{_names(unrelated)} may have a random seed left open"
    if not growing:
        return "no exponential growth seen"
    known = [
        one.compare_until
        for one in growing
        if one.compare_until is not None and not one.is_compared_to_the_end
    ]
    until = f", compare up to iteration {min(known)}" if known else ""
    verb = "grows" if len(growing) == 1 else "grow"
    return f"{_names(growing)} {verb} exponentially{until}"


def _names(variables: Sequence[RepeatedVariable]) -> str:
    shown = ", ".join(safe_name(one.name, 40) for one in variables[:_MOST_NAMES])
    return shown + (", ..." if len(variables) > _MOST_NAMES else "")


def bound_text(bound: BoundSuggestion) -> str:
    """As it stands in ciwrap.yaml: `atol: 2e-6`."""
    name, value = ("rtol", bound.rtol) if bound.rtol else ("atol", bound.atol)
    return f"{name}: {number_text(value)}"


def bound_reason(bound: BoundSuggestion) -> str:
    """`3 x largest of 9 differences`."""
    return f"{bound.factor} x largest of {bound.comparisons} differences"


def variable_words(one: RepeatedVariable) -> list[str]:
    """What is said of a variable, in clauses; its name is not among them."""
    if one.kind is Behaviour.NOT_COMPARABLE:
        return [f"not comparable: {one.reason}"]
    if one.kind is Behaviour.EQUAL:
        return ["equal in all runs"]
    words = [_results_words(one)]
    if one.first_iteration is not None:
        words[0] += f" from iteration {one.first_iteration} on"
    if one.max_abs is not None:
        run = "" if one.max_abs_run is None else f" (run {one.max_abs_run})"
        words.append(f"|d| {_reach('up to', one.max_abs)}{run}")
    if relative := relative_text(one.max_rel, one.max_abs):
        words.append(f"relative {relative}")
    if one.varying_share is not None:
        words.append(f"{percent_text(one.varying_share)} of the elements")
    if one.common_digits is not None:
        words.append(f"{one.common_digits:.1f} digits in common (95 % of the elements)")
    return words + _growth_of(one)


def order_words(result: RepeatResult) -> str:
    """Of which order the runs were; nothing of runs that were there already."""
    if all(run.seconds is None for run in result.runs):
        return ""
    return f"The order of the runs was drawn with the seed {result.seed}."


def _results_words(one: RepeatedVariable) -> str:
    """How many results the runs have: a single one where all differ from the golden alike."""
    if one.distinct_results != 1:
        return f"{one.distinct_results} different results"
    if one.max_abs:
        return "one result in all runs, which is not the golden's"
    return "one result in all runs" + ("" if one.breaks_bound else ", within the golden's bound")


def _reach(words: str, size: float) -> str:
    """`up to 1e-7`; `over 1.79e308` where a double does not reach."""
    return size_text(size) if size == math.inf else f"{words} {size_text(size)}"


def _growth_of(one: RepeatedVariable) -> list[str]:
    if one.growth_rate is None:
        return []
    words = [f"grows by e every {short_number(1 / one.growth_rate)} iterations"]
    reached = [
        f"{what} at iteration {iteration:.0f}"
        for what, iteration in (
            ("the bound", one.horizon),
            ("a tenth of the spread", one.spread_horizon),
        )
        if iteration is not None
    ]
    return [*words, f"typical differences reach {' and '.join(reached)}"] if reached else words


def present_words(one: RepeatedVariable) -> str | None:
    """What the configured bound is to what was seen; None if there is nothing to say."""
    if one.present_bound is None or (one.present_fit is None and not one.breaks_bound):
        return None
    if one.present_bound.is_exact:
        return "no bound is configured, so any difference fails"
    if one.present_fit is None:
        return f"the present bound {one.present_bound} does not hold, or may not"
    share, where = one.present_share, ""
    if one.early_share is not None and not one.is_compared_to_the_end:
        share, where = one.early_share, f" up to iteration {one.compare_until}"
    said = "" if share is None else f" ({_used_words(share)})"
    word = _FIT_WORDS[one.present_fit]
    if one.present_fit is BoundFit.TOO_TIGHT and share is not None and share <= 1:
        word = "leaves too little room"
        if one.suggested_bound is not None:
            factor = one.suggested_bound.factor
            said = f" ({_used_words(share)}, and {factor} times as much should have room)"
    if where and (one.present_share or 0.0) > 1:
        said += f"{_beyond_words(one.present_fit, share)} ({_used_words(one.present_share or 0.0)})"
    return f"the present bound {one.present_bound} {word}{where}{said}"


def _beyond_words(fit: BoundFit, share: float | None) -> str:
    """What a bound is after the iteration up to which it is judged, where differences pass it."""
    if fit is BoundFit.FITS:
        return ", and does not beyond"
    if fit is BoundFit.TOO_TIGHT and (share or 0.0) > 1:
        return ", and beyond"
    return ", and is too tight beyond"


def _used_words(share: float) -> str:
    if share <= 1:
        return f"{percent_text(share)} used"
    return f"differences reach {short_number(share)} times it"


def suggestion_words(bound: BoundSuggestion) -> str:
    """`atol: 2e-6 would hold (3 x largest of 9 differences, 14 times the typical noise)`."""
    more = ""
    if bound.noise_multiple is not None:
        more += f", {short_number(bound.noise_multiple)} times the typical noise"
    if bound.until_iteration is not None:
        more += f", up to iteration {bound.until_iteration}"
    return f"{bound_text(bound)} would hold ({bound_reason(bound)}{more})"


def has_several_checks(found: Iterable[FactorFinding | RepeatedVariable]) -> bool:
    """Whether these are of several checks, so that a name alone does not tell which variable it is
    of.
    """
    return len({one.check for one in found}) > 1


def factor_words(one: FactorFinding, *, has_checks: bool = False) -> str:
    """What a factor does to a variable. has_checks: as `has_several_checks` says."""
    name = safe_name(one.variable, 40)
    if has_checks:
        name = f"{safe_name(one.check, 40)}: {name}"
    share = f"{one.differing} of {plural(one.pairs, 'pair')} of runs differ"
    if one.changes is not None:
        size = f", |d| {_reach('up to', one.max_abs)}" if one.max_abs else ""
        if one.changes:
            return f"changes {name}: {share}{size}"
        return f"does not change {name}" + (f": {share}" if one.pairs else "")
    if not one.repeat_differing:
        return f"{name}: not known, since no runs that were compared can tell"
    again = f"{one.repeat_differing} of {one.repeat_pairs} without any change"
    text = f"{name}: {share}, and {again}"
    if one.p is None or one.spread_effect is None:
        return text
    if one.p <= 0.05:
        word = "more" if one.spread_effect > 0 else "less"
        return f"{text}; it spreads {word} with it on (p = {short_number(one.p)})"
    power = "" if one.power is None else (
        f"; a five-fold spread in one cell would have been found in {100 * one.power:.0f} %"
    )  # fmt: skip
    return f"{text}; no effect on the spread found (p = {short_number(one.p)}{power})"
