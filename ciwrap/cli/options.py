"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Puts an option's value into the field of the session that has its name."""
    session = ctx.find_object(Session)
    if session is not None and param.name is not None:
        setattr(session, param.name, value)


# Eager: whatever is wrong with the other options can then be told in the document, too.
json_option = click.option(
    "--json",
    "json_target",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_keep,
    help="Write the result as JSON to FILE ('-' for stdout).",
)
json_detail_option = click.option(
    "--json-detail",
    type=click.Choice(["summary", "differing", "all"]),
    default="differing",
    show_default=True,
    expose_value=False,
    callback=_keep,
    help="Which variables --json lists: what diverged first, those that do not match (all if there"
    " are no more than 1,000), or all.",
)
# Eager, as --json is.
report_option = click.option(
    "--report",
    "report_target",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_keep,
    help="Write the result as a page (HTML, one file) to FILE.",
)
markdown_option = click.option(
    "--markdown",
    "markdown_target",
    metavar="FILE",
    expose_value=False,
    callback=_keep,
    help="Write a job summary to FILE ('-' for stdout).",
)
common_option = click.option(
    "--common", is_flag=True, help="Leave out the iterations that only the longer run reaches."
)
verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_keep,
    help="Show every variable, and what the verdict rests on.",
)
pending_option = click.option(
    "--pending",
    "pending_dir",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[DIR]",
    help="Keep what does not match for `ciwrap review`, in .ciwrap/pending or DIR.",
)
check_option = click.option(
    "--check",
    "check_names",
    multiple=True,
    metavar="NAME",
    help="Only this check; can be given several times.",
)


def resource_options(function: _F) -> _F:
    for decorate in (
        click.option(
            "--engine",
            type=click.Choice(["auto", "io_uring", "pread"]),
            default="auto",
            expose_value=False,
            callback=_keep,
            help="How to read files.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(0),
            default=0,
            expose_value=False,
            callback=_keep,
            help="Threads to use; 0 for all.",
        ),
        click.option(
            "--backend",
            default="auto",
            metavar="NAME",
            expose_value=False,
            callback=_keep,
            help="Where to compute (see `ciwrap doctor`).",
        ),
    ):
        function = decorate(function)
    return function


def config_options(function: _F) -> _F:
    for decorate in (
        click.option(
            "--golden-dir",
            type=click.Path(file_okay=False),
            help="Folder of the goldens, instead of the configured one.",
        ),
        click.option(
            "--config",
            "config_path",
            type=click.Path(),
            help="The configuration, instead of the nearest ciwrap.yaml.",
        ),
    ):
        function = decorate(function)
    return function
