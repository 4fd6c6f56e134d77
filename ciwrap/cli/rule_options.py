"""The options that say how two runs are judged, and how their files are read: those of a check.

`ciwrap compare` and `ciwrap capture` have them.
"""

from __future__ import annotations

from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.errors import UsageError
from ciwrap.cli.commands import section
from ciwrap.formats.catalog import Arrangement, Rules
from ciwrap.formats.find_outputs import Choice, find_in, outputs_within
from ciwrap.model import (
    SETTINGS,
    SettingsLayer,
    StrictVariables,
    VariableId,
    VariableSettings,
    fit_fill_values,
)
from ciwrap.model.settings import FormatRule, FormError
from ciwrap.project.outputs import arrangement_of
from ciwrap.project.settings import name_matches, stands_for_itself

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ciwrap.arrays.values import Labels, Shaped
    from ciwrap.formats.find_outputs import FoundOutputs
    from ciwrap.model.settings import Setting
    from ciwrap.project.settings import Check, VariableRule

_OPTIONS = tuple(one for one in SETTINGS.values() if one.option is not None)


def _read(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """The value of a setting, which is written as in ciwrap.yaml."""
    if value is None:
        return None
    name, written = parameter.name or "", value
    if not stands_for_itself(value):
        from ciwrap.project.config import value_in_words

        written = value_in_words(name, value)
    try:
        return SETTINGS[name].form.from_text(written)
    except FormError as error:
        raise click.BadParameter(error.message, context, parameter) from None


def _setting_option(one: Setting) -> Callable[[Any], Any]:
    kind = one.form.schema.get("type")
    words = f"--{one.name.replace('_', '-')}"
    looks: dict[str, Any] = {"default": None}
    if kind == "boolean":
        words += f"/--no-{words[2:]}"
    else:
        metavar = {"integer": "INTEGER", "string": "NAME"}.get(str(kind), "FLOAT")
        looks = {"metavar": metavar, "callback": _read}
    return click.option(words, one.name, **looks, help=one.option)


class RuleOptions(Struct, frozen=True, dict=True):
    """What the options of `rule_options` say; what they leave open is as the check has it."""

    layer: SettingsLayer
    check_name: str | None
    config_path: str | None
    layout: str | None = None
    format_texts: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    ignore_tokens: tuple[str, ...] = ()
    ignore_lines: tuple[str, ...] = ()
    ignore_places: tuple[str, ...] = ()
    option_texts: tuple[str, ...] = ()
    bound_texts: tuple[str, ...] = ()
    strict_texts: tuple[str, ...] = ()
    duplicates: str | None = None

    @cached_property
    def rules(self) -> tuple[VariableRule, ...]:
        """What --bound says of single variables. Raises UsageError."""
        if not self.bound_texts:
            return ()
        from ciwrap.project.config import rules_in_words

        return rules_in_words(self.bound_texts)

    @cached_property
    def strict(self) -> dict[str, Any]:
        """What --strict says. Raises UsageError."""
        if not self.strict_texts:
            return {}
        from ciwrap.project.config import strictness_in_words

        return strictness_in_words(self.strict_texts)

    def over(self, settings: VariableSettings, identity: VariableId) -> VariableSettings:
        """The settings of a variable with what the options say put over them."""
        settings = self.layer.over(settings)
        if self.rules:
            for rule in self.rules:
                if name_matches(rule.pattern, identity):
                    settings = rule.settings.over(settings)
        said = {f"strict_{key}": self.strict[key] for key in self.strict if key != "variables"}
        return replace(settings, **said) if said else settings

    @cached_property
    def check(self) -> Check | None:
        """Raises UsageError and ConfigError."""
        if self.check_name is None:
            if self.config_path is not None:
                raise UsageError("--config needs --check", remedy="name a check of it")
            return None
        from ciwrap.review.project import load_project

        return load_project(self.config_path, None, (self.check_name,)).checks[0]

    def make_rules(self) -> Rules:
        """Raises UsageError."""
        from functools import cache

        check, default = self.check, VariableSettings()

        @cache
        def fitted(settings: VariableSettings, dtype: str, labels: Labels) -> VariableSettings:
            return fit_fill_values(settings, dtype, labels)

        def settings_for(identity: VariableId, what: Shaped) -> VariableSettings:
            return fitted(unfitted(identity), what.dtype, what.labels)

        def unfitted(identity: VariableId) -> VariableSettings:
            if check is None:
                return self.over(default, identity)
            settings = check.settings_for(identity)
            return settings if check.is_counted(identity) else self.over(settings, identity)

        def is_ignored(identity: VariableId) -> bool:
            if any(name_matches(pattern, identity) for pattern in self.ignore):
                return True
            return check is not None and check.is_ignored(identity)

        strict = StrictVariables.BOTH if check is None else check.strict.variables
        is_given = "bound" in self.layer.given
        is_plain = check is None and not self.rules
        patterns = [rule.pattern for rule in (*self.rules, *(check.rules if check else ()))]
        return Rules(
            settings_for,
            is_ignored,
            strict_variables=self.strict.get("variables", strict),
            arrangement=self._arrangement(unfitted),
            bounds_are_given=check is not None or is_given or bool(self.rules),
            bounds_from="given" if check is None or is_given else f"check {check.name}",
            general=self.over(default, VariableId("")) if is_plain else None,
            by_place=any(" / " in pattern for pattern in patterns),
        )

    def _arrangement(
        self, settings_for: Callable[[VariableId], VariableSettings]
    ) -> Arrangement | None:
        """How rows are aligned: as the check has it, with what the options say."""
        check = self.check
        layers = (self.layer, *(rule.settings for rule in self.rules))
        said = {key for layer in layers for key in layer.given} & {"align_by", "across_ranks"}
        if said == {"across_ranks"} and not (check and check.aligns):
            raise UsageError(
                "--across-ranks has no meaning where no rows are aligned",
                remedy="name the id variable with --align-by",
            )
        duplicates = self.duplicates or ("error" if check is None else check.duplicates)
        if said or self.duplicates is not None:
            return Arrangement(settings_for, duplicates)
        return None if check is None else arrangement_of(check)

    @cached_property
    def _reading(self) -> dict[str, Any]:
        """How files are read, as `find_in` takes it. Raises UsageError and ConfigError."""
        check, names, rules = self.check, [], []
        for text in self.format_texts:
            from ciwrap.project.schema import PRESETS

            glob, sign, reader = text.rpartition("=")
            if sign and not (glob and reader):
                raise UsageError(f"--format {text!r} lacks a part", remedy="write '*.e=netcdf'")
            if reader in PRESETS:
                from ciwrap.project.config import options_of_preset

                rules.append(FormatRule(glob or "*", "log", options_of_preset(reader)))
            elif sign:
                rules.append(FormatRule(glob, reader))
            else:
                names.append(reader)
        if len(names) > 1:
            raise UsageError(
                f"two formats for the same files: {names[0]} and {names[1]}",
                remedy="say of which files each is: --format '*.e=netcdf'",
            )
        return {
            "format_name": names[0] if names else (check.format if check else None),
            "formats": (*rules, *(check.formats if check else ())),
            "options": check.options if check else {},
            "shared_options": self._options,
        }

    @cached_property
    def _options(self) -> dict[str, Any]:
        """What --option and --ignore-tokens, -lines and -places say. Raises UsageError."""
        found: dict[str, Any] = {}
        if self.option_texts:
            from ciwrap.project.config import options_in_words

            found = options_in_words(self.option_texts)
        given = self.check.options if self.check else {}
        for name, more in (
            ("ignore", self.ignore_tokens),
            ("ignore_lines", self.ignore_lines),
            ("ignore_places", self.ignore_places),
        ):
            if more:
                found[name] = (*found.get(name, given.get(name, ())), *more)
        return found

    def refuse_unused_options(self, sides: Sequence[FoundOutputs | Path]) -> None:
        """Raises UsageError for an option that no reader of these files has."""
        files = [file for side in sides if not isinstance(side, Path) for file in side.files]
        known = {name for file in files for name in file.reader.option_names}
        if any(file.iteration is not None for file in files):
            known.add("iteration_step")  # of the times in paths
        for name in self._options:
            if files and name not in known:
                readers = ", ".join(sorted({file.reader.name for file in files}))
                raise UsageError(
                    f"no reader of these files ({readers}) has an option {name!r}",
                    remedy="leave it out, or name the reader with --format 'GLOB=READER'",
                )

    def is_store(self, path: Path) -> bool:
        """Whether a folder is one output, as a Zarr store is, and no run. Raises as `find_in`."""
        return Choice(**self._reading).is_store(path, path.name)

    @property
    def text(self) -> str:
        """All that decides verdicts, as a text that is another one as soon as something of it is.

        Raises as `check` does.
        """
        check, names = self.check, []
        if check is not None:
            # Sets have no order of their own.
            names = sorted(check.exact_names)
            check = replace(check, command=None, line=None, exact_names=frozenset())
        rest = [getattr(self, name) for name in self.__struct_fields__ if name != "config_path"]
        return repr((names, check, *rest))

    def outputs_of(
        self,
        path: Path,
        *,
        beside: tuple[Path, ...] = (),
        leave_out: tuple[str, ...] = (),
        name: str | None = None,
    ) -> FoundOutputs:
        """The outputs of a file or a run's folder; a check's are counted from that folder. beside:
        the runs that it is compared with. Raises as `find_in` does.
        """
        check = self.check
        outputs: tuple[str, ...] = (".",)
        if check is not None:
            outputs, _ = outputs_within((path, *beside), check.outputs, check.exclude)
        exclude = self.exclude_of((path, *beside))
        return find_in(
            path,
            outputs=outputs,
            layout=self.layout or (check.layout if check else None),
            exclude=(*exclude, *leave_out),
            include=self.include,
            name=name,
            **self._reading,
        )

    def exclude_of(self, runs: tuple[Path, ...]) -> tuple[str, ...]:
        """What is left out of each of the runs; what a check excludes is counted from there."""
        check = self.check
        if check is None:
            return self.exclude
        return (*self.exclude, *outputs_within(runs, check.outputs, check.exclude)[1])


_bound_options = section(
    "Bounds and other settings of variables",
    *(_setting_option(one) for one in _OPTIONS),
    click.option(
        "--bound",
        "bound_texts",
        multiple=True,
        metavar="PATTERN=SETTINGS",
        help="Settings of the variables that PATTERN means: 'CD=rtol=1e-6', '*/p=atol=1e-3'.",
    ),
    click.option("--ignore", multiple=True, metavar="PATTERN", help="Leave variables out."),
    click.option(
        "--strict",
        "strict_texts",
        multiple=True,
        metavar="NAME=VALUE",
        help="dtype, shape or count=false: accept another one; variables=false or allow-new.",
    ),
)
_check_options = section(
    "Rules of a configured check",
    click.option(
        "--check", "check_name", metavar="NAME", help="Take bounds and layout of this check."
    ),
    click.option(
        "--config", "config_path", type=click.Path(), help="Where that check is configured."
    ),
)
_file_options = section(
    "Which files, and how they are read",
    click.option(
        "--layout", metavar="PATTERN", help="Where iteration and rank stand in the paths."
    ),
    click.option(
        "--format",
        "format_texts",
        multiple=True,
        metavar="[GLOB=]READER",
        help="Reader of the files that GLOB means ('*.e=netcdf'), or of all others; may be"
        " repeated, the first that fits counts.",
    ),
    click.option(
        "--include",
        multiple=True,
        metavar="GLOB",
        help="Compare these files only. Repeatable.",
    ),
    click.option(
        "--exclude",
        multiple=True,
        metavar="GLOB",
        help="Leave these files out. Repeatable.",
    ),
    click.option(
        "--option",
        "option_texts",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the readers that have it, as in ciwrap.yaml: 'empty_is_nan=true'.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "last"]),
        help="Which one counts where a variable, or a row's id, was written twice.",
    ),
    click.option(
        "--ignore-tokens",
        multiple=True,
        metavar="SET",
        help="Leave dates, times, paths, hosts, pids or memory of texts out (format tokens).",
    ),
    click.option(
        "--ignore-lines",
        multiple=True,
        metavar="PATTERN",
        help="Leave lines of texts out; `*` stands for any text (format tokens).",
    ),
    click.option(
        "--ignore-places",
        multiple=True,
        metavar="LINE",
        help="Leave numbers of texts out: a line with `{}` for them and `#` for others"
        " (format tokens).",
    ),
)


def rule_options(function: Callable[..., int]) -> Callable[..., int]:
    """--atol and the other settings that are options, --check, --config, --layout, --format,
    --include, --exclude, --ignore.

    The command takes all of them as `chosen`.
    """
    names = [name for name in RuleOptions.__struct_fields__ if name != "layer"]

    @wraps(function)
    def command(*arguments: Any, **given: Any) -> int:
        said = {one.name: given.pop(one.name) for one in _OPTIONS}
        layer = SettingsLayer.of({name: value for name, value in said.items() if value is not None})
        chosen = RuleOptions(layer, **{name: given.pop(name) for name in names})
        return function(*arguments, chosen=chosen, **given)

    return _bound_options(_check_options(_file_options(command)))
