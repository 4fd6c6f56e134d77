"""Two texts against each other, token by token: the core compares, this makes a result of it."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

from ciwrap import _core
from ciwrap.arrays.values import TextRules, as_bytes
from ciwrap.compare.fit import GOLDEN
from ciwrap.errors import ConfigError, NotComparableError
from ciwrap.model import Evidence, VariableResult, VariableSettings, Verdict
from ciwrap.model.text_result import DifferingNumbers, TextPlace, TextResult, UnpairedLines
from ciwrap.structs import replace
from ciwrap.trees.build import build_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.arrays.values import Values
    from ciwrap.compare.fit import Wording
    from ciwrap.compare.work import Work

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
    found = _core.compare_texts(
        _side(reference),
        _side(new),
        atol=settings.bound.atol,
        rtol=settings.bound.rtol,
        equal_nan=settings.equal_nan,
        ignore=rules.ignore,
        ignore_lines=rules.ignore_lines,
        engine=work.resources.engine,
    )
    text = _text_result(found)
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
        element_count=text.numbers + found["ignored_line_numbers"],
        masked_count=text.ignored or None,
        differing_count=None if reason else text.differing,
        max_abs_difference=found["max_abs_difference"],
        max_rel_difference=found["max_rel_difference"],
        max_bound_share=found["max_bound_share"],
        nan_mismatch_count=found["nan_mismatch_count"],
        inf_mismatch_count=found["inf_mismatch_count"],
        text=text,
    )


def refuse_settings(settings: VariableSettings) -> None:
    """Raises ConfigError for settings that mean nothing for a text compared token by token."""
    given = [
        name
        for name, is_set in (
            ("ulps", settings.bound.ulps),
            ("mask", settings.mask),
            ("align_by", settings.align_by),
            ("period", settings.period),
            ("fill_values", settings.fill_values),
            ("mixed_precision", settings.mixed_precision),
            ("combine", settings.combine != "sum"),
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
        tree, _, work.engine = build_tree(
            golden.tree.parameters, new, resources=work.resources, progress=work.progress
        )
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
        return "'ignore_lines' leaves out every line, so nothing was compared"
    if text.ignored and text.ignored >= text.numbers + found["ignored_line_numbers"]:
        return f"'ignore' covers every number ({text.ignored:,}), so none was compared"
    return None


def _text_result(found: Mapping[str, Any]) -> TextResult:
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
    return TextResult(
        lines=both("line_count"),
        unpaired_lines=both("unpaired_lines"),
        ignored_lines=both("ignored_lines"),
        numbers=found["number_count"],
        differing=found["differing_count"],
        ignored=found["ignored_count"] + found["ignored_line_numbers"],
        places=tuple(places),
        place_count=found["number_group_count"],
        unpaired=tuple(unpaired),
        unpaired_count=found["line_group_count"],
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


__all__ = ["check_golden_text", "compare_texts", "refuse_settings"]
