"""A configuration as plain data, and how the settings of one variable follow from it.

Layers of settings apply in this order, a later one overriding an earlier one key by key: built-in
defaults, `defaults`, the check's own keys, every pattern under `variables` that matches (from top
to bottom), the variable's exact name. The bound is one thing: a layer that sets any of atol, rtol
and ulps sets all three, those it does not name being 0.

`{run}`, `{seed}` and `{inputs}` in commands and outputs say which of several runs is meant; a
command that runs once, as in `ciwrap run`, is run 1 with seed 1.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.base.errors import ConfigError
from ciwrap.base.patterns import name_pattern
from ciwrap.base.secrets import hide_secrets, secrets_of
from ciwrap.base.words import nearest
from ciwrap.model import SettingsLayer, Strictness, VariableId, VariableSettings, fit_fill_values
from ciwrap.model.settings import FormatRule

if TYPE_CHECKING:
    from ciwrap.arrays.values import Shaped

GLOB_CHARACTERS = frozenset("*?[")
CONFIG_NAME = "ciwrap.yaml"
DEFAULT_GOLDEN_DIR = "golden"
_GATE_CONFIDENCE = 0.99
_USUAL_CONFIDENCE = 0.95


def is_glob(pattern: str) -> bool:
    return any(char in GLOB_CHARACTERS for char in pattern)


def name_matches(pattern: str, variable: VariableId) -> bool:
    """Whether a pattern of ciwrap.yaml means this variable.

    Patterns are shell-like and case-sensitive, `*` crosses dots and slashes. A pattern that holds
    ` / ` is also compared with the whole text form (`iter 10 / rank 0 / x`).
    """
    subjects = {variable.name, variable.text} if " / " in pattern else {variable.name}
    if pattern in subjects:
        return True
    glob = name_pattern(pattern)
    return any(glob.fullmatch(one) is not None for one in subjects)


def unused_words(
    patterns: Iterable[str], variables: Collection[VariableId], where: str
) -> Iterator[str]:
    """A warning for each pattern that matches none of the variables. where: it was given."""
    for pattern in patterns:
        if not any(name_matches(pattern, one) for one in variables):
            yield f"the pattern {pattern!r} {where} matches no variable; is it misspelt?"


class VariableRule(Struct, frozen=True):
    """One entry under `variables`: a name or pattern, and what holds for what it matches."""

    pattern: str
    settings: SettingsLayer

    @property
    def is_exact(self) -> bool:
        return not is_glob(self.pattern)

    def is_of(self, variable: VariableId) -> bool:
        """Whether the file's own name for the variable is the pattern, or a part of that."""
        names = _names_of(variable)
        return any(name == self.pattern or name.startswith(f"{self.pattern}.") for name in names)


_PLAIN = VariableSettings()
# Equal or not: nothing that is said of others makes two numbers of these alike.
EXACT = SettingsLayer(
    {
        name: getattr(_PLAIN, name)
        for name in (
            *("bound", "scale", "combine", "period", "fill_values", "mixed_precision"),
            "up_to_sign",
        )
    }
)


def _names_of(variable: VariableId) -> Iterator[str]:
    """The names that a file may have for a variable: the path of the file may stand before them."""
    name = variable.name
    yield name
    while "/" in name:
        name = name.partition("/")[2]
        yield name


class CommandSettings(Struct, frozen=True):
    """A command to run.

    words: as one string for the shell, or as a tuple without a shell. env: variables that are set
    besides those of this process. cores: the only ones that it may run on; None for all.
    """

    words: str | tuple[str, ...]
    working_dir: Path
    timeout_seconds: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cores: frozenset[int] | None = None

    @property
    def text(self) -> str:
        """The command as it may be shown and kept: without secrets."""
        whole = self.words if isinstance(self.words, str) else " ".join(self.words)
        return hide_secrets(whole, secrets_of({**os.environ, **self.env}))


class LevelSettings(Struct, frozen=True):
    """What is different while a factor is off, or on.

    words: the command that runs instead, as in CommandSettings. reserves_core: whether one core is
    left to the system.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    words: str | tuple[str, ...] | None = None
    reserves_core: bool = False


class FactorSettings(Struct, frozen=True):
    """Something that may change results, switched off and on."""

    name: str
    off: LevelSettings
    on: LevelSettings


class PerturbSettings(Struct, frozen=True):
    """Which input files are perturbed for each run, as globs, and by how much; None for as much as
    their type asks for.
    """

    files: tuple[str, ...]
    relative: float | None = None


class RepeatSettings(Struct, frozen=True):
    """How `ciwrap repeat` runs the command. reference: "first" or "golden"; factors: all that
    `--vary` can name; design: as in `ciwrap.statistics.factors`, None: as their number asks.
    """

    runs: int = 10
    reference: str = "first"
    factors: tuple[FactorSettings, ...] = ()
    design: str | None = None
    perturb: PerturbSettings | None = None


class TimingSettings(Struct, frozen=True):
    """How `ciwrap time` takes run times; what each means, and its default, is in the schema.

    command, build: words for the shell, or a tuple without a shell. confidence: None for what suits
    the gate.
    """

    pairs: int
    margin: float
    gate: bool
    warm_up: int
    reserve_core: bool
    duet: bool
    decides: Literal["time", "cpu"]
    command: str | tuple[str, ...] | None = None
    build: str | tuple[str, ...] | None = None
    confidence: float | None = None
    until_decided: int | None = None
    timeout_seconds: float | None = None
    max_seconds: float | None = None
    max_memory: int | None = None

    @property
    def confidence_used(self) -> float:
        """What suits the gate, unless somebody says it: a gate is to cry wolf rarely."""
        return self.confidence or (_GATE_CONFIDENCE if self.gate else _USUAL_CONFIDENCE)

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many pairs it is asked whether the verdict is settled: twice as many each time,
        up to the limit.
        """
        if self.until_decided is None:
            return (self.pairs,)
        looks = [self.pairs]
        while looks[-1] < self.until_decided:
            looks.append(min(2 * looks[-1], self.until_decided))
        return tuple(looks)

    @property
    def confidence_of_look(self) -> float:
        """Of each look, so that all of them together are wrong no more often than one would be."""
        return 1 - (1 - self.confidence_used) / len(self.looks)


class SnapshotSettings(Struct, frozen=True):
    """What snapshots hold; what each means is in the schema."""

    objects: bool = True
    keep_files: bool = False


class Expectation(Struct, frozen=True):
    """What values have to be, in place of a golden: numbers, or within a range. values: None for a
    range. is_each: whether there is a number for each of them; else one stands for all.
    """

    values: tuple[float, ...] | None = None
    low: float = -math.inf
    high: float = math.inf
    is_each: bool = False


class Check(Struct, frozen=True):
    """One check: which outputs to take and how to judge them.

    outputs and exclude are relative to `root`, the configuration's folder. formats: readers of some
    files, the first that fits counts; format: of all others. layers: defaults and the
    check's own keys. duplicates: which counts of a variable, or of a row's id, that is there twice:
    "error", "first" or "last". until_iteration: the last one to compare. ensemble: globs of
    folders, each of which holds these outputs of a run; the golden is then of their statistics.
    line: where the check begins in the configuration, for messages. value_rules: what is said of
    values where their templates are; these, exact_names (steps and counts, equal whatever the
    bounds are) and expected (values that no golden is needed for) are by the names that a file has
    for them.
    """

    name: str
    root: Path
    outputs: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    layout: str | None = None
    format: str | None = None
    formats: tuple[FormatRule, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    command: CommandSettings | None = None
    ignore: tuple[str, ...] = ()
    strict: Strictness = field(default_factory=Strictness)
    layers: tuple[SettingsLayer, ...] = ()
    rules: tuple[VariableRule, ...] = ()
    config_path: Path | None = None
    line: int | None = None
    duplicates: str = "error"
    until_iteration: int | None = None
    ensemble: tuple[str, ...] = ()
    value_rules: tuple[VariableRule, ...] = ()
    exact_names: frozenset[str] = frozenset()
    expected: Mapping[str, Expectation] = field(default_factory=dict)

    def expectation_of(self, variable: VariableId) -> Expectation | None:
        """What the configuration itself says of a variable's values; None: its golden does."""
        if not self.expected:
            return None
        return next((self.expected[n] for n in _names_of(variable) if n in self.expected), None)

    @property
    def aligns(self) -> bool:
        """Whether it names an id variable for any of its variables."""
        layers = (*self.layers, *(rule.settings for rule in self.rules))
        return any(layer.given.get("align_by") is not None for layer in layers)

    def is_ignored(self, variable: VariableId) -> bool:
        until, iteration = self.until_iteration, variable.iteration
        if until is not None and iteration is not None and iteration > until:
            return True
        return any(name_matches(pattern, variable) for pattern in self.ignore)

    def is_counted(self, variable: VariableId) -> bool:
        """Whether the variable is a step or a count, of which no bound has any say."""
        return bool(self.exact_names) and any(
            name in self.exact_names for name in _names_of(variable)
        )

    @property
    def ignored_words(self) -> tuple[str, ...]:
        """What the check leaves out, for a golden's manifest."""
        until = self.until_iteration
        return (*self.ignore, *(() if until is None else (f"iterations after {until}",)))

    def settings_for(self, variable: VariableId, what: Shaped | None = None) -> VariableSettings:
        """The settings of one variable. what: its dtype and labels, where they are known; its fill
        values then are as that dtype holds them, with those that the labels declare.

        A mask is not masked by itself, also where one key of the check sets it for all variables:
        it would be compared as nothing but zeros.
        """
        rules = [rule for rule in self.rules if name_matches(rule.pattern, variable)]
        # Patterns as written, then the exact name, which may read as a pattern itself: `x[0]`.
        own_names = (variable.name, variable.text)
        rules.sort(key=lambda rule: rule.is_exact or rule.pattern in own_names)
        own = [rule for rule in self.value_rules if rule.is_of(variable)]
        layers = [*self.layers, *(rule.settings for rule in (*own, *rules))]
        if self.is_counted(variable):
            layers.append(EXACT)
        settings = VariableSettings.of(
            *layers,
            strict_dtype=self.strict.dtype,
            strict_shape=self.strict.shape,
            strict_count=self.strict.count,
        )
        if settings.mask == variable.name:
            # What masks all variables of a check: as its own mask it would be false everywhere.
            settings = replace(settings, mask=None)
        return settings if what is None else fit_fill_values(settings, what.dtype, what.labels)

    @property
    def variable_patterns(self) -> tuple[str, ...]:
        """The patterns under `variables` and `ignore`."""
        return (*(rule.pattern for rule in self.rules), *self.ignore)


class Config(Struct, frozen=True):
    """A whole ciwrap.yaml. Paths are absolute.

    placeholders: which of `run` and `seed` stand in commands, and output_placeholders: in outputs;
    both are filled in already.
    """

    path: Path
    root: Path
    golden_dir: Path
    checks: tuple[Check, ...]
    timing: TimingSettings
    command: CommandSettings | None = None
    repeat: RepeatSettings = field(default_factory=RepeatSettings)
    snapshot: SnapshotSettings = field(default_factory=SnapshotSettings)
    placeholders: frozenset[str] = frozenset()
    output_placeholders: frozenset[str] = frozenset()

    def check(self, name: str) -> Check:
        """The check of that name; raises ConfigError with the nearest name."""
        for check in self.checks:
            if check.name == name:
                return check
        names = [check.name for check in self.checks]
        raise ConfigError(
            f"there is no check {name!r} (known: {', '.join(names)})",
            file=self.path,
            suggestion=nearest(name, names),
        )


# `${run}` is a shell's own variable.
_PLACE = re.compile(r"(?<!\$)\{(run|seed|inputs)\}")


class RunPlace(Struct, frozen=True):
    """What `{run}`, `{seed}` and `{inputs}` stand for. inputs: the folder that input files are
    below; `.` for where they are anyhow.
    """

    number: int = 1
    seed: int = 1
    inputs: str = "."

    def filled(self, text: str) -> str:
        """The text with the placeholders replaced."""
        values = {"run": str(self.number), "seed": str(self.seed), "inputs": self.inputs}
        return _PLACE.sub(lambda match: values[match[1]], text)


def placeholders_in(*texts: str) -> frozenset[str]:
    """Which of `run`, `seed` and `inputs` are in the texts."""
    return frozenset(match[1] for text in texts for match in _PLACE.finditer(text))


def stands_for_itself(text: str) -> bool:
    """Whether a value of the command line is no list, mapping or quoted text of YAML."""
    return not text.startswith(("[", "{", "'", '"'))
