"""What can be handed to `ciwrap.check`: arrays, mappings of them, files and folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ciwrap.arrays.intake import take_over
from ciwrap.catalog.catalog import Catalog
from ciwrap.config import VariableRule
from ciwrap.errors import CiwrapError, DuplicateVariableError, UnsupportedDtypeError, UsageError
from ciwrap.model import ErrorBound, SettingsLayer
from ciwrap.readers.layout import find_in, name_fault
from ciwrap.readers.memory import found_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ciwrap.arrays.values import Values
    from ciwrap.catalog.rows import Arrangement


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


def catalog_of(
    value: Any,
    name: str,
    *,
    layout: str | None = None,
    format: str | None = None,  # noqa: A002 - as the configuration calls it
    options: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    arrangement: Arrangement | None = None,
) -> Catalog:
    """The variables of whatever was handed over. Raises UsageError, UnsupportedDtypeError,
    DuplicateVariableError, and the errors of finding files.

    name: what a single array is called. arrangement: how rows are aligned.
    """
    if isinstance(value, os.PathLike):
        return Catalog(
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
    arrays: dict[str, NDArray[Any] | Values] = {}
    if isinstance(value, Mapping):
        _add_mapping(arrays, value, "")
        if not arrays:
            raise UsageError("an empty mapping holds nothing to check")
    elif _is_table(value):
        _add_table(arrays, value)
    else:
        arrays[name] = _as_array(value, name)
    return Catalog(found_arrays(arrays), arrangement)


def _add_mapping(
    arrays: dict[str, NDArray[Any] | Values], value: Mapping[Any, Any], prefix: str
) -> None:
    """Mappings in mappings become names with slashes."""
    for key, inner in value.items():
        name = f"{prefix}{key}"
        fault = name_fault(str(key))
        if fault is not None:
            raise UsageError(f"a key {fault}: {ascii(key)[:60]}")
        if isinstance(inner, Mapping):
            if not inner:
                raise UsageError(f"{name!r} is an empty mapping: it holds nothing to check")
            _add_mapping(arrays, inner, f"{name}/")
            continue
        if isinstance(inner, (str, bytes, os.PathLike)):
            raise UsageError(
                f"{name!r} is text or a path",
                remedy="check files one by one or by their folder; numpy.array(...) for text",
            )
        _add(arrays, name, _as_array(inner, name))


def _add(arrays: dict[str, NDArray[Any] | Values], name: str, array: NDArray[Any] | Values) -> None:
    if name in arrays:
        raise DuplicateVariableError(
            "comes from two keys",
            variable=name,
            remedy="rename one of them (1 and '1' are the same name, {'a': {'b'}} and {'a/b'} too)",
        )
    arrays[name] = array


def _is_table(value: Any) -> bool:
    """A data frame of pandas or one that is like it."""
    return hasattr(value, "columns") and hasattr(value, "iloc") and hasattr(value, "index")


def _add_table(arrays: dict[str, NDArray[Any] | Values], value: Any) -> None:
    """The columns and the index: their names are part of what is checked."""
    for column in value.columns:
        _add(arrays, str(column), _as_array(value[column].to_numpy(), str(column)))
    _add(arrays, "index", _as_array(value.index.to_numpy(), "index"))


def _kind_words(value: Any) -> str:
    kind = type(value).__name__
    return f"{kind} of Python objects" if hasattr(value, "__len__") else f"a value of type {kind}"


def _as_array(value: Any, name: str) -> NDArray[Any] | Values:
    try:
        array = take_over(value, name)
    except CiwrapError:
        raise
    except ValueError as error:
        raise UsageError(f"{name!r} is no array: {error}") from error
    if isinstance(array, np.ndarray) and array.dtype.hasobject:
        raise UnsupportedDtypeError(
            f"{_kind_words(value)} has no defined comparison",
            variable=name,
            remedy="give numbers; for fixed-width text numpy.array(values, dtype=str)",
        )
    return array
