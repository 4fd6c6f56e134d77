"""Texts, and series out of texts: the core compares tokens, series are paired by their steps."""

from __future__ import annotations

import codecs
import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.values import NO_STEP, ArrayValues, SeriesFacts, StoredSteps, TextRules, as_bytes
from ciwrap.base.errors import (
    AlignmentError,
    ConfigError,
    LabelMismatchError,
    NotComparableError,
    ShapeMismatchError,
)
from ciwrap.base.late import numpy as np
from ciwrap.check.two_sides import GOLDEN, refuse_cut
from ciwrap.golden.trees import build_tree
from ciwrap.model import (
    DifferingInSeries,
    Evidence,
    NumberInText,
    SeriesResult,
    VariableId,
    VariableResult,
    VariableSettings,
    Verdict,
)
from ciwrap.model.variable_result import (
    DifferingNumbers,
    MaskedText,
    TextPlace,
    TextResult,
    UnpairedLines,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ciwrap.arrays.values import PlaceInText, Values
    from ciwrap.check.two_sides import Wording, Work

# Places of each kind that a result keeps.
MOST_PLACES = 50


def compare_texts(
    work: Work,
    result: VariableResult,
    reference: Values,
    new: Values,
    settings: VariableSettings,
    wording: Wording,
) -> VariableResult:
    """Compares the numbers of all lines that have a partner; lines without one make the texts not
    comparable.

    Raises ConfigError for settings that a text cannot have, CorruptFileError for what is not text,
    FileLimitError for a line of more than 1 MiB, and the errors of reading.
    """
    refuse_settings(settings)
    rules = new.text or reference.text or TextRules()
    sides = _side(reference), _side(new)
    found = _core.compare_texts(
        *sides,
        atol=settings.bound.atol,
        rtol=settings.bound.rtol,
        equal_nan=settings.equal_nan,
        ignore=rules.ignore,
        ignore_lines=rules.ignore_lines,
        ignore_places=rules.ignore_places,
        sections=section_rows(rules, *sides),
        engine=work.resources.engine,
    )
    text = _text_result(found, rules)
    reason = _why_not(text, found, wording)
    if reason is not None:
        verdict = Verdict.NOT_COMPARABLE
    else:
        verdict = Verdict.DIFFER if text.differing else Verdict.MATCH
    return replace(
        result,
        verdict=verdict,
        reason=reason,
        bound=settings.bound,
        evidence=Evidence.DATA,
        dtype="text",
        shape=None,
        golden_dtype=None,
        golden_shape=None,
        element_count=text.numbers + text.ignored,
        masked_count=text.ignored or None,
        differing_count=None if reason else text.differing,
        max_abs_difference=found["max_abs_difference"],
        max_rel_difference=found["max_rel_difference"],
        max_bound_share=found["max_bound_share"],
        nan_mismatch_count=found["nan_mismatch_count"],
        inf_mismatch_count=found["inf_mismatch_count"],
        text=text,
    )


def section_rows(rules: TextRules, golden: Any, new: Any) -> list[tuple[str, Any, Any]]:
    """The places of sections, and the lines that these are on both sides, as the core takes them.

    Raises ConfigError for what is no template, and the errors of reading.
    """
    if not rules.sections:
        return []
    from ciwrap.formats.text_sections import section_ranges

    ours, theirs = (section_ranges(side, rules.sections) for side in (golden, new))
    places = (one.place for one in rules.sections)
    return list(zip(places, ours, theirs, strict=True))


def refuse_settings(settings: VariableSettings) -> None:
    """Raises ConfigError for settings that mean nothing for a text compared token by token."""
    given = [
        name
        for name, is_set in (
            ("ulps", settings.bound.ulps),
            (settings.scale and f"atol: {settings.scale.text}", settings.scale),
            ("mask", settings.mask),
            ("align_by", settings.align_by),
            ("period", settings.period),
            ("fill_values", settings.fill_values),
            ("mixed_precision", settings.mixed_precision),
            ("combine", settings.combine != "sum"),
            ("up_to_sign", settings.up_to_sign != "none"),
        )
        if is_set
    ]
    if given:
        raise ConfigError(
            f"{given[0]!r} means nothing for a text that is compared token by token",
            remedy="give atol and rtol",
        )


def check_golden_text(
    work: Work,
    result: VariableResult,
    golden: _core.GoldenVariable,
    reference: Values | None,
    new: Values,
    settings: VariableSettings,
) -> VariableResult:
    """Compares a new text with a golden one; reference: the golden's text, None if it keeps its
    fingerprint alone, which tells only whether the bytes are equal.

    Raises as `compare_texts` does, and NotComparableError for other bytes than those of which there
    is only a fingerprint.
    """
    if reference is not None:
        return compare_texts(work, result, reference, new, settings, GOLDEN)
    refuse_settings(settings)
    tree = None
    if tuple(golden.shape) == tuple(new.shape):
        built = build_tree(
            golden.tree.parameters, new, resources=work.resources, progress=work.progress
        )
        tree, work.engine = built.tree, built.engine
    if tree is None or tree.root != golden.tree.root:
        raise NotComparableError(
            "the golden keeps a fingerprint of the text alone, and the new text has other bytes, so"
            " its numbers cannot be compared",
            remedy="set 'evidence: data' and accept the outputs anew",
        )
    # Equal bytes: the text is its own partner, and its numbers are counted.
    same = compare_texts(work, result, new, new, settings, GOLDEN)
    return replace(same, evidence=Evidence.TREE, root=tree.root.hex())


def _side(values: Values) -> Any:
    """What the core takes for a side: a path, or the bytes."""
    region = values.region
    if region is not None:
        return region.path
    return as_bytes(values.read(0, values.element_count))


def _why_not(text: TextResult, found: Mapping[str, Any], wording: Wording) -> str | None:
    """Why the texts are not comparable; None if they are."""
    golden, new = text.unpaired_lines
    if golden or new:
        one = text.unpaired[0]
        first = one.golden or one.new
        assert first is not None
        first_side, second_side = wording.sides
        where = first_side if one.golden else second_side
        total = golden + new
        lines = "1 line has" if total == 1 else f"{total:,} lines have"
        verb = "number differs" if text.differing == 1 else "numbers differ"
        numbers = f"; of the others, {text.differing:,} {verb}" if text.differing else ""
        return (
            f"{lines} no partner on the other side ({golden:,} {first_side}, {new:,}"
            f" {second_side}), as line {first.line} {where}{numbers}"
        )
    left_out = sum(text.ignored_lines)
    if left_out and not found["pair_count"]:
        return "every line is left out, so nothing was compared"
    if text.ignored and not text.numbers:
        return f"every number ({text.ignored:,}) is left out, so none was compared"
    return None


def _text_result(found: Mapping[str, Any], rules: TextRules) -> TextResult:
    golden, new = found["golden"], found["new"]

    def both(key: str) -> tuple[int, int]:
        return golden[key], new[key]

    utf8 = {"golden": golden["is_utf8"], "new": new["is_utf8"]}
    places = [
        DifferingNumbers(
            _decoded(one["template"]),
            one["number"],
            one["count"],
            _place(one["golden"]),
            _place(one["new"]),
            one["max_abs_difference"],
            one["max_bound_share"],
            tuple(one["remedies"]),
            one["is_part"],
            _decoded(one["place"]),
        )
        for one in found["number_groups"][:MOST_PLACES]
    ]
    unpaired = [
        UnpairedLines(
            _decoded(one["template"]),
            one["golden_count"],
            one["new_count"],
            None if one["golden"] is None else _place(one["golden"]),
            None if one["new"] is None else _place(one["new"]),
            tuple(one["remedies"]),
        )
        for one in found["line_groups"][:MOST_PLACES]
    ]
    masked = [
        MaskedText(
            one["by"],
            _decoded(one["template"]),
            one["line_count"],
            one["number_count"],
            _place(one["golden"]),
            _place(one["new"]),
        )
        for one in found["masked_groups"][:MOST_PLACES]
    ]
    whole = [("ignore_places", str(one)) for one in rules.sections if not one.place]
    line_rules = [*(("ignore_lines", pattern) for pattern in rules.ignore_lines), *whole]
    left_out = [
        MaskedText(by, words, max(ours, theirs), numbers)
        for (by, words), (ours, theirs, numbers) in zip(
            line_rules, found["lines_left_out"], strict=True
        )
        if ours or theirs
    ]
    return TextResult(
        lines=both("line_count"),
        unpaired_lines=both("unpaired_lines"),
        ignored_lines=both("ignored_lines"),
        numbers=found["number_count"] - found["ignored_count"],
        differing=found["differing_count"],
        ignored=found["ignored_count"] + found["ignored_line_numbers"],
        places=tuple(places),
        place_count=found["number_group_count"],
        unpaired=tuple(unpaired),
        unpaired_count=found["line_group_count"],
        masked=(*masked, *left_out),
        masked_count=found["masked_group_count"] + len(left_out),
        not_utf8=tuple(side for side, is_utf8 in utf8.items() if not is_utf8),
    )


def _place(one: Mapping[str, Any]) -> TextPlace:
    return TextPlace(one["line"], one["column"], _decoded(one["text"]))


def _decoded(data: bytes) -> str:
    """UTF-8, or Latin-1 where it is none; a character that was cut at the end is left out."""
    try:
        # What is cut off at the end is no fault of the text.
        text, used = codecs.utf_8_decode(data, "strict", False)
    except UnicodeDecodeError:
        return data.decode("latin-1")
    return text if used > len(data) - 4 else data.decode("latin-1")


_MOST_TOLD = 3
_REMEDY = "`strict: {count: false}` in the check compares the steps that both have"


class ChosenSeries(SeriesFacts):
    """Some elements of a series."""

    def __init__(self, facts: SeriesFacts, chosen: NDArray[np.int64]) -> None:
        self._facts = facts
        self._chosen = chosen
        self.steps = None if facts.steps is None else facts.steps[chosen]
        self.steps_name = facts.steps_name
        self.printed_digits = facts.printed_digits
        self.printed_exponent = facts.printed_exponent

    def place(self, element: int) -> PlaceInText | None:
        return self._facts.place(int(self._chosen[element]))


class ChosenValues(ArrayValues):
    """Some elements of a series, in memory."""

    def __init__(self, values: Values, facts: SeriesFacts, chosen: NDArray[np.int64]) -> None:
        whole = np.frombuffer(values.read_all(), dtype=values.dtype)
        super().__init__(whole[chosen], values.dtype)
        self.labels = values.labels
        self._series = ChosenSeries(facts, chosen)

    @property
    def series(self) -> SeriesFacts:
        return self._series


class Pairing(Struct, frozen=True):
    """Positions of both sides' elements that belong together; those that only one side has."""

    ours: NDArray[np.int64]
    theirs: NDArray[np.int64]
    only_ours: NDArray[np.int64]
    only_theirs: NDArray[np.int64]

    @property
    def is_whole(self) -> bool:
        return not self.only_ours.size and not self.only_theirs.size


def pair_steps(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> Pairing:
    """Pairs elements by step; where a step is there several times, one after the other."""
    if np.array_equal(ours, theirs):
        every, none = np.arange(ours.size), np.empty(0, dtype=np.int64)
        return Pairing(every, every, none, none)
    mine, other = _numbered(ours), _numbered(theirs)
    _, left, right = np.intersect1d(mine, other, assume_unique=True, return_indices=True)
    order = np.argsort(left)
    left, right = left[order], right[order]
    return Pairing(
        left,
        right,
        np.setdiff1d(np.arange(ours.size), left),
        np.setdiff1d(np.arange(theirs.size), right),
    )


def _numbered(steps: NDArray[np.int64]) -> NDArray[np.void]:
    """Each step, and how many of it came before."""
    order = np.argsort(steps, kind="stable")
    ordered = steps[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]] if ordered.size else np.empty(0, dtype=bool)
    first = np.maximum.accumulate(np.where(begins, np.arange(ordered.size), 0))
    keys = np.empty(steps.size, dtype=[("step", "<i8"), ("copy", "<i8")])
    keys["step"][order] = ordered
    keys["copy"][order] = np.arange(ordered.size) - first
    return keys


def in_step(
    reference: Values,
    ours: SeriesFacts,
    new: Values,
    theirs: SeriesFacts,
    settings: VariableSettings,
    wording: Wording,
) -> tuple[Values, Values]:
    """Both sides with the elements that belong together.

    Raises LabelMismatchError for other units, ShapeMismatchError if one side has others and that is
    not allowed, or none is on both, AlignmentError if only one side knows of steps.
    """
    refuse_cut(reference.labels, new.labels, wording)
    _refuse_other_units(dict(reference.labels), dict(new.labels))
    if (ours.steps is None) != (theirs.steps is None):
        where = wording.sides[1] if ours.steps is None else wording.sides[0]
        raise AlignmentError(
            f"only {where} is it known of which steps the values are",
            remedy="compare by one set of rules; if they are right, accept the outputs anew",
        )
    sizes = reference.element_count, new.element_count
    mine = np.arange(sizes[0]) if ours.steps is None else ours.steps
    other = np.arange(sizes[1]) if theirs.steps is None else theirs.steps
    pairing = pair_steps(mine, other)
    if pairing.is_whole and np.array_equal(pairing.ours, pairing.theirs):
        return reference, new
    if settings.strict_count and not pairing.is_whole:
        raise ShapeMismatchError(_words(sizes, pairing, ours, theirs, wording), remedy=_REMEDY)
    if not pairing.ours.size:
        raise ShapeMismatchError("the two have no step in common")
    return (
        ChosenValues(reference, ours, pairing.ours),
        ChosenValues(new, theirs, pairing.theirs),
    )


def _refuse_other_units(ours: dict[str, str], theirs: dict[str, str]) -> None:
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            one, other = ours.get(key, "none"), theirs.get(key, "none")
            raise LabelMismatchError(
                f"{key} {one} against {other}", remedy="convert one of them; ciwrap never does"
            )


def _words(
    sizes: tuple[int, int],
    pairing: Pairing,
    ours: SeriesFacts,
    theirs: SeriesFacts,
    wording: Wording,
) -> str:
    noun = "match" if sizes[0] == 1 else "matches"
    parts = [f"{sizes[0]} {noun} against {sizes[1]}"]
    each = zip((ours, theirs), (pairing.only_ours, pairing.only_theirs), wording.sides, strict=True)
    for facts, only, where in each:
        if only.size:
            told = [_place_words(facts, at) for at in only[:_MOST_TOLD].tolist()]
            more = f", and {only.size - len(told)} more" if only.size > len(told) else ""
            parts.append(f"only {where}: {', '.join(told)}{more}")
    return "; ".join(parts)


def _place_words(facts: SeriesFacts, at: int) -> str:
    step = f"match {at + 1}" if facts.steps is None else step_words(int(facts.steps[at]))
    place = facts.place(at)
    return step if place is None else f"{step} (line {place.line})"


def step_words(step: int) -> str:
    """`step 12`."""
    return "before the first step" if step == NO_STEP else f"step {step}"


def stored_steps(
    facts: SeriesFacts,
    golden: Mapping[VariableId, _core.GoldenVariable],
    identity: VariableId,
    element_count: int,
) -> StoredSteps:
    """The steps of a golden's series: of its label variable. Raises AlignmentError if that is gone,
    or keeps no data and is not like the new run's.
    """
    if facts.steps_name is None:
        return StoredSteps(None)
    name = VariableId(facts.steps_name, identity.iteration, identity.rank)
    labels = golden.get(name)
    if labels is None:
        return StoredSteps(None)
    if labels.data is not None:
        values = np.frombuffer(labels.data, dtype=labels.tree.parameters.dtype)
        if values.dtype.kind == "f" or facts.step_size != 1.0:
            values = np.rint(values / facts.step_size)
        return StoredSteps(values.astype(np.int64))
    steps = facts.steps
    if steps is not None and steps.size == math.prod(labels.shape) == element_count:
        tree = _core.build_tree(labels.tree.parameters, as_bytes(np.ascontiguousarray(steps)))
        if labels.tree.parameters.kind == "exact" and tree.root == labels.tree.root:
            return StoredSteps(steps)
    raise AlignmentError(
        f"its steps are others than the golden's, which keeps only the {labels.evidence} of"
        f" {facts.steps_name!r}",
        remedy="set 'evidence: data' for it and accept the outputs anew",
    )


def with_series(
    result: VariableResult, reference: SeriesFacts | None, new: SeriesFacts, counts: tuple[int, int]
) -> VariableResult:
    """The result, saying how often a value was found, and where its first difference stands."""
    first = None
    if result.first_differences:
        element, at = result.first_differences[0], result.first_index
        flat = at[0] if at else 0
        ours = None if reference is None else reference.place(flat)
        step = None if new.steps is None else int(new.steps[flat])
        first = DifferingInSeries(
            _in_text(ours, element.golden), _in_text(new.place(flat), element.new), step
        )
    finest = _finer(reference, new)
    digits = finest.printed_digits or None
    return replace(result, series=SeriesResult(counts, first, digits, _too_fine(result, finest)))


def _finer(reference: SeriesFacts | None, new: SeriesFacts) -> SeriesFacts:
    """The side that is printed with the smaller unit; of a golden it is not known."""
    if reference is None or reference.printed_exponent is None or new.printed_exponent is None:
        return new
    return reference if reference.printed_exponent < new.printed_exponent else new


def _in_text(place: PlaceInText | None, value: str) -> NumberInText:
    if place is None:
        return NumberInText(value)
    return NumberInText(place.text, place.line, place.column)


def _too_fine(result: VariableResult, facts: SeriesFacts) -> bool:
    """Whether the bound is above 0 and yet below half of the smallest unit that is printed.

    Not if numbers that differ match within it: the golden side has been printed with more digits.
    """
    bound, exponent = result.bound, facts.printed_exponent
    if bound is None or exponent is None:
        return False
    if result.verdict is Verdict.MATCH and (result.max_bound_share or result.max_drift_share):
        return False
    if bound.rtol:
        return not bound.atol and bound.rtol < 0.5 * 10.0**-facts.printed_digits
    return 0 < bound.atol < 0.5 * 10.0 ** max(exponent, -300)
