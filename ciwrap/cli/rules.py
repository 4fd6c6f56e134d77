"""Bounds and rules of `compare` and `capture`, from a configured check or from the options."""

from __future__ import annotations

from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from ciwrap.errors import UsageError
from ciwrap.model import SETTINGS, SettingsLayer
from ciwrap.model.forms import FormError
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ciwrap.catalog.rows import Arrangement
    from ciwrap.catalog.rules import Rules
    from ciwrap.config import Check
    from ciwrap.model.variable_settings import Setting
    from ciwrap.readers.output_file import FoundOutputs


# The last one is the first to be added, and the last that help shows.
_OPTIONS = tuple(one for one in [*SETTINGS.values()][::-1] if one.option is not None)


def _read(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """The value of a setting, which is written as in ciwrap.yaml."""
    try:
        return None if value is None else SETTINGS[parameter.name or ""].form.from_text(value)
    except FormError as error:
        raise click.BadParameter(error.message, context, parameter) from None


def _looks(setting: Setting) -> dict[str, Any]:
    """What click is told of a setting's option: a flag, or a value of a kind."""
    kind = setting.form.schema.get("type")
    if kind == "boolean":
        return {"is_flag": True, "default": None}
    metavar = "INTEGER" if kind == "integer" else "NAME" if kind == "string" else "FLOAT"
    return {"metavar": metavar, "callback": _read}


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

    @cached_property
    def check(self) -> Check | None:
        """Raises UsageError and ConfigError."""
        if self.check_name is None:
            if self.config_path is not None:
                raise UsageError("--config needs --check", remedy="name a check of it")
            return None
        from ciwrap.cli.load_project import load_project

        return load_project(self.config_path, None, (self.check_name,)).checks[0]

    def make_rules(self) -> Rules:
        from functools import cache

        from ciwrap.catalog.rules import Rules
        from ciwrap.model import (
            StrictVariables,
            VariableId,
            VariableSettings,
            fit_fill_values,
        )

        check, default = self.check, VariableSettings()

        @cache
        def fitted(settings: VariableSettings, dtype: str, is_counted: bool) -> VariableSettings:
            settings = settings if is_counted else self.layer.over(settings)
            if not settings.fill_values:
                return settings
            return fit_fill_values(settings, dtype)

        def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
            if check is None:
                return fitted(default, dtype, False)
            return fitted(check.settings_for(identity), dtype, check.is_counted(identity))

        def arrangement() -> Arrangement | None:
            """As the check has it, with what the options say of all its variables."""
            said = self.layer.said.keys() & {"align_by", "across_ranks"}
            if check is None and not said:
                return None
            from ciwrap.compare.outputs import arrangement_of

            if said == {"across_ranks"} and not (check and check.aligns):
                raise UsageError(
                    "--across-ranks has no meaning where no rows are aligned",
                    remedy="name the id variable with --align-by",
                )
            if check is not None and not said:
                return arrangement_of(check)
            from ciwrap.catalog.rows import Arrangement

            def unfitted(identity: VariableId) -> VariableSettings:
                return self.layer.over(default if check is None else check.settings_for(identity))

            return Arrangement(unfitted, "error" if check is None else check.duplicates)

        def is_ignored(identity: VariableId) -> bool:
            if self.ignore:
                from ciwrap.config import name_matches

                if any(name_matches(pattern, identity) for pattern in self.ignore):
                    return True
            return check is not None and check.is_ignored(identity)

        return Rules(
            settings_for,
            is_ignored,
            strict_variables=StrictVariables.BOTH if check is None else check.strict.variables,
            arrangement=arrangement(),
            bounds_are_given=check is not None or "bound" in self.layer.said,
            bounds_from="given"
            if check is None or "bound" in self.layer.said
            else f"check {check.name}",
            general=self.layer.over(default) if check is None else None,
            by_place=check is not None and any(" / " in rule.pattern for rule in check.rules),
        )

    def _with_text_options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a reader of texts, and those of the command line."""
        options = dict(options)
        for name, more in (("ignore", self.ignore_tokens), ("ignore_lines", self.ignore_lines)):
            if more:
                options[name] = (*options.get(name, ()), *more)
        return options

    def for_pair(self, paths: tuple[Path, Path]) -> tuple[RuleOptions, str | None]:
        """The options for two files; if these are texts that no reader knows, they are compared
        token by token, and a note says so.
        """
        from ciwrap.readers.tokens import is_unknown_text

        given = self._reading
        is_open = given["format_name"] is None and not given["formats"]
        there = [path for path in paths if path.exists()]  # of the others, that is to be told
        if not (is_open and there and all(is_unknown_text(path) for path in there)):
            return self, None
        return replace(self, format_texts=("tokens",)), (
            "compared token by token, as texts that no reader knows; --format says otherwise"
        )

    @cached_property
    def _reading(self) -> dict[str, Any]:
        """How files are read, as `find_in` takes it. Raises UsageError and ConfigError."""
        from ciwrap.model.formats import FormatRule

        check, names, rules = self.check, [], []
        for text in self.format_texts:
            glob, sign, reader = text.rpartition("=")
            if not sign:
                names.append(reader)
            elif glob and reader:
                options = self._with_text_options({}) if reader == "tokens" else None
                rules.append(FormatRule(glob, reader, options))
            else:
                raise UsageError(f"--format {text!r} lacks a part", remedy="write '*.e=netcdf'")
        if len(names) > 1:
            raise UsageError(
                f"two formats for the same files: {names[0]} and {names[1]}",
                remedy="say of which files each is: --format '*.e=netcdf'",
            )
        given = check.options if check else {}
        has_texts = any(rule.reader == "tokens" for rule in rules)
        return {
            "format_name": names[0] if names else (check.format if check else None),
            "formats": (*rules, *(check.formats if check else ())),
            # Not of all files, if only some are texts.
            "options": given if has_texts else self._with_text_options(given),
        }

    def is_store(self, path: Path) -> bool:
        """Whether a folder is one output, as a Zarr store is, and no run. Raises as `find_in`."""
        from ciwrap.readers.choice import Choice

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
        rest = (names, self.layout, self.format_texts, self.include, self.exclude, self.ignore)
        return repr((self.layer, check, *rest))

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
        from ciwrap.readers.layout import find_in, outputs_within

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
        from ciwrap.readers.layout import outputs_within

        check = self.check
        if check is None:
            return self.exclude
        return (*self.exclude, *outputs_within(runs, check.outputs, check.exclude)[1])


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

    for decorate in (
        click.option(
            "--ignore-lines",
            multiple=True,
            metavar="PATTERN",
            help="Leave lines of texts out; `*` stands for any text (format tokens).",
        ),
        click.option(
            "--ignore-tokens",
            multiple=True,
            metavar="SET",
            help="Leave dates, times, paths, hosts, pids or memory of texts out (format tokens).",
        ),
        click.option("--ignore", multiple=True, metavar="PATTERN", help="Leave variables out."),
        click.option(
            "--exclude",
            multiple=True,
            metavar="GLOB",
            help="Leave these files out; may be repeated.",
        ),
        click.option(
            "--include",
            multiple=True,
            metavar="GLOB",
            help="Take these files alone; may be repeated.",
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
            "--layout", metavar="PATTERN", help="Where iteration and rank stand in the paths."
        ),
        click.option(
            "--config", "config_path", type=click.Path(), help="Where that check is configured."
        ),
        click.option(
            "--check", "check_name", metavar="NAME", help="Take bounds and layout of this check."
        ),
        *(
            click.option(f"--{one.name.replace('_', '-')}", **_looks(one), help=one.option)
            for one in _OPTIONS
        ),
    ):
        command = decorate(command)
    return command
