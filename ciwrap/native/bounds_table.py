"""The bounds of ciwrap.yaml as the flat table that the recording library reads.

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

HEAD = "ciwrap-bounds 2"


def bounds_table(
    check: Check | None, layer: SettingsLayer, *, residues: bool = False
) -> str | None:
    """The table for a check's variables, with `layer` over all of it; None if it would say nothing.

    residues: whether trees have residues, of so many levels as the settings say.

    Raises UsageError for what trees that are made while a program runs cannot do.
    """
    lines = [f"*\t*\t-\t-\t-\t-\t{VariableSettings().residue_levels}"] if residues else []
    lines += [
        _line("*", "*", one, residues=residues) for one in (() if check is None else check.layers)
    ]
    if check is not None:
        for rule in sorted(check.rules, key=lambda one: one.is_exact):
            if " / " in rule.pattern:
                raise UsageError(
                    f"the rule {rule.pattern!r} is of one iteration or rank",
                    file=check.config_path,
                    remedy="record with a check whose bounds are the same for all of them",
                )
            kind = "=" if rule.is_exact else "*"
            lines.append(_line(kind, rule.pattern, rule.settings, residues=residues))
    lines.append(_line("*", "*", layer, residues=residues))
    said = [line for line in lines if not line.endswith("\t-" * 5)]
    return "\n".join((HEAD, *said, "")) if said else None


def _line(kind: str, pattern: str, layer: SettingsLayer, *, residues: bool) -> str:
    if "\t" in pattern or "\n" in pattern:
        raise UsageError(f"the pattern {pattern!r} holds a tab or a line break")
    _refuse_beyond_trees(pattern, layer)
    _refuse_rounded(pattern, layer)
    return "\t".join((kind, pattern, *_fields(layer, residues=residues)))


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
