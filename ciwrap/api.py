"""The Python API: trees, comparisons and goldens of arrays in memory.

Arrays are NumPy arrays, lists, buffers, or arrays of libraries whose types are known
(docs/reference/values.md); those on a GPU are hashed there (docs/how-to/gpu.md). Wrong arguments
raise UsageError (a ValueError); what cannot be compared raises, or is a result with the verdict
`not_comparable`: never a match.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ciwrap import _core
from ciwrap.arrays.intake import parts_of
from ciwrap.arrays.values import ArrayValues, Values, as_bytes
from ciwrap.base.errors import (
    CiwrapError,
    UnreadableFileError,
    UnsupportedDtypeError,
    UsageError,
    VariableMissingError,
    WriteFailedError,
)
from ciwrap.base.late import numpy as np
from ciwrap.check.judge import check_golden, compare_values
from ciwrap.check.two_sides import Work
from ciwrap.explain.across import explainer
from ciwrap.formats.memory import labels_in
from ciwrap.golden.manifest import capture
from ciwrap.golden.scale import refuse_number
from ciwrap.golden.store import decode, golden_id, read_golden_file
from ciwrap.golden.trees import bound_of, tree_parameters
from ciwrap.golden.trees import build_tree as stream_tree
from ciwrap.model import (
    SettingsLayer,
    VariableId,
    VariableResult,
    VariableSettings,
    fit_fill_values,
)

if TYPE_CHECKING:
    from ciwrap._core import GoldenVariable, Tree

__all__ = [
    "Golden",
    "build_tree",
    "check_array",
    "compare_arrays",
    "make_golden",
    "read_golden",
]

_DEFAULTS = VariableSettings()
_LABEL_WORDS = {"units": "a unit", "dims": "names of its dimensions"}


def build_tree(
    array: Any,
    *,
    atol: float | str = 0.0,
    rtol: float = 0.0,
    ulps: int = 0,
    residue_levels: int = 1,
    chunk_bytes: int = _DEFAULTS.chunk_bytes,
    equal_nan: bool = True,
    fill_values: float | Sequence[float] = (),
) -> Tree:
    """The Merkle tree of an array of any shape, its values in C order rounded to the error bound.

    residue_levels: 1 for a plain tree, or odd from 3 to 255 to keep residues. chunk_bytes: of the
    array, under one leaf. fill_values: numbers that mean "missing". The tree's `root` (16 bytes) is
    the same on every machine, and so are `leaf_digests` (uint8, shape (leaves, 16)) and `residues`
    (uint8, packed). Raises UsageError for bounds, levels or sizes out of range,
    UnsupportedDtypeError for arrays without a defined comparison.
    """
    values = _values(array)
    settings = _settings(
        "build_tree()",
        atol=atol,
        rtol=rtol,
        ulps=ulps,
        residue_levels=residue_levels,
        chunk_bytes=chunk_bytes,
        equal_nan=equal_nan,
        fill_values=fill_values,
    )
    settings = fit_fill_values(settings, values.dtype)
    parameters = tree_parameters(values.dtype, settings, residue_levels=settings.residue_levels)
    if values.device is not None:
        return stream_tree(parameters, values).tree
    return _core.build_tree(parameters, as_bytes(values.read(0, values.element_count)))


def compare_arrays(
    golden: Any,
    new: Any,
    *,
    atol: float | str = 0.0,
    rtol: float = 0.0,
    ulps: int = 0,
    equal_nan: bool = True,
    fill_values: float | Sequence[float] = (),
    period: float | Sequence[float] | None = None,
    mixed_precision: bool = False,
    up_to_sign: str = "none",
    name: str = "array",
) -> VariableResult:
    """Compares two arrays element by element; v differs unless |v - g| <= atol + rtol |g|.

    With `ulps` instead: unless at most so many floats lie between them. fill_values: numbers that
    mean "missing", which equals "missing" alone. period: differences are modulo this, one number or
    one for each component of the last axis (0: none). mixed_precision: float32 against float64 is
    compared as float32. up_to_sign: "whole", or each of the "rows" or "columns", may have the other
    sign. The result counts elements, and names them by their indices in the array's shape. Another
    dtype or shape is `not_comparable`, not an exception. Raises UsageError for settings out of
    range, UnsupportedDtypeError for arrays without a defined comparison.
    """
    settings = _settings(
        "compare_arrays()",
        atol=atol,
        rtol=rtol,
        ulps=ulps,
        equal_nan=equal_nan,
        fill_values=fill_values,
        period=period,
        mixed_precision=mixed_precision,
        up_to_sign=up_to_sign,
    )
    ours, theirs = _labelled(golden, name), _labelled(new, name)
    refuse_number(ours.labels, settings.bound, name)
    settings = fit_fill_values(settings, ours.dtype)
    work = Work(explain=explainer)
    return compare_values(ours, theirs, settings, VariableId(name), work=work)


class Golden(Struct, frozen=True):
    """What is kept of some variables to compare later runs with. Immutable; see `make_golden`.

    variables: in the order of iteration, rank and name.
    """

    variables: tuple[_core.GoldenVariable, ...]

    @property
    def names(self) -> list[str]:
        """Of the variables, in their order; the same one again for each checkpoint."""
        return [variable.name for variable in self.variables]

    def variable(
        self, name: str, *, iteration: int | None = None, rank: int | None = None
    ) -> GoldenVariable:
        """The variable of that identity. Raises VariableMissingError (a KeyError)."""
        wanted = VariableId(name, iteration, rank)
        for variable in self.variables:
            if golden_id(variable) == wanted:
                return variable
        raise VariableMissingError("is not in the golden", variable=wanted.text)

    def check(
        self,
        name: str,
        array: Any,
        *,
        iteration: int | None = None,
        rank: int | None = None,
        period: float | Sequence[float] | None = None,
        mixed_precision: bool = False,
        up_to_sign: str = "none",
    ) -> VariableResult:
        """Compares an array with the variable of that identity, by the golden's own bound.

        Raises VariableMissingError, and what `check_array` raises.
        """
        golden = self.variable(name, iteration=iteration, rank=rank)
        return check_array(
            array, golden, period=period, mixed_precision=mixed_precision, up_to_sign=up_to_sign
        )

    def to_bytes(self) -> bytes:
        """The golden file's bytes: the same on every machine for the same content.

        Raises UsageError for a variable that is there twice.
        """
        return _core.encode_golden(self.variables)

    @staticmethod
    def from_bytes(data: bytes) -> Golden:
        """Reads a golden file's bytes. Raises CorruptGoldenError, UnsupportedFormatError."""
        return Golden(tuple(decode(bytes(data), Path("<memory>"))))

    def write(self, path: str | os.PathLike[str]) -> str:
        """Writes the binary file alone, without a manifest, and returns its root in hexadecimal.

        Not atomic; `ciwrap accept` is. Raises WriteFailedError.
        """
        try:
            return _core.write_golden(str(path), self.variables).hex()
        except UnreadableFileError as error:
            raise WriteFailedError(error.message.removeprefix(f"{path}: "), file=path) from error
        except CiwrapError as error:
            error.blame(file=path)
            raise


def make_golden(
    arrays: Mapping[str, Any],
    *,
    atol: float | str = 0.0,
    rtol: float = 0.0,
    ulps: int = 0,
    evidence: str = "auto",
    residue_levels: int = _DEFAULTS.residue_levels,
    chunk_bytes: int = _DEFAULTS.chunk_bytes,
    equal_nan: bool = True,
    fill_values: float | Sequence[float] = (),
    iteration: int | None = None,
    rank: int | None = None,
) -> Golden:
    """A golden of arrays by name, all with the same bound.

    evidence: "auto", "data", "residues" or "tree" (docs/how-to/refresh-goldens.md); the other
    settings are those of `build_tree`. Goldens of different bounds or checkpoints are joined as
    `Golden(one.variables + other.variables)`. Raises UsageError for settings out of range and for
    no array at all, UnsupportedDtypeError for arrays without a defined comparison.
    """
    settings = _settings(
        "make_golden()",
        atol=atol,
        rtol=rtol,
        ulps=ulps,
        evidence=evidence,
        residue_levels=residue_levels,
        chunk_bytes=chunk_bytes,
        equal_nan=equal_nan,
        fill_values=fill_values,
    )
    if not hasattr(arrays, "items"):
        raise UsageError(f"arrays are given by name, {{'x': x}}, not as {type(arrays).__name__}")
    if not arrays:
        raise UsageError("a golden needs at least one array")
    _check_places(arrays, iteration, rank)
    variables = []
    for name, array in arrays.items():
        values = _values(array, name)
        fitted = fit_fill_values(settings, values.dtype)
        variables.append(capture(values, fitted, VariableId(name, iteration, rank)).variable)
    return Golden(tuple(sorted(variables, key=lambda one: golden_id(one).sort_key)))


def _check_places(names: Iterable[Any], iteration: Any, rank: Any) -> None:
    """Raises UsageError for names and numbers that the core does not take."""
    for name in names:
        if not isinstance(name, str) or any("\ud800" <= one <= "\udfff" for one in name):
            raise UsageError(f"the name of an array must be a text that UTF-8 holds, not {name!a}")
    for what, number in (("iteration", iteration), ("rank", rank)):
        is_whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if number is not None and (not is_whole or abs(int(number)) >= 1 << 63):
            raise UsageError(f"{what} must be a whole number of 64 bits, not {number!a}")


def read_golden(path: str | os.PathLike[str]) -> Golden:
    """Reads a golden file, without its manifest.

    Raises GoldenMissingError, CorruptGoldenError, UnsupportedFormatError, UnreadableFileError.
    """
    return Golden(tuple(read_golden_file(Path(path))[0]))


def check_array(
    array: Any,
    golden: GoldenVariable,
    *,
    period: float | Sequence[float] | None = None,
    mixed_precision: bool = False,
    up_to_sign: str = "none",
) -> VariableResult:
    """Compares an array with a golden variable, by the golden's own bound and evidence.

    period, mixed_precision and up_to_sign, which no golden keeps: as in `compare_arrays`. Another
    dtype or shape, or a period where the golden has no data, is `not_comparable`, not an exception.
    Raises UsageError for settings out of range, UnsupportedDtypeError for arrays without a defined
    comparison.
    """
    asked = _settings(
        "check_array()", period=period, mixed_precision=mixed_precision, up_to_sign=up_to_sign
    )
    made_with = golden.tree.parameters
    settings = replace(
        asked,
        bound=bound_of(made_with),
        equal_nan=made_with.equal_nan,
        fill_values=tuple(made_with.fill_values),
    )
    return check_golden(golden, _values(array, golden.name), settings, work=Work(explain=explainer))


def _settings(where: str, **arguments: Any) -> VariableSettings:
    """The settings that keyword arguments say; None says nothing. Raises UsageError."""
    return VariableSettings.of(SettingsLayer.from_arguments(arguments, where))


def _values(array: Any, name: str = "array") -> Values:
    """An array's values, copied only if they must be. Refuses what cannot be compared, and labels:
    they are kept in manifests, which these goldens do not have.
    """
    values = _labelled(array, name)
    for key, text in values.labels:
        what = _LABEL_WORDS.get(key, f"a label '{key}'")
        raise UnsupportedDtypeError(
            f"has {what} ({text}), which a golden without a manifest does not keep",
            variable=name,
            remedy="give plain numbers, x.to_value('m') or x.values say",
        )
    return values


def _labelled(array: Any, name: str) -> Values:
    parts = list(parts_of(array, name, f"{name}/"))
    if [part.name for part in parts] != [name]:
        names = ", ".join(part.name for part in parts[:4])
        raise UnsupportedDtypeError(
            f"a {type(array).__name__} is more than one array ({names})",
            variable=name,
            remedy="give its arrays one by one",
        )
    found = parts[0].convert()
    values = found.array
    if isinstance(values, np.ndarray):
        if values.dtype.names is not None:
            raise UnsupportedDtypeError(
                "a record has no defined comparison",
                variable=name,
                remedy="give its fields one by one",
            )
        values = ArrayValues(values)
    values.labels = labels_in(found)
    return values
