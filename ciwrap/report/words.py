"""What a result says, in sentences; every renderer uses these same words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ciwrap.model import (
    CheckResult,
    ChunkRange,
    Coverage,
    DifferingElement,
    Evidence,
    MovedElement,
    NewValues,
    RunResult,
    VariableResult,
    Verdict,
    number_text,
)
from ciwrap.model.settings import FILL_LABELS
from ciwrap.model.variable_result import (
    Cause,
    DifferingNumbers,
    Explanation,
    IndexBox,
    MaskedText,
    TextPlace,
    TextResult,
    UnpairedLines,
)
from ciwrap.report.text import (
    at_most_text,
    counts_words,
    grouped_number,
    index_text,
    percent_text,
    plural,
    rounded_down,
    rounded_up,
    safe_name,
    safe_text,
    share_text,
    short_number,
    size_text,
)
from ciwrap.report.text_difference import text_difference_lines


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


def counted_lost(variable: VariableResult, count: int) -> str:
    """`2 elements`; of complex numbers `2 parts`, as each of both is counted by itself."""
    return plural(count, "part" if _is_complex(variable) else "element")


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
OF_TWO_RUNS = frozenset({"compare", "record"})


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
        elements = "its one element is" if is_one else f"all {elements_words(variable)}"
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
    said = plural(rest, "element" if variable.text is None else "number")
    return f"{said} ({'; '.join(notes)})" if notes else said


def match_title(coverage: Coverage, kind: str) -> str:
    """The verdict on what matches, in a few words: never more than was compared.

    kind: of the result, since the first side of `compare` and `record` need not be a golden.
    """
    if coverage.left_out:
        return f"Numbers match, but {left_out_words(coverage, kind)}"
    return "All numbers match" if coverage.is_whole else "All compared numbers match"


def left_out_words(coverage: Coverage, kind: str) -> str:
    """`3 variables of the golden were not compared (ignore)`."""
    count = coverage.left_out
    side = "first side" if kind in OF_TWO_RUNS else "golden"
    verb = "was" if count == 1 else "were"
    is_named = count != coverage.let_go and coverage.ignored != coverage.uncommon
    reasons = ["ignore"] if is_named else []
    reasons += ["of iterations left out"] if coverage.uncommon else []
    reasons += ["gone, not strict"] if coverage.let_go else []
    left_out = f"{plural(count, coverage.unit)} of the {side}"
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
    """`, at most 31 % of the bound used`; `, no drift`; nothing if that is unknown.

    share: 0 is known of values only, since residues show drift to within one of their steps.
    """
    if share is None:
        return ""
    return f", {at_most_words(share)} used" if share else ", no drift seen"


def at_most_words(share: float) -> str:
    """`at most 31 % of the bound`, `less than 0.1 % of the bound`."""
    return f"{at_most_text(share)} of the bound" if share <= 1 else f"at most {share_text(share)}"


def _differ_sentence(variable: VariableResult, *, with_percent: bool) -> str:
    if variable.differing_count is None:
        return by_digests_sentence(variable)
    count = variable.compared_elements or 0
    with_percent = with_percent and count > 1 and not variable.is_mask_unknown
    total = elements_words(
        variable, percent_text(variable.differing_count / count) if with_percent else ""
    )
    verb = differ_words(variable, is_one=variable.differing_count == 1)
    return f"{variable.differing_count:,} of {total} {verb}"


def differ_words(variable: VariableResult, *, is_one: bool) -> str:
    """What elements do that are not as they should be: `differ beyond atol=1e-6 rtol=0`.

    is_one: whether one element does.
    """
    if variable.expectation == "range":
        return f"{'lies' if is_one else 'lie'} out of the range"
    text = bound_text(variable)
    return f"{'differs' if is_one else 'differ'}{f' beyond {text}' if text else ''}"


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
    lines = []
    if variable.first_differences:
        first = variable.first_differences[0]
        where = f"first at {place_words(variable)}: " if first.index else ""
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


def cause_lines(variable: VariableResult, sides: tuple[str, str]) -> Iterator[str]:
    """What differing elements have in common, and the line of ciwrap.yaml that would help."""
    for one in variable.explanations:
        when = remedy_words(one)
        help_ = f"; {when}: {safe_name(one.remedy)}" if one.remedy else ""
        yield f"{cause_words(one, sides)}{help_}"


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


GOLDEN_AND_NEW = ("golden", "new")
A_AND_B = ("A", "B")
# Of numbers that the configuration tells, by its key.
_EXPECTED_AND_NEW = {"expect": ("expected", "new"), "range": ("nearest in range", "new")}


def sides_of(check: CheckResult, variable: VariableResult) -> tuple[str, str]:
    """What the sides of a variable are called: two runs are A and B."""
    return own_sides(variable, GOLDEN_AND_NEW if check.source_path is None else A_AND_B)


def own_sides(variable: VariableResult, sides: tuple[str, str]) -> tuple[str, str]:
    """The same, where the sides of the check have names of their own."""
    return _EXPECTED_AND_NEW.get(variable.expectation or "", sides)


# A box of this share of an array says nothing of where in it.
_NEARLY_ALL = 0.95
_FEW = 20


def box_words(variable: VariableResult) -> str:
    """Where all differing elements lie, in the array's own indices; nothing if that is
    everywhere or not known.
    """
    box, shape = variable.differing_box, variable.shape
    if variable.differing_count == 1 and variable.first_index is not None:
        at = f"at {index_text(variable.first_index)}" if variable.first_index else ""
        return f"{at}, in the interior" if _is_inside(variable.first_index, shape) else at
    # A document may claim a box in an array without elements.
    if box is None or not shape or 0 in shape or len(shape) != len(box.first_index):
        if variable.first_index:
            return f"first at {index_text(variable.first_index)}"
        return ""
    fixed = [
        axis
        for axis, (first, last) in enumerate(zip(box.first_index, box.last_index, strict=True))
        if first == last and shape[axis] > 1
    ]
    text = box_text(box, shape)
    if variable.differing_count == variable.compared_elements:
        return "in every element"
    is_nearly_all = _share_of(box, shape) >= _NEARLY_ALL
    faces = [one for one in variable.explanations if one.cause is Cause.BOUNDARY]
    if faces and is_nearly_all:
        return f"at the faces along axis {' and '.join(map(str, faces[0].axes))}"
    # A few elements span a box, and are not spread over it.
    if is_nearly_all and (variable.differing_count or 0) < _FEW and variable.first_index:
        return f"first at {index_text(variable.first_index)}"
    if not text.strip("[]:, "):
        return "spread over the whole array"
    if is_nearly_all:
        return "spread over nearly the whole array"
    free = [axis for axis, extent in enumerate(shape) if extent > 1 and axis not in fixed]
    if len(fixed) == 1 and len(free) == 2:
        return f"all in the plane {text}"
    if fixed and len(free) == 1:
        return f"all in the line {text}"
    return f"all within {text}"


def is_the_same_place(first: VariableResult, results: Iterable[VariableResult]) -> bool:
    """Whether all that does not match of a variable lies where the first of it does, as far as that
    is known of each.
    """
    others = [one for one in results if one.verdict.is_alarm and one.id != first.id]
    return all(_contains(first, one) for one in others)


def _contains(outer: VariableResult, inner: VariableResult) -> bool:
    if outer.shape != inner.shape:
        return False
    if outer.differing_count is not None and outer.differing_count == outer.compared_elements:
        return inner.differing_count == inner.compared_elements
    one, other = outer.differing_box, inner.differing_box
    if one is None or other is None or len(one.first_index) != len(other.first_index):
        return False
    ends = zip(one.first_index, other.first_index, one.last_index, other.last_index, strict=True)
    return all(low <= first and last <= high for low, first, high, last in ends)


def is_the_same_cause(first: VariableResult, results: Iterable[VariableResult]) -> bool:
    """Whether the same is known of all that does not match of a variable."""
    causes = _cause_of(first)
    return all(_cause_of(one) == causes for one in results if one.verdict.is_alarm)


def _cause_of(variable: VariableResult) -> tuple[object, ...]:
    """What is said of it in a few words: the first cause, without how many it holds on."""
    return next(((one.cause, one.values, one.axes) for one in variable.explanations), ())


def _is_inside(index: Sequence[int], shape: Sequence[int] | None) -> bool:
    """Whether an element of a field lies at none of its faces."""
    pairs = [(at, extent) for at, extent in zip(index, shape or (), strict=False) if extent > 1]
    return bool(pairs) and all(0 < at < extent - 1 for at, extent in pairs)


def _share_of(box: IndexBox, shape: Sequence[int]) -> float:
    """How much of the array lies in the box."""
    inside = math.prod(
        last - first + 1 for first, last in zip(box.first_index, box.last_index, strict=True)
    )
    return inside / math.prod(shape)


def box_text(box: IndexBox, shape: Sequence[int]) -> str:
    """`[0, :, 3:17]`, as NumPy would slice it."""
    parts = []
    for first, last, extent in zip(box.first_index, box.last_index, shape, strict=True):
        if first == last and extent > 1:
            parts.append(str(first))
        elif first == 0 and last == extent - 1:
            parts.append(":")
        else:
            parts.append(f"{first}:{last + 1}")
    return f"[{', '.join(parts)}]"


_MOST_RANGES = 3


def by_digests_sentence(variable: VariableResult) -> str:
    """What is sure of a variable if nobody knows how many of its elements differ."""
    at_least = variable.differing_count_at_least or 0
    at_most = variable.differing_count_at_most or 0
    total = plural((variable.element_count or 0) - (variable.masked_count or 0), "element")
    suspect = f"{variable.suspect_chunks or 0:,}"
    chunks = f"{suspect} of {plural(variable.chunk_count or 0, 'chunk')}"
    bound = "" if variable.bound is None or variable.bound.is_exact else variable.bound.text
    beyond = f" beyond {bound}" if bound else ""
    if at_least:
        count = f"from {at_least:,} to {at_most:,}"
        count = count if at_most > at_least else f"at least {at_least:,}"
        verb = "differs" if at_least == at_most == 1 else "differ"
        if not variable.moved_elements:
            proven = "differs" if variable.suspect_chunks == 1 else "differ"
            # So many are proof, if as many elements differ at least.
            state = proven if at_least >= (variable.suspect_chunks or 0) else "suspect"
            return f"{chunks} {state}: {count} of {total} {verb}{beyond}{_least_words(variable)}"
        first = "" if at_least == 1 else "the first: "
        moved = f"{first}{moved_words(first_moved(variable))}"
        least = _least_words(variable)
        return f"{chunks} suspect: {count} of {total} {verb}{beyond}{least}; {moved}"
    note = f" ({bound})" if bound else ""
    share = variable.guaranteed_share
    if share is not None and share >= 0.001:
        return (
            f"{chunks} suspect: in each, an element moved by more than"
            f" {share_text(rounded_down(share))}{note}{_lost_words(variable)}"
        )
    if share is not None or variable.golden_bound is not None:
        made = "" if variable.golden_bound is None else f", made with {variable.golden_bound},"
        return (
            f"{chunks} suspect: whether an element of them is beyond its bound{note}, the golden's"
            f" {variable.evidence}{made} cannot tell"
        )
    return (
        f"{chunks} suspect: in each, an element moved; whether beyond its"
        f" bound{note}, a golden that is a tree alone cannot tell"
    )


def _least_words(variable: VariableResult) -> str:
    """How far a value moved at least, where that is all that is known of the distance."""
    if not variable.least_share:
        return ""
    return f", one by at least {share_text(rounded_down(variable.least_share))}"


def by_digests_lines(variable: VariableResult) -> list[str]:
    """The elements that surely moved, the places of suspect chunks, and what is new there."""
    # The sentence tells of the first one.
    is_told = variable.differing_count is None and variable.differing_count_at_least
    first = first_moved(variable) if is_told and variable.moved_elements else None
    told = [one for one in variable.moved_elements if one is not first]
    lines = [f"{'element ' * bool(one.index)}{moved_words(one)}" for one in told[:_MOST_RANGES]]
    is_part = variable.suspect_chunks != variable.chunk_count
    if variable.differing_count is None and variable.suspect_ranges and is_part:
        shown = variable.suspect_ranges[:_MOST_RANGES]
        shape = variable.golden_shape or variable.shape or ()
        rest = (variable.suspect_range_count or len(variable.suspect_ranges)) - len(shown)
        more = f" and {rest} more ranges" if rest > 0 else ""
        lines.append(f"in elements {', '.join(range_text(one, shape) for one in shown)}{more}")
    new = variable.new_values
    if new is not None and not (new.number_count == 1 and variable.moved_elements):
        lines.append(f"in the suspect chunks: {new_values_words(new)}")
    return lines


def suspect_place(variable: VariableResult) -> str:
    """Where the suspect chunks lie: `in elements [100:120, :]`; nothing where that is not asked."""
    if variable.differing_count is not None or not variable.suspect_chunks:
        return ""
    if variable.suspect_chunks == variable.chunk_count:
        return "in the array's one chunk" if variable.chunk_count == 1 else "in every chunk"
    if not variable.suspect_ranges:
        return ""
    shape = variable.golden_shape or variable.shape or ()
    first = range_text(variable.suspect_ranges[0], shape)
    count = variable.suspect_range_count or 1
    return f"in elements {first}" if count == 1 else f"in {count:,} ranges, the first {first}"


def _lost_words(variable: VariableResult) -> str:
    """What the new run holds there that is not a number: `; 800 of their new numbers are NaN`."""
    new = variable.new_values
    words = "" if new is None else lost_words(new)
    if new is None or not words:
        return ", or is not a number on one side (NaN, infinite, missing)"
    return f", or is not a number on one side: of their {new.number_count:,} new numbers {words}"


def decide_words(verdicts: Iterable[Verdict]) -> str:
    """How to find out whether undecided variables differ; nothing if there are none."""
    if Verdict.UNDECIDED not in verdicts:
        return ""
    return (
        "to know whether undecided variables differ, compare the data of both runs (ciwrap"
        " compare OLD NEW); a golden keeps its run's data with 'evidence: data', from the next"
        " acceptance on"
    )


def first_moved(variable: VariableResult) -> MovedElement:
    """The first element that is surely beyond its bound; where none is, the first one that moved.

    Raises IndexError if none is known.
    """
    moved = variable.moved_elements
    return next((one for one in moved if one.is_beyond), moved[0])


def moved_words(moved: MovedElement) -> str:
    """`[3, 17] moved by 1.25 to 1.5 x the bound (golden between 1.0 and 1.001, new 1.3)`."""
    part = f" ({moved.part} part)" if moved.part else ""
    golden = safe_name(moved.golden_from or unknown_golden(moved))
    if moved.golden_to != moved.golden_from:
        golden = "between {} and {}".format(*told_apart(moved.golden_from, moved.golden_to))
    how_far = "differs"
    if moved.share_from is not None and moved.share_to is not None:
        how_far = f"moved by {share_interval_words(moved.share_from, moved.share_to)}"
    place = index_text(moved.index) if moved.index else "it"
    return f"{place}{part} {how_far} (golden {golden}, new {safe_name(moved.new)})"


def unknown_golden(moved: MovedElement) -> str:
    """What the golden held where its value is not known."""
    return "a fill value" if moved.golden_is_fill else "a number"


def told_apart(least: str | None, greatest: str | None) -> tuple[str, str]:
    """Two numbers with as few digits as tell them apart."""
    for digits in range(3, 18):
        texts = tuple(f"{float(text or 0):.{digits}g}" for text in (least, greatest))
        if texts[0] != texts[1]:
            return texts[0], texts[1]
    return least or "", greatest or ""


def share_interval_words(least: float, greatest: float) -> str:
    """`1.25 to 1.5 x the bound`, both ends rounded outwards."""
    if math.isinf(greatest):
        return "more than the bound"
    if least == greatest:
        return share_text(greatest)
    ends = rounded_down(least), rounded_up(greatest)
    return f"{short_number(ends[0])} to {short_number(ends[1])} x the bound"


def new_values_words(new: NewValues) -> str:
    """`3,840 new numbers, from 0.01 to 0.99, mean 0.5; 800 NaN`."""
    words = plural(new.number_count, "new number")
    if new.number_count == 1 and new.mean is not None:
        words += f", {short_number(new.mean)}"
    elif new.least is not None and new.greatest is not None and new.mean is not None:
        words += (
            f", from {short_number(new.least)} to {short_number(new.greatest)},"
            f" mean {short_number(new.mean)}"
        )
    lost = lost_words(new)
    return f"{words}; {lost}" if lost else words


def lost_words(new: NewValues) -> str:
    """`800 NaN and 2 infinite`; nothing if all are numbers."""
    counts = ((new.nan_count, "NaN"), (new.infinity_count, "infinite"))
    return " and ".join(f"{count:,} {what}" for count, what in counts if count)


def range_text(item: ChunkRange, shape: Sequence[int]) -> str:
    """Elements that follow one another in storage: `[100:120, :]` where that is a box of the array,
    else `[0, 3] to [3, 127] in storage order`.
    """
    first, last = item.first_index, item.last_index
    if len(first) != len(shape) or not shape:
        return f"{index_text(first)} to {index_text(last)} in storage order"
    axis = next((at for at in range(len(shape)) if first[at] != last[at]), len(shape) - 1)
    rest = range(axis + 1, len(shape))
    if all(first[at] == 0 and last[at] == shape[at] - 1 for at in rest):
        return box_text(IndexBox(first, last), shape)
    return f"{index_text(first)} to {index_text(last)} in storage order"


_LONGEST_TEMPLATE = 100
_LONGEST_TEXT = 60
# What each set of `ignore` covers.
_LOOKS = {
    "dates": "dates",
    "times": "timings",
    "paths": "paths",
    "hosts": "names of hosts",
    "pids": "numbers of processes",
    "memory": "sizes of memory",
}


def summary_line(text: TextResult) -> str:
    """`192 of 2,135 numbers differ, in 126 places; 119 lines have no partner`."""
    parts = []
    if text.differing:
        verb = "differs" if text.differing == 1 else "differ"
        numbers, places = plural(text.numbers, "number"), plural(text.place_count, "place")
        parts.append(f"{text.differing:,} of {numbers} {verb}, in {places}")
    unpaired = sum(text.unpaired_lines)
    if unpaired:
        parts.append(f"{unpaired:,} {'line has' if unpaired == 1 else 'lines have'} no partner")
    return "; ".join(parts)


def text_lines(variable: VariableResult, sides: tuple[str, str], *, is_verbose: bool) -> list[str]:
    """The places of a text that does not match, a line or two for each, and what to do."""
    text, most = variable.text, 50 if is_verbose else 5
    if text is None or not (text.differing or any(text.unpaired_lines)):
        return []
    lines = [summary_line(text)]
    for place in text.places[:most]:
        lines.append(text_place_words(place))
        lines += [f"  {hint}" for hint in place_hints(place, sides, with_place=is_verbose)]
    lines += _rest(text.place_count, min(most, len(text.places)), "place")
    for one in text.unpaired[:most]:
        lines.append(unpaired_words(one, sides))
        if one.remedies:
            lines.append(f"  {looks_like(one.remedies, sides)}")
    lines += _rest(text.unpaired_count, min(most, len(text.unpaired)), "template")
    return lines


def masked_lines(variable: VariableResult, most: int = 50) -> list[str]:
    """What was left out of a text, a line for each template."""
    text = variable.text
    if text is None:
        return []
    lines = [masked_words(one) for one in text.masked[:most]]
    return lines + _rest(text.masked_count, len(lines), "template that is left out")


def masked_words(one: MaskedText) -> str:
    """`left out by times: 3 numbers in 3 lines "Elapsed: ...", first at 5:10: 3.2 s / 3.4 s`."""
    template = safe_name(one.template, _LONGEST_TEMPLATE)
    words = f"left out by {one.by}: {plural(one.numbers, 'number')} in {plural(one.lines, 'line')}"
    if one.golden is None or one.new is None:
        return f'{words} "{template}"'
    golden, new = (safe_name(side.text, _LONGEST_TEXT) for side in (one.golden, one.new))
    return f'{words} "{template}", first at {position(one.golden, one.new)}: {golden} / {new}'


def _rest(count: int, shown: int, noun: str) -> list[str]:
    return [f"... and {plural(count - shown, f'more {noun}')}"] if count > shown else []


def text_place_words(place: DifferingNumbers) -> str:
    """`6 x "MD| step [s] #" number 1, first at 747:52: 2.5 / 15.3`."""
    golden, new = (safe_name(one.text, _LONGEST_TEXT) for one in (place.golden, place.new))
    return (
        f'{place.count:,} x "{safe_name(place.template, _LONGEST_TEMPLATE)}" number {place.number},'
        f" first at {position(place.golden, place.new)}: {golden} / {new}"
    )


def place_hints(place: DifferingNumbers, sides: tuple[str, str], *, with_place: bool) -> list[str]:
    """What to know about a place, and what would leave it out."""
    hints = []
    if place.is_part:
        hints.append("may be part of a longer number, so it has to be written alike")
    if place.remedies:
        hints.append(looks_like(place.remedies, sides))
    elif with_place and place.place and safe_text(place.place) == place.place:
        is_option = sides == A_AND_B
        quoted = place.place.replace("'", "'\\''" if is_option else "''")
        words = f"--ignore-places '{quoted}'" if is_option else f"ignore_places: ['{quoted}']"
        hints.append(f"to leave it out: {words}")
    return hints


def position(golden: TextPlace, new: TextPlace) -> str:
    """`747:52`, and the other side's place where that is another."""
    ours, theirs = (f"{one.line}:{one.column}" for one in (golden, new))
    return ours if ours == theirs else f"{ours} / {theirs}"


def difference_text(place: DifferingNumbers) -> str:
    """The largest difference of a place; nothing where it is none of numbers."""
    return short_number(place.max_abs_difference) if place.max_abs_difference else ""


def unpaired_words(one: UnpairedLines, sides: tuple[str, str]) -> str:
    """`3 x "warning: #" only in golden, first at line 12`."""
    parts = []
    for side, count, first in zip(
        sides, (one.golden_count, one.new_count), (one.golden, one.new), strict=True
    ):
        if first is not None:
            where = "first at line" if count > 1 else "line"
            parts.append(f"{grouped_number(count)} in {side}, {where} {first.line}")
    template = safe_name(one.template, _LONGEST_TEMPLATE) or "(blank)"
    return f'no partner: "{template}": {"; ".join(parts)}'


def looks_like(remedies: tuple[str, ...], sides: tuple[str, str]) -> str:
    """`looks like timings: ignore: [times]`, or the options where two runs are compared."""
    words = " and ".join(_LOOKS[one] for one in remedies if one in _LOOKS)
    if sides == A_AND_B:
        options = " ".join(f"--ignore-tokens {one}" for one in remedies)
        return f"looks like {words}: {options}"
    return f"looks like {words}: ignore: [{', '.join(remedies)}]"


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
    Cause.ONE_RANK: "one rank",
    Cause.ACROSS_RANKS: "cut among the ranks in another way",
    Cause.STRIPE: "one thread's rows",
    Cause.BOUNDARY: "at the faces",
    Cause.NEAR_ZERO: "next to zero",
    Cause.WIDER_BOUND: "",
}


def cause_name(one: Explanation) -> str:
    """`sign flipped`, `factor 1000`; nothing for what is no cause."""
    name = _NAMES[one.cause]
    if one.cause is Cause.LESS_PRECISE and one.words:
        return f"rounded to {safe_name(one.words)}"
    if one.values and one.cause in (Cause.CONSTANT_FACTOR, Cause.CONSTANT_OFFSET):
        return f"{name.removeprefix('constant ')} {_value_words(one)}"
    return name


def cause_words(one: Explanation, sides: tuple[str, str]) -> str:
    """`in each of them the sign is flipped: new = -golden`; how many, where it is not each."""
    if one.cause is Cause.WIDER_BOUND:
        return _passing_words(one)
    if one.of_means:
        is_whole = one.held_count >= one.differing_count
        which = "all" if is_whole else f"{one.held_count:,} of"
        return (
            f"in the means of {which} {one.differing_count:,} suspect chunks,"
            f" {_cause_words(one, *sides)}, to within the bound"
        )
    if one.cause is Cause.ONE_RANK:
        rank, count = one.values
        return f"of {count:.0f} ranks only rank {rank:.0f} differs"
    if one.cause is Cause.ACROSS_RANKS:
        return _across_ranks_words(one, *sides)
    whole = one.held_count >= one.differing_count
    if whole and one.cause in _OF_THE_ARRAY:
        return _cause_words(one, *sides)
    if one.cause in (Cause.BOUNDARY, Cause.STRIPE):
        return f"each lies {_cause_words(one, *sides)}"
    share = "in each of them" if whole else f"in {one.held_count:,} of {one.differing_count:,}"
    if one.differing_count == 1:
        share = "in it"
    return f"{share} {_cause_words(one, *sides)}"


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
        Cause.FILL_VALUE: "if it stands for a missing value",
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
    but = "" if whole else f" ({one.held_count:,} of {one.differing_count:,} elements)"
    return f"{ranks}, dealt out in another way{but}"


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


def _cause_words(one: Explanation, golden: str, new: str) -> str:
    value = _value_words(one)
    passing = f"; {_passing_words(one)}" if one.values else ""
    layers = "1 layer" if value == "1" else f"{value} layers"
    plus = f"- {value[1:]}" if value.startswith("-") else f"+ {value}"
    side, other = (golden, new) if one.on_golden else (new, golden)
    axes = " and ".join(map(str, one.axes))
    called = safe_name(one.words or "")
    named = f" ({called})" if called else ""
    # Where there is nothing to configure it is a fill value by the configuration.
    which = "perhaps a fill value" if one.remedy else "a fill value"
    return {
        Cause.SIGN_FLIPPED: f"the sign is flipped: {new} = -{golden}",
        Cause.CONSTANT_OFFSET: f"{new} = {golden} {plus}",
        Cause.CONSTANT_FACTOR: f"{new} = {golden} x {value}{named}",
        Cause.ALL_ZERO: f"{new} is 0",
        Cause.ALL_NAN: f"{new} is NaN",
        Cause.FILL_VALUE: f"{side} is {value}, beyond all other finite values, {which}",
        Cause.LESS_PRECISE: f"{side} is {other} rounded to {called}",
        Cause.BIT_FLIPPED: f"one bit is flipped: bit {value}, of the {called}",
        Cause.BYTE_ORDER: f"{new} has the bytes of {golden} in the other order",
        Cause.PERIODIC_IMAGE: f"{new} is {golden} moved by whole periods of"
        f" {', '.join(dict.fromkeys(_six_digits(period) for period in one.values if period))}",
        Cause.SHIFTED: f"{new} is {golden} moved by {value} along axis {axes}",
        Cause.TRANSPOSED: f"{new} is {golden} with axes {axes} exchanged",
        Cause.COLUMNS_FIRST: f"{new} is {golden} written in the other order of axes (C, Fortran)",
        Cause.EXCHANGED: f"{new} is {golden} with components {_reordered(one.values, axes)}",
        Cause.OTHER_ORDER: f"{new} has the rows of {golden} in another order",
        Cause.OTHER_ITERATION: f"{new} is {golden} of iteration {value}",
        Cause.ONE_RANK: "",
        Cause.ACROSS_RANKS: "",
        Cause.STRIPE: f"in the rows of axis {axes} that thread {value} of"
        f" {one.values[-1] if one.values else 0:.0f} would be dealt",
        Cause.BOUNDARY: f"within {layers} of the faces along axis {axes}",
        Cause.NEAR_ZERO: f"{golden} is next to zero{passing}",
        Cause.WIDER_BOUND: "",
    }[one.cause]
