"""Bounds and rules of `compare` and `capture`, from a configured check or from the options."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

import click

from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.catalog.rules import Rules
    from ciwrap.config import Check
    from ciwrap.model import ErrorBound
    from ciwrap.readers.layout import FoundOutputs


@dataclass(frozen=True)
class RuleOptions:
    """What the options of `rule_options` say; what they leave open is as the check has it."""

    atol: float | None
    rtol: float | None
    ulps: int | None
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
        from ciwrap.cli.project import load_project

        return load_project(self.config_path, None, (self.check_name,)).checks[0]

    @property
    def bound(self) -> ErrorBound | None:
        from ciwrap.model import ErrorBound

        if (self.atol, self.rtol, self.ulps) == (None, None, None):
            return None
        return ErrorBound(self.atol or 0.0, self.rtol or 0.0, self.ulps or 0)

    def make_rules(self) -> Rules:
        return make_rules(self.check, self.bound, self.ignore)

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
    """--atol, --rtol, --ulps, --check, --config, --layout, --format, --exclude, --ignore.

    The command takes all of them as `chosen`.
    """
    names = [one.name for one in fields(RuleOptions)]

    @wraps(function)
    def command(*arguments: Any, **given: Any) -> int:
        chosen = RuleOptions(**{name: given.pop(name) for name in names})
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
        click.option("--ulps", type=int, help="Bound in units in the last place; excludes others."),
        click.option("--rtol", type=float, help="Relative error bound (of the values in A)."),
        click.option("--atol", type=float, help="Absolute error bound."),
    ):
        command = decorate(command)
    return command


def make_rules(check: Check | None, bound: ErrorBound | None, ignore: tuple[str, ...]) -> Rules:
    from dataclasses import replace
    from functools import cache

    from ciwrap.catalog.rules import Rules
    from ciwrap.compare.check import arrangement_of
    from ciwrap.config import fit_to_dtype, name_matches
    from ciwrap.model import StrictVariables, VariableId, VariableSettings

    @cache
    def with_bound(settings: VariableSettings, dtype: str) -> VariableSettings:
        if bound is not None:
            settings = replace(settings, bound=bound)
        return fit_to_dtype(settings, dtype)

    default = VariableSettings()

    def settings_for(identity: VariableId, dtype: str) -> VariableSettings:
        return with_bound(default if check is None else check.settings_for(identity), dtype)

    def is_ignored(identity: VariableId) -> bool:
        if any(name_matches(pattern, identity) for pattern in ignore):
            return True
        return check is not None and check.is_ignored(identity)

    return Rules(
        settings_for,
        is_ignored,
        strict_variables=StrictVariables.BOTH if check is None else check.strict.variables,
        arrangement=None if check is None else arrangement_of(check),
        bounds_are_given=check is not None or bound is not None,
    )
