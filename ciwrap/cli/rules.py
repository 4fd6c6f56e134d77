"""Bounds and rules of `compare` and `capture`, from a configured check or from the options."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from ciwrap.errors import UsageError
from ciwrap.model import SETTINGS, SettingsLayer
from ciwrap.model.forms import FormError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.catalog.rules import Rules
    from ciwrap.config import Check
    from ciwrap.readers.layout import FoundOutputs


# The last one is the first to be added, and the last that help shows.
_OPTIONS = tuple(one for one in [*SETTINGS.values()][::-1] if one.option is not None)


def _read(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """The value of a setting, which is written as in ciwrap.yaml."""
    try:
        return None if value is None else SETTINGS[parameter.name or ""].form.from_text(value)
    except FormError as error:
        raise click.BadParameter(error.message, context, parameter) from None


@dataclass(frozen=True)
class RuleOptions:
    """What the options of `rule_options` say; what they leave open is as the check has it."""

    layer: SettingsLayer
    check_name: str | None
    config_path: str | None
    layout: str | None
    format_name: str | None
    exclude: tuple[str, ...]
    ignore: tuple[str, ...]

    @cached_property
    def check(self) -> Check | None:
        """Raises UsageError and ConfigError."""
        if self.check_name is None:
            if self.config_path is not None:
                raise UsageError(
                    "--config says nothing without --check", remedy="name a check of it"
                )
            return None
        from ciwrap.cli.load_project import load_project

        return load_project(self.config_path, None, (self.check_name,)).checks[0]

    def make_rules(self) -> Rules:
        from functools import cache

        from ciwrap.catalog.rules import Rules
        from ciwrap.compare.check import arrangement_of
        from ciwrap.config import fit_fill_values, name_matches
        from ciwrap.model import StrictVariables, VariableId, VariableSettings

        check, default = self.check, VariableSettings()

        @cache
        def fitted(settings: VariableSettings, dtype: str) -> VariableSettings:
            settings = self.layer.over(settings)
            return fit_fill_values(settings, dtype) if settings.fill_values else settings

        def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
            return fitted(default if check is None else check.settings_for(identity), dtype)

        def is_ignored(identity: VariableId) -> bool:
            if any(name_matches(pattern, identity) for pattern in self.ignore):
                return True
            return check is not None and check.is_ignored(identity)

        return Rules(
            settings_for,
            is_ignored,
            strict_variables=StrictVariables.BOTH if check is None else check.strict.variables,
            arrangement=None if check is None else arrangement_of(check),
            bounds_are_given=check is not None or "bound" in self.layer.said,
        )

    @property
    def text(self) -> str:
        """All that decides verdicts, as a text that is another one as soon as something of it is.

        Raises as `check` does.
        """
        check = self.check
        said = None if check is None else replace(check, command=None, line=None)
        rest = (self.layout, self.format_name, self.exclude, self.ignore)
        return repr((self.layer, said, *rest))

    def outputs_of(
        self, path: Path, *, leave_out: tuple[str, ...] = (), name: str | None = None
    ) -> FoundOutputs:
        """The outputs of a file or a run's folder. Raises as `find_in` does."""
        from ciwrap.readers.layout import find_in

        check = self.check
        return find_in(
            path,
            layout=self.layout or (check.layout if check else None),
            format_name=self.format_name or (check.format if check else None),
            options=check.options if check else None,
            exclude=(*self.exclude, *(check.exclude if check else ()), *leave_out),
            name=name,
        )


def rule_options(function: Callable[..., int]) -> Callable[..., int]:
    """--atol and the other settings that are options, --check, --config, --layout, --format,
    --exclude, --ignore.

    The command takes all of them as `chosen`.
    """
    names = [one.name for one in fields(RuleOptions) if one.name != "layer"]

    @wraps(function)
    def command(*arguments: Any, **given: Any) -> int:
        said = {one.name: given.pop(one.name) for one in _OPTIONS}
        layer = SettingsLayer.of({name: value for name, value in said.items() if value is not None})
        chosen = RuleOptions(layer, **{name: given.pop(name) for name in names})
        return function(*arguments, chosen=chosen, **given)

    for decorate in (
        click.option("--ignore", multiple=True, metavar="PATTERN", help="Leave variables out."),
        click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these files out."),
        click.option(
            "--format", "format_name", metavar="NAME", help="Reader, where the suffix tells none."
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
            click.option(
                f"--{one.name}",
                metavar="INTEGER" if one.form.schema.get("type") == "integer" else "FLOAT",
                callback=_read,
                help=one.option,
            )
            for one in _OPTIONS
        ),
    ):
        command = decorate(command)
    return command
