"""What a card lists of its variable: facts, and the levels of its tree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.details import MOST_LEVELS
from ciwrap.model import Verdict
from ciwrap.report.digest_words import new_values_words
from ciwrap.report.sides import GOLDEN_AND_NEW
from ciwrap.report.sizes import (
    lost_count,
    mean_text,
    relative_text,
    special_counts,
    variable_is_exact,
)
from ciwrap.report.svg import number
from ciwrap.report.text import bytes_text, dtype_words, index_text, plural, safe_name, size_text
from ciwrap.report.views import effect_facts, range_words
from ciwrap.report.wording import bound_text, evidence_words, interval_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import VariableResult

_BAR = Markup(
    '<svg class="bar" viewBox="0 0 220 10" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="c0" width="220" height="10"/><rect class="bo" width="{}" height="10"/>'
    "</svg>"
)


def facts_of(result: VariableResult, sides: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """What each fact is called, and the fact."""
    if result.bound is not None and result.expectation != "range":
        yield "error bound", bound_text(result) or "equal numbers"
    used = result.used_interval
    if used is not None and not variable_is_exact(result) and result.verdict is Verdict.MATCH:
        yield "largest drift", interval_text(*used) if used[1] else "none"
    if result.new_values is not None:
        yield "in the suspect chunks", new_values_words(result.new_values)
    if result.shape is not None:
        yield "array", _array_words(result.shape, result.dtype)
    if result.golden_shape is not None or result.golden_dtype is not None:
        other = result.golden_shape if result.golden_shape is not None else result.shape or ()
        name = "in the golden" if sides == GOLDEN_AND_NEW else f"in {sides[0]}"
        yield name, _array_words(other, result.golden_dtype or result.dtype)
    if result.byte_count is not None:
        yield "size", bytes_text(result.byte_count)
    yield from _size_facts(result)
    if result.details is not None and result.details.effect is not None:
        yield from effect_facts(result.details.effect, sides, is_whole=not lost_count(result))
    if result.suspect_chunks is not None and result.chunk_count:
        yield "suspect chunks", f"{result.suspect_chunks:,} of {result.chunk_count:,}"
    for count, name in special_counts(result):
        yield name, f"{count:,}"
    words = evidence_words(result)
    if words and result.verdict is not Verdict.NOT_COMPARABLE:
        yield "evidence", words
    if result.mask:
        extent = "what both sides mask is"
        if result.masked_count is not None:
            extent = plural(result.masked_count, "element")
        yield "mask", f"{safe_name(result.mask)}: {extent} not compared"
    if result.has_fill_values:
        yield "fill values", "elements that hold one on both sides are not compared"
    if result.source_path:
        yield "file", safe_name(result.source_path)


def _array_words(shape: tuple[int, ...], dtype: str | None) -> str:
    extents = safe_name(" x ".join(map(str, shape))) or "a single number"
    return f"{extents} {dtype_words(dtype)}".strip()


def _size_facts(result: VariableResult) -> Iterator[tuple[str, str]]:
    """How large the largest difference is, of the number and of the range, and the mean one."""
    size, relative = result.max_abs_difference, result.max_rel_difference
    if size:
        effect = None if result.details is None else result.details.effect
        share = range_words(effect, size)
        against = f", {share}" if share else ""
        yield "largest |difference|", f"{size_text(size)}{_at(result.max_abs_index)}{against}"
    if words := relative_text(relative, size):
        yield "largest relative", f"{words}{_at(result.max_rel_index)}"
    if words := mean_text(result.mean_abs_difference):
        yield "mean |difference|", words


def _at(index: tuple[int, ...] | None) -> str:
    return f" at {index_text(index)}" if index else ""


def levels_of(result: VariableResult) -> Iterator[SimpleNamespace]:
    """The root first."""
    levels = () if result.details is None else result.details.tree_levels[:MOST_LEVELS]
    for depth, level in enumerate(levels):
        name = "root" if depth == 0 else str(depth)
        if depth == len(levels) - 1:
            name = "root and leaf" if depth == 0 else f"{name} (leaves: the chunks)"
        part = min(level.differing_count / level.node_count, 1.0) if level.node_count else 0.0
        width = max(220 * part, 1.5) if level.differing_count else 0.0
        yield SimpleNamespace(
            name=name,
            nodes=f"{level.node_count:,}",
            differing=f"{level.differing_count:,}",
            pruned=f"{level.node_count - level.differing_count:,}",
            bar=_BAR.format(number(width)),
        )
