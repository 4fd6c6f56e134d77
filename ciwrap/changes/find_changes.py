"""All changes in what is checked, those that check less, or may, first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.changes.lines import Lines
from ciwrap.changes.of_checks import check_changes, configuration_changes
from ciwrap.changes.of_ensembles import ensemble_changes
from ciwrap.changes.of_goldens import golden_changes
from ciwrap.changes.renames import Renames
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from ciwrap.changes.document import Change
    from ciwrap.changes.state import State
    from ciwrap.model import VariableId

# Which keys of the configuration say what a change is of.
_KEYS = {
    "bound": (
        *("atol", "rtol", "ulps", "combine", "equal_nan", "fill_values"),
        *("period", "mixed_precision"),
    ),
    "evidence": ("evidence", "data_budget_bytes", "residues_budget_bytes"),
    "variable": ("mask", "align_by"),
}
_OF_CHECK = {"ignore": ("ignore", "until_iteration"), "strict": ("strict",), "values": ()}
_ORDER = (True, None, False)


class _Told(Struct, frozen=True):
    change: Change
    identity: VariableId | None


def find_changes(old: State, new: State) -> tuple[Change, ...]:
    """What is checked otherwise in the new state: one change for all checkpoints of a variable."""
    renames = Renames.between(old, new)
    told = [_Told(one, None) for one in configuration_changes(old, new)]
    told += [_Told(one, None) for one in check_changes(old, new, renames.checks)]
    told += [
        _Told(change, identity) for change, identity in golden_changes(old, new, renames.goldens)
    ]
    told += [_Told(one, None) for one in ensemble_changes(old, new)]
    firsts: dict[Change, _Told] = {}
    for one in told:
        firsts.setdefault(one.change, one)
    counts = Counter(one.change for one in told)
    lines = Lines(new)
    known = {*old.checks, *new.checks}
    found = [
        replace(change, count=counts[change], **_where(lines, one, known))
        for change, one in firsts.items()
    ]
    return tuple(sorted(found, key=lambda change: _ORDER.index(change.wider)))


def _where(lines: Lines, told: _Told, known: set[str]) -> dict[str, str | int | None]:
    """The file and line of a change; none for checks of tests, which no configuration names."""
    check = told.change.check
    # A golden of another platform is named by its folder, too.
    name = check if check is None or check in known else check.rpartition("/")[2]
    if lines.state.config is None or (name is not None and name not in known):
        return {}
    line = 1 if name is None or name not in lines.state.checks else _line(lines, told, name)
    return {"file": lines.state.config_name, "line": line}


def _line(lines: Lines, told: _Told, name: str) -> int | None:
    """Where the configuration says it now; where its check begins, if nothing says it any more."""
    change, identity = told.change, told.identity
    if identity is not None and change.what in _KEYS:
        return lines.of_variable(name, identity, _KEYS[change.what])
    return lines.of_check(name, *_OF_CHECK.get(change.what, (change.text.partition(":")[0],)))
