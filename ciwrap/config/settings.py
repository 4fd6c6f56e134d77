"""A configuration as plain data, and how the settings of one variable follow from it.

Layers of settings apply in this order, a later one overriding an earlier one key by key: built-in
defaults, `defaults`, the check's own keys, every pattern under `variables` that matches (from top
to bottom), the variable's exact name. The bound is one thing: a layer that sets any of atol, rtol
and ulps sets all three, those it does not name being 0.
"""

from __future__ import annotations

import difflib
import fnmatch
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ciwrap.errors import ConfigError
from ciwrap.model import ErrorBound, SettingsLayer, Strictness, VariableId, VariableSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GLOB_CHARACTERS = frozenset("*?[")
DEFAULT_GOLDEN_DIR = "golden"


def is_glob(pattern: str) -> bool:
    return any(char in GLOB_CHARACTERS for char in pattern)


def name_matches(pattern: str, variable: VariableId) -> bool:
    """Whether a pattern of ciwrap.yaml means this variable.

    Patterns are shell-like and case-sensitive, `*` crosses dots and slashes. A pattern that holds
    ` / ` is also held against the whole text form (`iter 10 / rank 0 / x`).
    """
    subjects = {variable.name, variable.text} if " / " in pattern else {variable.name}
    return pattern in subjects or any(fnmatch.fnmatchcase(one, pattern) for one in subjects)


@dataclass(frozen=True, slots=True)
class VariableRule:
    """One entry under `variables`: a name or pattern, and what holds for what it matches."""

    pattern: str
    settings: SettingsLayer

    @property
    def is_exact(self) -> bool:
        return not is_glob(self.pattern)


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A command to run. words: as one string for the shell, or as a tuple without a shell."""

    words: str | tuple[str, ...]
    working_dir: Path
    timeout_seconds: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.words if isinstance(self.words, str) else " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Check:
    """One check: which outputs to take and how to judge them.

    outputs and exclude are relative to `root`, the configuration's folder. layers: defaults and the
    check's own keys. duplicates: which counts of a variable, or of a row's id, that is there twice:
    "error", "first" or "last". line: where the check begins in the configuration, for messages.
    """

    name: str
    root: Path
    outputs: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    layout: str | None = None
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    command: CommandSettings | None = None
    ignore: tuple[str, ...] = ()
    strict: Strictness = field(default_factory=Strictness)
    layers: tuple[SettingsLayer, ...] = ()
    rules: tuple[VariableRule, ...] = ()
    config_path: Path | None = None
    line: int | None = None
    duplicates: str = "error"

    @property
    def aligns_rows(self) -> bool:
        """Whether rows of some variable are aligned by ids, or one of two copies is taken.

        What concerns one variable alone (`period`, `mixed_precision`, `mask`) does not count: it is
        in that variable's settings.
        """
        layers = (*self.layers, *(rule.settings for rule in self.rules))
        return self.duplicates != "error" or any(
            layer.said.get("align_by") is not None for layer in layers
        )

    def is_ignored(self, variable: VariableId) -> bool:
        return any(name_matches(pattern, variable) for pattern in self.ignore)

    def matching_rules(self, variable: VariableId) -> list[VariableRule]:
        """The rules that apply, in the order in which they do: patterns as written, then exact."""
        matching = [rule for rule in self.rules if name_matches(rule.pattern, variable)]
        return sorted(matching, key=lambda rule: rule.is_exact)

    def settings_for(self, variable: VariableId, dtype: str | None = None) -> VariableSettings:
        """The settings of one variable, fit for its dtype (see `fit_to_dtype`) where that is
        given.
        """
        settings = VariableSettings.of(
            *self.layers,
            *(rule.settings for rule in self.matching_rules(variable)),
            strict_dtype=self.strict.dtype,
            strict_shape=self.strict.shape,
        )
        return settings if dtype is None else fit_to_dtype(settings, dtype)

    def unused_rules(self, variables: list[VariableId]) -> list[str]:
        """Patterns under `variables` and `ignore` that match none of these: perhaps misspelt."""
        patterns = [rule.pattern for rule in self.rules] + list(self.ignore)
        return [p for p in patterns if not any(name_matches(p, one) for one in variables)]


@dataclass(frozen=True, slots=True)
class Config:
    """A whole ciwrap.yaml. Paths are absolute."""

    path: Path
    root: Path
    golden_dir: Path
    checks: tuple[Check, ...]
    command: CommandSettings | None = None

    def check(self, name: str) -> Check:
        """The check of that name; raises ConfigError with the nearest name."""
        for check in self.checks:
            if check.name == name:
                return check
        names = [check.name for check in self.checks]
        near = difflib.get_close_matches(name, names, 1, 0.5)
        raise ConfigError(
            f"there is no check {name!r} (there is: {', '.join(names)})",
            file=self.path,
            suggestion=near[0] if near else None,
        )


def fit_to_dtype(settings: VariableSettings, dtype: str) -> VariableSettings:
    """The settings as they apply to values of this dtype.

    Integers know no rtol and no ulps (which is stricter); booleans, bytes and strings are exact.
    Fill values become what the dtype makes of them (-1e18 is another number in float32); one that
    it cannot hold is dropped, since no element can equal it.
    """
    kind = dtype[1:]
    bound = settings.bound
    if kind[0] in "iu":
        bound = ErrorBound(atol=bound.atol)
    elif kind[0] in "bSUV" and kind != "bf2":
        bound = ErrorBound()
    held: list[float | int] = []
    for value in settings.fill_values:
        fitted = _as_held(value, kind)
        # NaN is no member of a list by ==, so compare as text.
        if fitted is not None and repr(fitted + 0) not in map(repr, held):
            held.append(fitted + 0)  # -0.0 becomes 0.0
    return replace(settings, bound=bound, fill_values=tuple(held))


_FLOAT_CODES = {"f2": "<e", "f4": "<f", "f8": "<d", "c8": "<f", "c16": "<d"}


def _as_held(value: float, kind: str) -> float | int | None:
    """The value as a scalar of that kind holds it, None if it cannot."""
    if kind in _FLOAT_CODES or kind == "bf2":
        try:
            plain = float(value)
            if kind == "bf2":
                return _round_to_bfloat16(plain)
            code = _FLOAT_CODES[kind]
            return float(struct.unpack(code, struct.pack(code, plain))[0])
        except OverflowError:
            return None
    if kind[0] in "iu" and value == value and abs(value) != float("inf") and value == int(value):
        bits = 8 * int(kind[1:])
        low, high = (0, 1 << bits) if kind[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
        return int(value) if low <= value < high else None
    return None


def _round_to_bfloat16(value: float) -> float | None:
    if value != value or abs(value) == float("inf"):
        return value
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    if bits & 0x7F800000 == 0x7F800000:
        return None
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0])
