"""LAMMPS's regression tests: a YAML file of tolerances by thermo column, with overrides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from ciwrap.errors import UsageError
from ciwrap.importers.imported import (
    Imported,
    LeftOut,
    bound_of,
    free_name,
    is_path,
    read_text,
    yaml_text,
)

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = "Imported from LAMMPS's {name} by `ciwrap import lammps`."
_NUGGET = "nugget"


def import_lammps(path: Path) -> Imported:
    """The tolerances of a configuration as checks of logs. Raises UsageError."""
    try:
        found = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"is not YAML: {' '.join(str(error).split())}", file=path) from None
    if not isinstance(found, dict) or not isinstance(found.get("tolerance"), dict):
        raise UsageError("holds no 'tolerance'", file=path)
    result = Imported(test_count=1)
    checks = {"logs": _check("log.*", found["tolerance"], "tolerance", result)}
    for name, tolerances in _mapping(found, "overrides", result).items():
        result.test_count += 1
        stem = str(name).removeprefix("in.")
        if not isinstance(tolerances, dict):
            result.left_out.append(LeftOut(f"overrides.{name}", "is not a mapping of columns"))
        elif not is_path(stem):
            reason = "has a name that reads as a template"
            result.left_out.append(LeftOut(f"overrides.{name}", reason))
        else:
            # What is not overridden holds as for all.
            own = {**found["tolerance"], **tolerances}
            check = _check(f"log.*{stem}*", own, f"overrides.{name}", result)
            checks[free_name(stem, checks)] = check
    for name in _names(found, "skip", result):
        result.test_count += 1
        result.left_out.append(LeftOut(str(name), "is skipped there"))
    result.notes.append(
        "LAMMPS's runner compares the last step of each run; these checks compare every row"
    )
    nugget = bound_of(found.get(_NUGGET, 1.0))
    if nugget is None:
        result.left_out.append(LeftOut(_NUGGET, "is not a number; rtol is carried over without it"))
    if nugget:
        result.notes.append(
            f"a relative tolerance there is of |golden| + {nugget:g}; it was carried over as"
            " rtol, which is stricter"
        )
    result.files["ciwrap.yaml"] = yaml_text(_HEAD.format(name=path.name), {"checks": checks})
    return result


def _mapping(found: dict[Any, Any], key: str, result: Imported) -> dict[Any, Any]:
    said = found.get(key)
    if said is not None and not isinstance(said, dict):
        result.left_out.append(LeftOut(key, "is not a mapping of tests"))
    return said if isinstance(said, dict) else {}


def _names(found: dict[Any, Any], key: str, result: Imported) -> list[Any]:
    """A list of tests; one may stand alone."""
    said = [] if found.get(key) is None else found[key]
    if not isinstance(said, (str, list)):
        result.left_out.append(LeftOut(key, "is not a list of tests"))
        return []
    return [said] if isinstance(said, str) else said


def _check(
    outputs: str, tolerances: dict[Any, Any], where: str, result: Imported
) -> dict[str, Any]:
    variables = {}
    before = len(result.left_out)
    for column, said in tolerances.items():
        bounds = said if isinstance(said, dict) else {}
        parts = {}
        for theirs, ours in (("abs", "atol"), ("rel", "rtol")):
            number = bound_of(bounds.get(theirs))
            if number is None:
                reason = f"gives no number for {theirs!r}"
                result.left_out.append(LeftOut(f"{where}.{column}", reason))
            else:
                parts[ours] = number
        if parts:
            # Both have to hold there.
            both = {"combine": "both"} if len(parts) == 2 else {}
            variables[f"thermo.{column}"] = {**parts, **both}
    result.carried_count += len(result.left_out) == before
    return {"format": "log", "use": "lammps", "outputs": outputs, "variables": variables}
