"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that puts an option's value into the session."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ARG001
        session = ctx.find_object(Session)
        if session is not None:
            setattr(session, name, value)
            session.kind = ctx.info_name or session.kind

    return callback


def json_option(function: _F) -> _F:
    # Eager: whatever is wrong with the other options can then be told in the document, too.
    return click.option(
        "--json",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_keep("json_target"),
        help="Write the result as JSON to FILE ('-' for stdout).",
    )(function)


def report_option(function: _F) -> _F:
    # Eager, as --json is.
    return click.option(
        "--report",
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_keep("report_target"),
        help="Write the result as a page (HTML, one file) to FILE.",
    )(function)


def markdown_option(function: _F) -> _F:
    return click.option(
        "--markdown",
        metavar="FILE",
        expose_value=False,
        callback=_keep("markdown_target"),
        help="Write a job summary to FILE ('-' for stdout).",
    )(function)


def verbose_option(function: _F) -> _F:
    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_keep("verbose"),
        help="Show every variable, and what the verdict rests on.",
    )(function)


def resource_options(function: _F) -> _F:
    for decorate in (
        click.option(
            "--engine",
            type=click.Choice(["auto", "io_uring", "pread"]),
            default="auto",
            expose_value=False,
            callback=_keep("engine"),
            help="How to read files.",
        ),
        click.option(
            "--threads",
            type=click.IntRange(0),
            default=0,
            expose_value=False,
            callback=_keep("threads"),
            help="Threads to use; 0 for all.",
        ),
        click.option(
            "--backend",
            default="auto",
            metavar="NAME",
            expose_value=False,
            callback=_keep("backend"),
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


def pending_option(function: _F) -> _F:
    return click.option(
        "--pending",
        "pending_dir",
        is_flag=False,
        flag_value="",
        default=None,
        metavar="[DIR]",
        help="Keep what does not match for `ciwrap review`, in .ciwrap/pending or DIR.",
    )(function)


def check_option(function: _F) -> _F:
    return click.option(
        "--check",
        "check_names",
        multiple=True,
        metavar="NAME",
        help="Only this check; can be given several times.",
    )(function)
