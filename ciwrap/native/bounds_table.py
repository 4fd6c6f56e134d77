"""The bounds of ciwrap.yaml, and what it ignores: the flat table that the recording library reads.

One line for each layer of settings, in the order in which they count
(docs/reference/recording-format.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.model import SETTINGS, VariableSettings
from ciwrap.model.variable_settings import OnTrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.config import Check
    from ciwrap.model import SettingsLayer

    _Row = tuple[str, str, SettingsLayer]  # kind, pattern, and what it says

HEAD = "ciwrap-bounds 3"


def bounds_table(
    check: Check | None, layer: SettingsLayer, *, residues: bool = False
) -> str | None:
    """The table for a check's variables, with `layer` over all of it; None if it would say nothing.

    residues: whether trees have residues, of so many levels as the settings say.

    Raises UsageError for what trees that are made while a program runs cannot do.
    """
    rows = [("*", "*", one) for one in (() if check is None else check.layers)]
    rows += [] if check is None else _ruled(check)
    rows.append(("*", "*", layer))
    _refuse_taken_back(rows)
    lines = [f"*\t*\t-\t-\t-\t-\t{VariableSettings().residue_levels}"] if residues else []
    lines += [_line(*row, residues=residues) for row in rows]
    said = [line for line in lines if not line.endswith("\t-" * 5)]
    said += () if check is None else _left_out(check)
    return "\n".join((HEAD, *said, "")) if said else None


def _left_out(check: Check) -> Iterator[str]:
    """What ends no program that runs."""
    for pattern in check.ignore:
        _refuse_broken_line(pattern)
        yield f"!\t{pattern}"
    if check.until_iteration is not None:
        yield f">\t{check.until_iteration}"


def refuse_beyond_trees(check: Check) -> None:
    """Raises UsageError for a check of which trees alone do not tell how it ends."""
    for layer in check.layers:
        _refuse_beyond_trees("*", layer)
    for rule in check.rules:
        _refuse_beyond_trees(rule.pattern, rule.settings)


def _ruled(check: Check) -> list[_Row]:
    """What stands under `variables`: globs first, then names. A glob is a name, too: of the
    variable that is called so, such as `x[0]`.
    """
    for rule in check.rules:
        if " / " in rule.pattern:
            raise UsageError(
                f"the rule {rule.pattern!r} is of one iteration or rank",
                file=check.config_path,
                remedy="record with a check whose bounds are the same for all of them",
            )
    globs = [("*", one.pattern, one.settings) for one in check.rules if not one.is_exact]
    return globs + [("=", one.pattern, one.settings) for one in check.rules]


def _refuse_taken_back(rows: list[_Row]) -> None:
    """The table can say which fill values there are, and not that there are none any more."""
    has_fills = False
    for _, pattern, layer in rows:
        fills = layer.said.get("fill_values")
        if has_fills and fills is not None and not fills:
            raise UsageError(
                f"`fill_values: []` of {pattern!r} takes fill values back, which a recorded run"
                " cannot",
                remedy="give fill_values to those variables alone that have them",
            )
        has_fills = has_fills or bool(fills)


def _line(kind: str, pattern: str, layer: SettingsLayer, *, residues: bool) -> str:
    _refuse_broken_line(pattern)
    _refuse_beyond_trees(pattern, layer)
    _refuse_rounded(pattern, layer)
    return "\t".join((kind, pattern, *_fields(layer, residues=residues)))


def _refuse_broken_line(pattern: str) -> None:
    if "\t" in pattern or "\n" in pattern:
        raise UsageError(f"the pattern {pattern!r} holds a tab or a line break")


def _refuse_beyond_trees(pattern: str, layer: SettingsLayer) -> None:
    for name, setting in SETTINGS.items():
        is_beyond = setting.on_trees is OnTrees.BEYOND and setting.field in layer.said
        if is_beyond and layer.said[setting.field] not in (None, setting.default):
            raise UsageError(
                f"`{name}` of {pattern!r} needs the data, and a recorded run has none",
                remedy="record with a check without it",
            )


def _refuse_rounded(pattern: str, layer: SettingsLayer) -> None:
    """The recording library reads doubles: a rounded fill value would be another number."""
    for one in layer.said.get("fill_values") or ():
        if isinstance(one, int) and float(one) != one:
            raise UsageError(
                f"the fill value {one} of {pattern!r} is a whole number that no double holds, and a"
                " recorded run takes fill values as doubles",
                remedy="record with a check without it, and compare files instead",
            )


def _fields(layer: SettingsLayer, *, residues: bool) -> Iterator[str]:
    said = layer.said
    bound = said.get("bound")
    yield "-" if bound is None else f"{bound.atol!r} {bound.rtol!r} {bound.ulps}"
    yield "-" if "equal_nan" not in said else str(int(said["equal_nan"]))
    yield "-" if "chunk_bytes" not in said else str(said["chunk_bytes"])
    fills = said.get("fill_values")
    yield ",".join(repr(float(one)) for one in fills) if fills else "-"
    yield str(said["residue_levels"]) if residues and "residue_levels" in said else "-"
