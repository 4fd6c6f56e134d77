"""Bounds and rules of `compare` and `capture`, from a configured check or from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.compare.runs import Rules
    from ciwrap.config import Check
    from ciwrap.model import ErrorBound

_F = TypeVar("_F", bound="Callable[..., Any]")


def rule_options(function: _F) -> _F:
    """--atol, --rtol, --ulps, --check, --config, --layout, --format, --exclude, --ignore."""
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
        function = decorate(function)
    return function


def configured(check_name: str | None, config_path: str | None) -> Check | None:
    if check_name is None:
        if config_path is not None:
            raise UsageError("--config says nothing without --check", remedy="name a check of it")
        return None
    from ciwrap.cli.project import load_project

    return load_project(config_path, None, (check_name,)).checks[0]


def bound_from(atol: float | None, rtol: float | None, ulps: int | None) -> ErrorBound | None:
    from ciwrap.model import ErrorBound

    if (atol, rtol, ulps) == (None, None, None):
        return None
    return ErrorBound(atol or 0.0, rtol or 0.0, ulps or 0)


def make_rules(check: Check | None, bound: ErrorBound | None, ignore: tuple[str, ...]) -> Rules:
    from dataclasses import replace
    from functools import cache

    from ciwrap.compare.check import arrangement_of
    from ciwrap.compare.runs import Rules
    from ciwrap.config import fit_to_dtype, name_matches
    from ciwrap.model import VariableId, VariableSettings

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
        strict_variables=check is None or check.strict.variables,
        arrangement=None if check is None else arrangement_of(check),
    )
