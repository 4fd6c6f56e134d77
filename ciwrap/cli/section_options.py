"""Options that say what a section of ciwrap.yaml says, made of its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ciwrap.model.forms import FLAG, Form, FormError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.config.sections import Key, Section


def section_options(section: Section, *names: str) -> Callable[..., Any]:
    """Options for some keys of a section, in this order; None for what is not given."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            function = _option(name, section.keys[name])(function)
        return function

    return decorate


def _option(name: str, key: Key) -> Callable[..., Any]:
    form = key.kind
    assert isinstance(form, Form)
    help_text = f"{key.help[:1].upper()}{key.help[1:]}"
    if form is FLAG:
        words = f"--{name.replace('_', '-')}"
        return click.option(f"{words}/--no-{words[2:]}", name, default=None, help=f"{help_text}.")

    def read(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else form.from_text(value)
        except FormError as error:
            raise click.BadParameter(error.message, context, parameter) from None

    default = "" if key.default is None else f" (default {key.default})"
    return click.option(
        f"--{name.replace('_', '-')}",
        name,
        metavar={"integer": "INTEGER", "number": "FLOAT"}.get(form.schema.get("type", ""), "TEXT"),
        callback=read,
        help=f"{help_text}{default}.",
    )
