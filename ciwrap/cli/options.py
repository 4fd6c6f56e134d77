"""Options that several commands have, each as a decorator."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap.base.processes import use_threads
from ciwrap.cli.commands import LAST_SECTION, complete_checks, keep, section
from ciwrap.model.settings import FLAG, Form, FormError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ciwrap.project.schema import Key, Section

_F = TypeVar("_F", bound="Callable[..., Any]")


def _target_option(name: str, help_text: str) -> Callable[[_F], _F]:
    """The option that says where a document of the result goes. Eager: whatever is wrong with the
    other options can then be reported in the document, too.
    """
    return section(
        LAST_SECTION,
        click.option(
            f"--{name}",
            f"{name}_target",
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=keep,
            help=help_text,
        ),
    )


json_option = _target_option("json", "Write the result as JSON to FILE ('-' for stdout).")
json_detail_option = section(
    LAST_SECTION,
    click.option(
        "--json-detail",
        type=click.Choice(["summary", "differing", "all"]),
        default="differing",
        show_default=True,
        expose_value=False,
        callback=keep,
        help="Which variables --json lists: what differed first, those that do not match (all if"
        " there are no more than 1,000), or all.",
    ),
)
report_option = _target_option("report", "Write the result as a page (HTML, one file) to FILE.")
junit_option = _target_option("junit", "Write the result as JUnit XML to FILE ('-' for stdout).")
markdown_option = _target_option("markdown", "Write a job summary to FILE ('-' for stdout).")
common_option = click.option(
    "--common", is_flag=True, help="Leave out the iterations that only the longer run reaches."
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
    shell_complete=complete_checks,
    help="Only this check; can be given several times.",
)


def _keep_threads(context: click.Context, parameter: click.Parameter, value: int) -> None:
    use_threads(value)
    keep(context, parameter, value)


resource_options = section(
    "Resources",
    click.option(
        "--backend",
        envvar="CIWRAP_BACKEND",
        show_envvar=True,
        default="auto",
        metavar="NAME",
        expose_value=False,
        callback=keep,
        help="Where to compute (see `ciwrap doctor`).",
    ),
    click.option(
        "--threads",
        envvar="CIWRAP_THREADS",
        show_envvar=True,
        type=click.IntRange(0),
        default=0,
        expose_value=False,
        callback=_keep_threads,
        help="Threads to use; 0 for all.",
    ),
    click.option(
        "--engine",
        envvar="CIWRAP_ENGINE",
        show_envvar=True,
        type=click.Choice(["auto", "io_uring", "pread"]),
        default="auto",
        expose_value=False,
        callback=keep,
        help="How to read files.",
    ),
)


config_options = section(
    "Configuration",
    click.option(
        "--config",
        "config_path",
        type=click.Path(),
        help="The configuration, instead of CIWRAP_CONFIG or the nearest ciwrap.yaml.",
    ),
    click.option(
        "--golden-dir",
        type=click.Path(file_okay=False),
        help="Folder of the goldens, instead of the configured one.",
    ),
)


keep_host_option = click.option(
    "--keep-host",
    is_flag=True,
    help="Keep the name of this machine, and when each run began; else no result has them.",
)


def host() -> dict[str, str]:
    """What is known of the machine beside facts that name nobody."""
    return {"host": platform.node() or "unknown"}


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
