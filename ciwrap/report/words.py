"""What a result says, in sentences; every renderer uses these same words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from ciwrap.model import (
    CheckResult,
    Coverage,
    DifferingElement,
    Evidence,
    RunResult,
    VariableResult,
    Verdict,
)
from ciwrap.model.fill_values import FILL_LABELS
from ciwrap.model.variable_result import Cause
from ciwrap.report.text import (
    A_AND_B,
    GOLDEN_AND_NEW,
    at_most_text,
    counts_words,
    index_text,
    percent_text,
    plural,
    rounded_down,
    rounded_up,
    safe_name,
    safe_text,
    share_text,
    size_text,
)


def variable_is_exact(variable: VariableResult) -> bool:
    """Whether nothing but equal numbers match: whole numbers move by 1 at least."""
    bound = variable.bound
    if bound is None or bound.is_exact:
        return True
    is_whole = variable.dtype is not None and variable.dtype[1:2] in ("i", "u", "b")
    return is_whole and bound.atol < 1 and not bound.rtol and not bound.ulps


def element_share_text(variable: VariableResult, element: DifferingElement) -> str:
    """How far one element is off that has a share of the bound: `42 x the bound`, `beyond a bound
    of 0`.
    """
    bound, share = variable.bound, element.bound_share or 0.0
    has_sum = bound is not None and bound.atol > 0 and variable.combine is None
    # Nothing is relative to a golden number that is 0.
    is_zero = element.abs_difference is not None and element.rel_difference is None
    if math.isinf(share) and is_zero and not has_sum:
        return "beyond a bound of 0"
    return share_text(share)


def relative_text(relative: float | None, difference: float | None) -> str:
    """A relative difference, in three digits; nothing where there is none, or where the difference
    is more than a double holds, so that nobody knows what it is of the number.
    """
    is_known = difference is None or math.isfinite(difference)
    return size_text(relative) if relative and is_known else ""


def mean_text(mean: float | None) -> str:
    """A mean difference, in three digits; nothing where its sum was more than a double holds."""
    return size_text(mean) if mean and math.isfinite(mean) else ""


def without_share_text(variable: VariableResult) -> str:
    """Of a variable whose largest difference is no multiple of its bound that a double holds."""
    if lost_count(variable):
        return "not a number on one side"
    for one in told_elements(variable):
        if one.bound_share == math.inf:
            return element_share_text(variable, one)
    return share_text(math.inf)


def told_elements(variable: VariableResult) -> tuple[DifferingElement, ...]:
    """The differing elements that are known one by one: the first ones, and then the worst."""
    worst = () if variable.details is None else variable.details.worst_elements
    return (*variable.first_differences, *worst)


def lost_count(variable: VariableResult) -> int:
    """Elements that are NaN, infinite or missing on one side only."""
    return sum(count for count, _ in special_counts(variable))


def special_counts(variable: VariableResult) -> list[tuple[int, str]]:
    """How many elements differ that have no distance from their partner, and what they are."""
    counts = (
        (variable.nan_mismatch_count, "NaN without a match"),
        (variable.inf_mismatch_count, "infinite without a match"),
        (variable.missing_mismatch_count, f"missing{_declared_by(variable)} on one side only"),
    )
    return [(count, what) for count, what in counts if count]


def _declared_by(variable: VariableResult) -> str:
    """` (_FillValue)`: the attributes that declare which numbers are missing, if any do."""
    names = [name for name, _ in variable.labels if name in FILL_LABELS]
    return f" ({', '.join(names)})" if names else ""


def became_nan(variable: VariableResult) -> int:
    """How many values surely became NaN."""
    return sum(one.held_count for one in variable.explanations if one.cause is Cause.ALL_NAN)


def lost_to(variable: VariableResult) -> str:
    """`NaN`, or `infinite`: what new values are that have been numbers, as far as is known."""
    new = {one.new for one in told_elements(variable)}
    new |= {one.new for one in variable.moved_elements}
    if became_nan(variable) or "nan" in new:
        return "NaN"
    return "infinite" if new & {"inf", "-inf"} else ""


def counted_lost(variable: VariableResult, count: int) -> str:
    """`2 elements`; of complex numbers `2 parts`, as each of both is counted by itself."""
    return plural(count, "part" if _is_complex(variable) else "value")


def has_distance(variable: VariableResult) -> bool:
    """Whether what differs is some number from what it was; not if it all is not a number, beside
    which the largest difference is one within the bound.
    """
    lost, count = lost_count(variable), variable.differing_count or 0
    is_all = 0 < lost == count
    if _is_complex(variable) and 0 < count <= lost:
        # Each of both parts counts, so an element may be among the lost ones twice.
        is_all = not any(one.abs_difference is not None for one in told_elements(variable))
    return bool(variable.max_abs_difference) and not is_all


def _is_complex(variable: VariableResult) -> bool:
    return variable.dtype is not None and variable.dtype[1:2] == "c"


# What notes begin with that tell what to try.
HINT = "hint: "

_MOST_BOUNDS = 3

# Results that hold one run against another, which need not be a golden.
OF_TWO_RUNS = frozenset({"compare", "record", "run --base"})

_EXACT_BY_TYPE = "exact by type"


def _exact_words(one: VariableResult) -> str:
    """`exact`; of a type that rtol and ulps do not apply to, that it is why."""
    dtype = one.dtype or ""
    is_by_type = dtype[1:2] in ("i", "u", "S", "U") or dtype[1:] == "b1"
    return _EXACT_BY_TYPE if is_by_type else "exact"


def bounds_line(check: CheckResult) -> str:
    """By which bounds two runs were compared, and who asked for them; '' where nothing was."""
    origin = check.bounds_from or ""
    if origin == "none given":
        return "bound: none given, compared exactly"
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for one in check.variables:
        if one.bound is not None:
            asked = f"atol={one.bound_scale}" if one.bound_scale else bound_text(one)
            kinds[_exact_words(one) if one.bound.is_exact else asked].add(one.name)
    said = sorted(kinds, key=lambda text: -len(kinds[text]))[:_MOST_BOUNDS]
    if len(kinds) > 1:
        said = [f"{text} ({plural(len(kinds[text]), 'variable')})" for text in said]
    more = ", ..." if len(kinds) > _MOST_BOUNDS else ""
    words = {"given": "as given"}.get(origin, f"of {origin}")
    if [*kinds] == [_EXACT_BY_TYPE]:
        return f"bound: {_EXACT_BY_TYPE}"  # whatever was given
    return f"bound: {', '.join(said)}{more}, {words}" if said else ""


def arrays_words(arrays: int, variables: int) -> str:
    """`2 variables`, or `96 arrays of 2 variables`: a variable has an array in each checkpoint.

    variables: 0 if only the number of arrays is known.
    """
    if arrays == variables:
        return plural(arrays, "variable")
    of = f" of {plural(variables, 'variable')}" if variables else ""
    return f"{plural(arrays, 'array')}{of}"


def total_words(run: RunResult) -> str:
    """How many arrays of how many variables the result has a verdict on."""
    arrays = sum(check.variable_count for check in run.checks)
    listed = [(check.name, one.name) for check in run.checks for one in check.variables]
    coverage = run.coverage
    variables = len(set(listed)) if len(listed) == arrays else 0
    if not variables and coverage.compared_variables == arrays:
        variables = coverage.compared_names
    return arrays_words(arrays, variables)


def unlisted_words(run: RunResult) -> str:
    """`1,598 arrays are counted and not listed: 39 not comparable, 1,559 match`; nothing if the
    document lists all.
    """
    told = [check.unlisted.counts for check in run.checks if check.unlisted is not None]
    counts = {one: sum(each[one] for each in told) for one in Verdict.worst_first()}
    total = sum(counts.values())
    verb = "is" if total == 1 else "are"
    words = f"{plural(total, run.coverage.unit)} {verb} counted and not listed"
    return f"{words}: {counts_words(counts)}" if total else ""


def headline(variable: VariableResult, *, with_percent: bool = False) -> str:
    """One sentence on one variable, without its name.

    with_percent: `3 of 4 elements (75 %) differ`, where there is more than one element.
    """
    if variable.verdict is Verdict.NOT_COMPARABLE:
        return safe_text(variable.reason)
    if variable.verdict is Verdict.MATCH:
        is_one = variable.element_count == 1 and not variable.masked_count
        elements = "its one value is" if is_one else f"all {elements_words(variable)}"
        return f"{elements} {alike_words(variable)}"
    return _differ_sentence(variable, with_percent=with_percent)


def elements_words(variable: VariableResult, note: str = "") -> str:
    """How many elements were compared: `10 elements`, `6 elements (4 more are masked)`.

    note: what else stands in the brackets: `6 elements (100 %; 4 more are masked)`.
    """
    total, masked = variable.element_count or 0, variable.masked_count
    rest = max(0, total - (masked or 0))
    notes = [note] if note else []
    if variable.text is not None:
        notes += [f"{masked:,} more by ignore"] if masked else []
    elif masked:
        notes.append(f"{masked:,} more {'is' if masked == 1 else 'are'} masked")
    elif variable.is_mask_unknown:
        notes.append("less those masked")
    if variable.flipped_count:
        notes.append(f"{plural(variable.flipped_count, 'vector')} with the other sign")
    said = plural(rest, "value" if variable.text is None else "number")
    return f"{said} ({'; '.join(notes)})" if notes else said


def match_title(coverage: Coverage, kind: str) -> str:
    """The verdict on what matches, in a few words: never more than was compared.

    kind: of the result, since what `compare` and `record` compare with need not be a golden.
    """
    if coverage.left_out:
        return f"Numbers match, but {left_out_words(coverage, kind)}"
    return "All numbers match" if coverage.is_whole else "All compared numbers match"


def left_out_words(coverage: Coverage, kind: str) -> str:
    """`3 variables of the golden were not compared (ignore)`."""
    count = coverage.left_out
    side = "A" if kind in OF_TWO_RUNS else "the golden"
    verb = "was" if count == 1 else "were"
    is_named = count != coverage.let_go and coverage.ignored != coverage.uncommon
    reasons = ["ignore"] if is_named else []
    reasons += ["of iterations left out"] if coverage.uncommon else []
    reasons += ["gone, not strict"] if coverage.let_go else []
    left_out = f"{plural(count, coverage.unit)} of {side}"
    return f"{left_out} {verb} not compared ({'; '.join(reasons)})"


def used_share(variable: VariableResult) -> float | None:
    """The share of its bound that a variable used up at most; where chunks are suspect, that of
    the others. None if it is unknown, or if the bound is 0.
    """
    if variable_is_exact(variable) or variable.used_interval is None:
        return None
    return variable.used_interval[1]


def interval_text(low: float, high: float) -> str:
    """How much of an error bound something is that is known to lie between two shares:
    `12.5 to 37.5 % of the bound`, `less than 25 % of the bound`. Both ends are rounded outwards,
    and so is one number for both: it is what a sentence elsewhere calls `at most`.
    """
    if low == high:
        most = rounded_up(high)
        return share_text(high if high < 1 <= most else most)
    least, most = rounded_down(low), rounded_up(high)
    if percent_text(least) in ("0 %", "< 0.1 %"):
        return f"less than {share_text(most)}"
    return f"{percent_text(least).removesuffix(' %')} to {percent_text(most)} of the bound"


def used_words(share: float | None) -> str:
    """`, at most 31 % of the bound used`; `, no change seen`; nothing if that is unknown.

    share: 0 is known of values only, since residues show drift to within one of their steps.
    """
    if share is None:
        return ""
    return f", {at_most_words(share)} used" if share else ", no change seen"


def at_most_words(share: float) -> str:
    """`at most 31 % of the bound`, `less than 0.1 % of the bound`."""
    return f"{at_most_text(share)} of the bound" if share <= 1 else f"at most {share_text(share)}"


def _differ_sentence(variable: VariableResult, *, with_percent: bool) -> str:
    if variable.differing_count is None:
        from ciwrap.report.digest_words import by_digests_sentence

        return by_digests_sentence(variable)
    count = variable.compared_elements or 0
    with_percent = with_percent and count > 1 and not variable.is_mask_unknown
    total = elements_words(
        variable, percent_text(variable.differing_count / count) if with_percent else ""
    )
    verb = differ_words(variable, is_one=variable.differing_count == 1)
    return f"{variable.differing_count:,} of {total} {verb}"


def differ_words(variable: VariableResult, *, is_one: bool) -> str:
    """What values do that are not as they should be: `differ by more than the bound (atol=1e-6)`.

    is_one: whether one element does.
    """
    if variable.expectation == "range":
        return f"{'lies' if is_one else 'lie'} out of the range"
    return f"{'differs' if is_one else 'differ'}{by_more_words(variable)}"


def by_more_words(variable: VariableResult) -> str:
    """` by more than the bound (atol=1e-6)`; nothing for a bound of 0."""
    bound = variable.bound
    if bound is None or bound.is_exact:
        return ""
    said = " ".join(part for part in bound.text.split() if part not in ("atol=0", "rtol=0"))
    which = {"both": ", the smaller counts", "either": ", the larger counts"}
    scale = "" if variable.bound_scale is None else f", atol: {variable.bound_scale}"
    return f" by more than the bound ({said}{which.get(variable.combine or '', '')}{scale})"


def alike_words(variable: VariableResult) -> str:
    """What elements are that match: `within the bound, of which 12 % were used`."""
    if variable.expectation == "range":
        return "in the range"
    if variable_is_exact(variable):
        return "equal"
    return f"within the bound{used_words(used_share(variable))}"


def bound_text(variable: VariableResult) -> str:
    """`atol=1e-6 rtol=0`, `atol=1 rtol=0.1 (the smaller counts)`; nothing for a bound of 0."""
    if variable.bound is None or variable.bound.is_exact:
        return ""
    which = {"both": " (the smaller counts)", "either": " (the larger counts)"}
    scale = "" if variable.bound_scale is None else f" (atol: {variable.bound_scale})"
    return variable.bound.text + which.get(variable.combine or "", "") + scale


def evidence_words(variable: VariableResult) -> str:
    """What the verdict rests on."""
    if variable.evidence is None:
        return ""
    if variable.expectation is not None:
        return f"what ciwrap.yaml says of it ({variable.expectation!r})"
    return {
        Evidence.DATA: "the data of both sides",
        Evidence.RESIDUES: f"the golden's residues (k = {variable.residue_levels})",
        Evidence.TREE: "the golden's tree alone",
    }[variable.evidence]


def detail_lines(
    variable: VariableResult, sides: tuple[str, str], *, is_verbose: bool = False
) -> list[str]:
    """Where and how much, a line for each fact that is known; for variables that differ, and for
    texts of which lines have no partner. is_verbose: more of a text's places, and how to leave each
    of them out.
    """
    # Only what differs needs these.
    from ciwrap.report.cause_words import cause_lines
    from ciwrap.report.text_words import text_lines

    if variable.text is not None:
        return text_lines(variable, sides, is_verbose=is_verbose)
    # The cause first: it is what a reader looks for.
    lines = list(cause_lines(variable, sides))
    return [*lines, *fact_lines(variable, sides)] if variable.verdict.is_alarm else lines


def fact_lines(
    variable: VariableResult, sides: tuple[str, str], *, with_share: bool = True
) -> list[str]:
    """The first element that differs, the largest difference, and what else is known of numbers.

    with_share: by how many bounds the largest one is off, which a headline may have said.
    """
    from ciwrap.report.digest_words import by_digests_lines

    lines = []
    if variable.first_differences:
        first = variable.first_differences[0]
        where = f"first at {place_words(variable)}: " if first.index else ""
        from ciwrap.report.text_difference import text_difference_lines

        texts = text_difference_lines(first.golden, first.new, sides)
        if texts is not None:
            return [f"{where}{texts[0]}", *texts[1:]]
        line = f"{where}{sides[0]} {safe_name(first.golden)}, {sides[1]} {safe_name(first.new)}"
        if first.abs_difference is not None:
            line += f", |difference| {size_text(first.abs_difference)}"
        if first.bound_share is not None and not variable_is_exact(variable):
            is_multiple = math.isfinite(first.bound_share)
            line += f"{' =' if is_multiple else ','} {element_share_text(variable, first)}"
        relative = relative_text(variable.max_rel_difference, variable.max_abs_difference)
        if variable.compared_elements == 1 and relative:
            line += f"; relative {relative}"
        lines.append(line)
    lines += _largest_lines(variable, with_share=with_share)
    said = [f"{counted_lost(variable, count)} {what}" for count, what in special_counts(variable)]
    lines += [", ".join(said)] if said else []
    return [*lines, *by_digests_lines(variable)]


def place_words(variable: VariableResult) -> str:
    """Where the first differing element is: `[12]`, in a text `[12] (step 3, line 88)`."""
    where = index_text(variable.first_differences[0].index)
    first = None if variable.series is None else variable.series.first_differing
    if first is None:
        return where
    parts = [] if first.step is None else [f"step {first.step}"]
    if first.new.line is not None:
        parts.append(f"line {first.new.line}, column {first.new.column}")
    if first.golden.line is not None:
        parts.append(f"against line {first.golden.line}, column {first.golden.column}")
    return f"{where} ({', '.join(parts)})".strip() if parts else where


def _largest_lines(variable: VariableResult, *, with_share: bool) -> list[str]:
    if variable.compared_elements == 1 and variable.first_differences:
        return []  # it is the first one
    size = variable.max_abs_difference
    parts = []
    if has_distance(variable) and variable.max_abs_index is not None:
        at = f" at {index_text(variable.max_abs_index)}" if variable.max_abs_index else ""
        parts.append(f"largest |difference| {size_text(size or 0.0)}{at}")
    elif size is not None or variable.text is not None:
        return []
    # Nothing is relative to a golden number that is 0.
    if relative := relative_text(variable.max_rel_difference, size):
        parts.append(f"largest relative {relative}")
    share = variable.max_bound_share if with_share else None
    if share is not None and math.isfinite(share) and not variable_is_exact(variable):
        parts.append(f"up to {share_text(share)}")
    return ["; ".join(parts)] if parts else []


def counted_evidence(check: CheckResult) -> str:
    """`16 data, 32 residues, 8 tree`."""
    kinds = Counter(v.evidence.value for v in check.variables if v.evidence is not None)
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds))


# Of numbers that the configuration tells, by its key.
_EXPECTED_AND_NEW = {"expect": ("expected", "new"), "range": ("nearest in range", "new")}


def sides_of(check: CheckResult, variable: VariableResult) -> tuple[str, str]:
    """What the sides of a variable are called: two runs are A and B."""
    return own_sides(variable, GOLDEN_AND_NEW if check.source_path is None else A_AND_B)


def own_sides(variable: VariableResult, sides: tuple[str, str]) -> tuple[str, str]:
    """The same, where the sides of the check have names of their own."""
    return _EXPECTED_AND_NEW.get(variable.expectation or "", sides)
