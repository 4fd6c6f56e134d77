"""What can be handed to `ciwrap.check`: arrays, mappings of them, files and folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.arrays.containers import parts_of
from ciwrap.arrays.dtypes import fields_of
from ciwrap.arrays.single import OneArray
from ciwrap.catalog.catalog import Catalog
from ciwrap.config import VariableRule
from ciwrap.config.settings import EXACT, name_matches
from ciwrap.errors import CiwrapError, DuplicateVariableError, UsageError
from ciwrap.late import numpy as np
from ciwrap.model import ErrorBound, SettingsLayer
from ciwrap.readers.layout import find_in, name_fault
from ciwrap.readers.memory import found_arrays
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ciwrap.arrays.containers import Part
    from ciwrap.catalog.rows import Arrangement
    from ciwrap.config import Check
    from ciwrap.model import CheckResult

_MOST_NAMES = 8


def refuse_name(name: object) -> None:
    """Raises UsageError for what no check can be called."""
    fault = name_fault(name) if isinstance(name, str) else "is not text"
    if fault is not None:
        raise UsageError(f"the name of a check {fault}: {ascii(name)[:60]}")


def rules_of(bounds: Mapping[str, Any] | None, where: str) -> tuple[VariableRule, ...]:
    """Bounds by name or pattern: a number (atol), an ErrorBound, or a mapping of settings."""
    rules = []
    for pattern, said in (bounds or {}).items():
        here = f"{where}, bounds[{pattern!r}]"
        if isinstance(said, ErrorBound):
            layer = SettingsLayer({"bound": said})
        elif isinstance(said, Mapping):
            layer = SettingsLayer.from_arguments(said, here)
        else:
            layer = SettingsLayer.from_arguments({"atol": said}, here)
        rules.append(VariableRule(str(pattern), layer))
    return tuple(rules)


class ValueCatalog(Catalog):
    """The variables of what was handed over. says_more: whether that has attributes besides, which
    are not compared. exact: names of those that no general bound is meant for.
    """

    says_more = False
    exact: tuple[str, ...] = ()

    def kept_exact(self, check: Check) -> Check:
        """The check, for which an index and what else is of that kind has no bound but one that a
        rule of the check gives it.
        """
        rules = (VariableRule(name, EXACT) for name in self.exact)
        return replace(check, value_rules=(*check.value_rules, *rules))

    def refuse_misspelt(self, rules: Sequence[VariableRule]) -> None:
        """Raises UsageError for a rule whose name, without wild cards, is that of no variable."""
        for rule in rules:
            if rule.is_exact and not any(name_matches(rule.pattern, one) for one in self.entries):
                names = sorted({one.name for one in self.entries})
                near = get_close_matches(rule.pattern, names, 1)
                known = f"did you mean {near[0]!r}?" if near else f"there is {_listed(names)}"
                raise UsageError(
                    f"bounds names {rule.pattern!r}, but no variable has that name", remedy=known
                )

    def noted(self, result: CheckResult) -> CheckResult:
        """The result, with what was not compared said in it."""
        return replace(result, attributes="none") if self.says_more else result


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more


def catalog_of(
    value: Any,
    name: str,
    *,
    layout: str | None = None,
    format: str | None = None,  # noqa: A002 - as the configuration calls it
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    is_ignored: Callable[[str], bool] = lambda _: False,
    arrangement: Arrangement | None = None,
) -> ValueCatalog:
    """The variables of whatever was handed over. Raises UsageError, UnsupportedDtypeError,
    DuplicateVariableError, and the errors of finding files.

    name: what a single array is called. is_ignored: whether a variable is not to be compared, so
    that it need not be an array. arrangement: how rows are aligned.
    """
    if isinstance(value, os.PathLike):
        return ValueCatalog(
            find_in(
                Path(os.fspath(value)),
                layout=layout,
                format_name=format,
                options=options,
                exclude=exclude,
                name=name,
            ),
            arrangement,
        )
    if layout or format or options or exclude:
        raise UsageError("layout, format, options and exclude are for files and folders")
    if isinstance(value, (str, bytes)):
        raise UsageError(
            "a string could be a path or a value",
            remedy="give a pathlib.Path for a file, or numpy.array(...) for text",
        )
    parts = list(parts_of(value, name))
    arrays = _convert(parts, is_ignored)
    catalog = ValueCatalog(found_arrays(arrays), arrangement)
    catalog.says_more = any(isinstance(one, OneArray) and one.left_out for one in arrays.values())
    catalog.exact = tuple(part.name for part in parts if part.is_exact)
    return catalog


def _with_its_like(name: str) -> str:
    """The name, or the pattern of all items of the list that it is of."""
    of, _, item = name.rpartition("/")
    return f"{of}/*" if of and item.isdecimal() else name


def _convert(
    parts: Sequence[Part], is_ignored: Callable[[str], bool]
) -> dict[str, OneArray | CiwrapError]:
    """Arrays by name, and the errors of those that are ignored and cannot be arrays."""
    arrays: dict[str, OneArray | CiwrapError] = {}
    taken: set[str] = set()
    for part in parts:
        fault = name_fault(part.name)
        if fault is not None:
            raise UsageError(f"a key {fault}: {ascii(part.name)[:60]}")
        found: OneArray | CiwrapError
        try:
            found = part.convert()
        except CiwrapError as error:
            if not is_ignored(part.name):
                if len(parts) > 1:
                    leave_out = f"leave it out: ignore=[{_with_its_like(part.name)!r}]"
                    error.remedy = f"{error.remedy}, or {leave_out}" if error.remedy else leave_out
                raise
            found = error
        for name in _variables_in(part.name, found):
            if name in taken:
                raise DuplicateVariableError(
                    "comes from two keys",
                    variable=name,
                    remedy="rename one of them (1 and '1' are the same name, {'a': {'b'}} and"
                    " {'a/b'} too)",
                )
            taken.add(name)
        arrays[part.name] = found
    return arrays


def _variables_in(name: str, found: OneArray | CiwrapError) -> list[str]:
    """Names of the variables that a part gives: an array of records has one for each field."""
    array = None if isinstance(found, CiwrapError) else found.array
    if not isinstance(array, np.ndarray) or array.dtype.names is None:
        return [name]
    return [field.name for field in fields_of(name, array.dtype)]
