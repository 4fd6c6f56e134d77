"""What a result says, in sentences; every renderer uses these same words."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.model import Evidence, Verdict
from ciwrap.model.coverage import grouped_plural
from ciwrap.report.causes import cause_words, remedy_words
from ciwrap.report.text import (
    index_text,
    percent_text,
    plural,
    safe_name,
    safe_text,
    seconds_text,
    share_text,
    short_number,
)
from ciwrap.report.text_words import text_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ciwrap.model import (
        CheckResult,
        ChunkRange,
        CommandOutcome,
        Coverage,
        MovedElement,
        NewValues,
        RunResult,
        VariableResult,
    )

_MOST_RANGES = 3
_MOST_BOUNDS = 3
_LONGEST_NAMES = 1000


def bounds_line(check: CheckResult) -> str:
    """By which bounds two runs were compared, and who asked for them."""
    origin = check.bounds_from or ""
    if origin == "none given":
        return "bound: none given, compared exactly"
    kinds = Counter(
        "exact" if one.bound.is_exact else one.bound.text
        for one in check.variables
        if one.bound is not None
    )
    said = [text for text, _ in kinds.most_common(_MOST_BOUNDS)]
    if len(kinds) > 1:
        said = [f"{text} ({plural(kinds[text], 'variable')})" for text in said]
    more = ", ..." if len(kinds) > _MOST_BOUNDS else ""
    words = {"given": "as given"}.get(origin, f"of {origin}")
    return f"bound: {', '.join(said)}{more}, {words}" if said else f"bound: {words}"


def arrays_words(arrays: int, variables: int) -> str:
    """`2 variables`, or `96 arrays of 2 variables`: a variable has an array in each checkpoint.

    variables: 0 if only the number of arrays is known.
    """
    if arrays == variables:
        return grouped_plural(arrays, "variable")
    of = f" of {grouped_plural(variables, 'variable')}" if variables else ""
    return f"{grouped_plural(arrays, 'array')}{of}"


def total_words(run: RunResult) -> str:
    """How many arrays of how many variables the result has a verdict on."""
    arrays = sum(check.variable_count for check in run.checks)
    listed = [(check.name, one.name) for check in run.checks for one in check.variables]
    coverage = run.coverage
    variables = len(set(listed)) if len(listed) == arrays else 0
    if not variables and coverage.compared_variables == arrays:
        variables = coverage.compared_names
    return arrays_words(arrays, variables)


def worst_first(variables: Iterable[VariableResult]) -> list[VariableResult]:
    """Not comparable, then differing by how far beyond the bound, then matching by drift."""
    return sorted(variables, key=_badness)


def _badness(variable: VariableResult) -> tuple[int, float, float, tuple[int, int, str]]:
    share = (variable.used_interval or (0.0, 0.0))[1]
    if variable.max_bound_share is None and variable.verdict.is_alarm:
        share = variable.guaranteed_share or 0.0
    count = variable.differing_count
    if count is None:
        count = variable.differing_count_at_most or 0
    return (-variable.verdict.severity, -share, -float(count), variable.id.sort_key)


def headline(variable: VariableResult) -> str:
    """One sentence on one variable, without its name."""
    if variable.verdict is Verdict.NOT_COMPARABLE:
        return safe_text(variable.reason)
    if variable.verdict is Verdict.MATCH:
        return _match_sentence(variable)
    return _differ_sentence(variable)


def _match_sentence(variable: VariableResult) -> str:
    elements = f"all {elements_words(variable)}"
    if variable_is_exact(variable):
        return f"{elements} equal"
    return f"{elements} within the bound{used_words(used_share(variable))}"


def elements_words(variable: VariableResult, counted: Callable[[int, str], str] = plural) -> str:
    """How many elements were compared: `10 elements`, `6 elements (4 more are masked)`."""
    total, masked = variable.element_count or 0, variable.masked_count
    if variable.text is not None:
        said = counted(total - (masked or 0), "number")
        return f"{said} ({masked:,} more by ignore)" if masked else said
    if masked:
        verb = "is" if masked == 1 else "are"
        rest = counted(max(0, total - masked), "element")
        return f"{rest} ({masked:,} more {verb} masked)"
    said = counted(total, "element")
    is_unknown = variable.mask is not None and masked is None
    return f"{said} (less those masked)" if is_unknown else said


def match_title(coverage: Coverage, kind: str) -> str:
    """The verdict on what matches, in a few words: never more than was compared.

    kind: of the result, since the first side of `compare` is no golden.
    """
    if coverage.left_out:
        return f"Numbers match, but {left_out_words(coverage, kind)}"
    return "All numbers match" if coverage.is_whole else "All compared numbers match"


def left_out_words(coverage: Coverage, kind: str) -> str:
    """`3 variables of the golden were not compared (ignore)`."""
    count = coverage.left_out
    side = "first side" if kind == "compare" else "golden"
    verb = "was" if count == 1 else "were"
    reasons = [] if count == coverage.let_go else ["ignore"]
    reasons += ["gone, not strict"] if coverage.let_go else []
    left_out = f"{grouped_plural(count, 'variable')} of the {side}"
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
    `12.5 to 37.5 % of the bound`, `less than 25 % of the bound`.
    """
    if low == high:
        return share_text(high)
    if percent_text(low) in ("0 %", "< 0.1 %"):
        return f"less than {share_text(high)}"
    return f"{percent_text(low).removesuffix(' %')} to {percent_text(high)} of the bound"


def used_words(share: float | None) -> str:
    """`, at most 31 % of the bound used`; `, no drift`; nothing if that is unknown.

    share: 0 is known of values only, since residues show drift to within one of their steps.
    """
    if share is None:
        return ""
    return f", at most {share_text(share)} used" if share else ", no drift seen"


def _differ_sentence(variable: VariableResult) -> str:
    total = elements_words(variable)
    if variable.differing_count is not None:
        return f"{variable.differing_count} of {total} differ{bound_words(variable)}"
    at_least = variable.differing_count_at_least or 0
    at_most = variable.differing_count_at_most or 0
    chunks = f"{variable.suspect_chunks or 0} of {plural(variable.chunk_count or 0, 'chunk')}"
    if at_least and variable.moved_elements:
        return f"{moved_words(variable.moved_elements[0])}{_more_moved(variable)}"
    if at_least:
        return (
            f"{chunks} differ: from {at_least} to {at_most} of {total}"
            f" differ{bound_words(variable)}"
        )
    if variable.evidence is Evidence.RESIDUES and variable.guaranteed_share is not None:
        return (
            f"{chunks} suspect: in each, an element moved by more than"
            f" {percent_text(variable.guaranteed_share)} of its bound{_bound_note(variable)}"
            f"{_lost_words(variable)}"
        )
    return (
        f"{chunks} suspect: in each, an element moved; whether beyond its"
        f" bound{_bound_note(variable)}, a golden that is a tree alone cannot tell"
    )


def _lost_words(variable: VariableResult) -> str:
    """What the new run holds there that is no number: `; 800 of their new numbers are NaN`."""
    new = variable.new_values
    if new is None:
        return ", or is no number on one side (NaN, infinite, missing)"
    counts = ((new.nan_count, "NaN"), (new.infinity_count, "infinite"))
    lost = [f"{count:,} {words}" for count, words in counts if count]
    if not lost:
        return ", or is no number on one side (NaN, infinite, missing)"
    words = " and ".join(lost)
    return f", or is no number on one side: of their {new.number_count:,} new numbers {words}"


def decide_words(verdicts: Iterable[Verdict]) -> str:
    """How to find out whether what is suspect differs; nothing if nothing is."""
    if Verdict.SUSPECT not in verdicts:
        return ""
    return (
        "to decide what is suspect, compare with the outputs of the run that the golden was made of"
        " (ciwrap compare OLD NEW); 'evidence: data' keeps them in the golden from the next"
        " acceptance on"
    )


def moved_words(moved: MovedElement) -> str:
    """`[3, 17] moved by 1.25 to 1.5 x the bound (golden between 1.0 and 1.001, new 1.3)`."""
    part = f" ({moved.part} part)" if moved.part else ""
    golden = safe_name(moved.golden_from or "a number")
    if moved.golden_to != moved.golden_from:
        golden = "between {} and {}".format(*_told_apart(moved.golden_from, moved.golden_to))
    how_far = "differs"
    if moved.share_from is not None and moved.share_to is not None:
        how_far = f"moved by {_interval_words(moved.share_from, moved.share_to)}"
    place = index_text(moved.index) if moved.index else "it"
    return f"{place}{part} {how_far} (golden {golden}, new {safe_name(moved.new)})"


def _told_apart(least: str | None, greatest: str | None) -> tuple[str, str]:
    """Two numbers with as few digits as tell them apart."""
    for digits in range(3, 18):
        texts = tuple(f"{float(text or 0):.{digits}g}" for text in (least, greatest))
        if texts[0] != texts[1]:
            return texts[0], texts[1]
    return least or "", greatest or ""


def _interval_words(least: float, greatest: float) -> str:
    if math.isinf(greatest):
        return "more than the bound"
    if short_number(least) == short_number(greatest):
        return share_text(greatest)
    return f"{short_number(least)} to {short_number(greatest)} x the bound"


def _more_moved(variable: VariableResult) -> str:
    """What the first moved element leaves open: `; 3 of 24 chunks are suspect, 1 is solved`."""
    suspect, solved = variable.suspect_chunks or 0, variable.solved_chunks or 0
    if suspect == 1 and len(variable.moved_elements) == 1:
        return ""
    chunks = f"{suspect} of {plural(variable.chunk_count or 0, 'chunk')}"
    others = f", {plural(len(variable.moved_elements) - 1, 'other element')} told below"
    more = others if len(variable.moved_elements) > 1 else ""
    return f"; {chunks} suspect, of which {solved} solved{more}"


def bound_words(variable: VariableResult) -> str:
    """` beyond atol=1e-6 rtol=0`; nothing for a bound of 0."""
    if variable.bound is None or variable.bound.is_exact:
        return ""
    return f" beyond {variable.bound.text}"


def _bound_note(variable: VariableResult) -> str:
    return f" ({variable.bound.text})" if variable.bound is not None else ""


def evidence_words(variable: VariableResult) -> str:
    """What the verdict rests on."""
    if variable.evidence is None:
        return ""
    if variable.evidence is Evidence.RESIDUES:
        return f"the golden's residues (k = {variable.residue_levels})"
    return {
        Evidence.DATA: "the data of both sides",
        Evidence.TREE: "the golden's tree alone",
    }[variable.evidence]


# What the two sides of a comparison are called.
GOLDEN_AND_NEW = ("golden", "new")
A_AND_B = ("A", "B")


def sides_of(check: CheckResult) -> tuple[str, str]:
    """What the sides of a check are called: two runs are A and B."""
    return GOLDEN_AND_NEW if check.source_path is None else A_AND_B


def detail_lines(
    variable: VariableResult,
    sides: tuple[str, str] = GOLDEN_AND_NEW,
    *,
    most_places: int = 5,
) -> list[str]:
    """Where and how much, a line for each fact that is known; for variables that differ, and for
    texts of which lines have no partner.
    """
    if variable.text is not None:
        return text_lines(variable, most_places, sides)
    if not variable.verdict.is_alarm:
        return []
    lines: list[str] = []
    if variable.first_differences:
        first = variable.first_differences[0]
        line = (
            f"first at {place_words(variable)}: {sides[0]} {safe_name(first.golden)},"
            f" {sides[1]} {safe_name(first.new)}"
        )
        if first.abs_difference is not None:
            line += f", |difference| {short_number(first.abs_difference)}"
        if first.bound_share is not None and not variable_is_exact(variable):
            line += f" = {share_text(first.bound_share)}"
        lines.append(line)
    lines += _largest_lines(variable)
    lines += _cause_lines(variable, sides)
    lines += _special_lines(variable)
    is_told = variable.differing_count is None and variable.differing_count_at_least
    told = variable.moved_elements[1 if is_told else 0 :]
    lines += [f"element {moved_words(one)}" for one in told[:_MOST_RANGES]]
    is_part = variable.suspect_chunks != variable.chunk_count
    if variable.differing_count is None and variable.suspect_ranges and is_part:
        lines.append(_ranges_line(variable))
    if variable.new_values is not None:
        lines.append(new_values_words(variable.new_values))
    return lines


def new_values_words(new: NewValues) -> str:
    """`new numbers there: 3,840, from 0.01 to 0.99, mean 0.5; 800 NaN`."""
    words = f"new numbers there: {new.number_count:,}"
    if new.least is not None and new.greatest is not None and new.mean is not None:
        words += (
            f", from {short_number(new.least)} to {short_number(new.greatest)},"
            f" mean {short_number(new.mean)}"
        )
    counts = ((new.nan_count, "NaN"), (new.infinity_count, "infinite"))
    lost = [f"{count:,} {what}" for count, what in counts if count]
    return f"{words}; {', '.join(lost)}" if lost else words


def _cause_lines(variable: VariableResult, sides: tuple[str, str]) -> Iterator[str]:
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


def variable_is_exact(variable: VariableResult) -> bool:
    return variable.bound is None or variable.bound.is_exact


def _largest_lines(variable: VariableResult) -> list[str]:
    # 0 where what differs is NaN against a number, which has no difference.
    if not variable.max_abs_difference or variable.max_abs_index is None:
        return []
    line = (
        f"largest |difference| {short_number(variable.max_abs_difference)}"
        f" at {index_text(variable.max_abs_index)}"
    )
    # Nothing is relative to a golden number that is 0.
    if variable.max_rel_difference:
        line += f"; largest relative {short_number(variable.max_rel_difference)}"
    share = variable.max_bound_share
    if share is not None and math.isfinite(share) and not variable_is_exact(variable):
        line += f"; up to {share_text(share)}"
    return [line]


def _special_lines(variable: VariableResult) -> list[str]:
    counts = (
        (variable.nan_mismatch_count, "NaN on one side only"),
        (variable.inf_mismatch_count, "infinity on one side only"),
        (variable.missing_mismatch_count, "missing on one side only"),
    )
    said = [f"{plural(count, 'element')} {words}" for count, words in counts if count]
    return [", ".join(said)] if said else []


def _ranges_line(variable: VariableResult) -> str:
    shown = variable.suspect_ranges[:_MOST_RANGES]
    shape = variable.golden_shape or variable.shape or ()
    line = "in elements " + ", ".join(range_text(item, shape) for item in shown)
    total = variable.suspect_range_count or len(variable.suspect_ranges)
    if total > len(shown):
        line += f" and {total - len(shown)} more ranges"
    return line


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
        whole = first[axis] == 0 and last[axis] == shape[axis] - 1 and shape[axis] > 1
        part = str(first[axis]) if first[axis] == last[axis] else f"{first[axis]}:{last[axis] + 1}"
        parts = [*map(str, first[:axis]), ":" if whole else part, *(":" for _ in rest)]
        return f"[{', '.join(parts)}]"
    return f"{index_text(first)} to {index_text(last)} in storage order"


def accept_command(run: RunResult) -> str:
    """What to type if the new numbers are right; nothing if there is no golden to accept."""
    names = [check.name for check in run.checks if check.verdict.is_alarm]
    if not names or run.kind not in ("check", "run"):
        return ""
    words = " ".join(shlex.quote(name) for name in dict.fromkeys(names))
    if len(words) > _LONGEST_NAMES or not words.isprintable():
        # Without names all checks are meant; those that match stay as they are.
        return "ciwrap accept --reason 'WHY'"
    return f"ciwrap accept {words} --reason 'WHY'"


def command_ending(command: CommandOutcome) -> str:
    """How the command ended: `ended with exit code 3`."""
    if command.timed_out:
        return f"ran out of time after {seconds_text(command.seconds)}"
    if command.exit_code is None:
        return "could not be run"
    if command.exit_code < 0:
        return f"was ended by signal {-command.exit_code}"
    return f"ended with exit code {command.exit_code}"


def counted_evidence(check: CheckResult) -> str:
    """`16 data, 32 residues, 8 tree`."""
    kinds = Counter(v.evidence.value for v in check.variables if v.evidence is not None)
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in sorted(kinds))
