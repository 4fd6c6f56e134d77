"""The commands in their groups, and how help shows one: options in sections, then an example."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ciwrap import __version__
from ciwrap.base.errors import one_line
from ciwrap.base.words import CALLED_ELSEWHERE, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

_F = TypeVar("_F", bound="Callable[..., Any]")

# Heading: name: (module, the line that `ciwrap --help` shows). Nothing is imported before it is
# used.
GROUPS = {
    "Every day": {
        "init": ("ciwrap.cli.init", "Write a commented ciwrap.yaml from the outputs found here."),
        "run": ("ciwrap.cli.check", "Run the configured command, then check what it wrote."),
        "check": ("ciwrap.cli.check", "Compare the outputs with their goldens."),
        "accept": ("ciwrap.cli.accept", "Make goldens of the outputs, or replace them."),
        "review": ("ciwrap.cli.review", "Look at pending goldens; accept or reject each."),
    },
    "Compare": {
        "compare": ("ciwrap.cli.compare", "Compare two files or folders with each other."),
        "show": ("ciwrap.cli.show", "Print a golden or a capture as text (serves git diff)."),
        "report": ("ciwrap.cli.report", "Make a page, a summary and more from JSON results."),
    },
    "Measure": {
        "repeat": ("ciwrap.cli.repeat", "Run the command several times; suggest error bounds."),
        "time": ("ciwrap.cli.studies", "Say whether one command is slower than another."),
        "trend": ("ciwrap.cli.trend", "Say what moves from result to result."),
        "bisect": ("ciwrap.cli.studies", "Find the commit that moved a number."),
        "selftest": ("ciwrap.cli.studies", "Plant damage, and see that it is caught."),
        "changes": ("ciwrap.cli.studies", "Say what is checked differently since a commit."),
        "variability": ("ciwrap.cli.variability", "Map how much runs vary, by configuration."),
    },
    "Large runs": {
        "capture": ("ciwrap.cli.capture", "Capture a run as trees, to compare it in no time."),
        "record": ("ciwrap.cli.record", "Run a program that records its arrays as it goes."),
        "watch": ("ciwrap.cli.record", "Show how far a recorded run is from its bounds, live."),
    },
    "Environment": {
        "snapshot": ("ciwrap.cli.snapshot", "Keep, compare and restore environments."),
    },
    "Set up and tidy": {
        "doctor": ("ciwrap.cli.show", "Say what this installation can do and what troubles it."),
        "demo": ("ciwrap.cli.init", "See it work: a noisy simulation, its golden, a defect."),
        "import": ("ciwrap.cli.init", "Make checks of the tests of other runners."),
        "values": ("ciwrap.cli.show", "Print what a configuration finds in a log."),
        "native": ("ciwrap.cli.record", "Say where the recording library and its headers lie."),
        "reject": ("ciwrap.cli.accept", "Throw pending goldens away."),
        "prune": ("ciwrap.cli.accept", "Delete goldens that nothing uses any more."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

# As many options as one can look through without headings.
_MOST_WITHOUT_SECTIONS = 12
_FIRST_SECTION, LAST_SECTION = "Options", "Output"


def keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Puts an option's value into the field of the session that has its name. What is not given
    leaves it: the same option may stand before the command and behind it.
    """
    if ctx.obj is not None and value not in (None, False):
        setattr(ctx.obj, param.name or "", value)


def section(title: str, *decorators: Callable[[Any], Any]) -> Callable[[_F], _F]:
    """Options as one decorator, which help shows in this order below this title."""

    def decorate(function: _F) -> _F:
        for one in reversed(decorators):
            function = one(function)
            # Where click gathers the options of a function, the last one last.
            vars(function)["__click_params__"][-1].section = title
        return function

    return decorate


def _color_option() -> click.Option:
    return click.Option(
        ["--color"],
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=keep,
        help="When to print in colours.",
    )


_quiet = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=keep,
    help="Print nothing if all is well (exit code 0).",
)
verbose_option = section(
    LAST_SECTION,
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="Show every variable, and what the verdict rests on.",
    ),
)


def verbosity_options(function: _F) -> _F:
    """For commands that come to a verdict or do something: what they print is no product."""
    return verbose_option(section(LAST_SECTION, _quiet)(function))


def complete_checks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """The checks of the configuration, for the completion of a shell; none without one."""
    from ciwrap.base.errors import CiwrapError
    from ciwrap.review.project import load_project

    try:
        checks = load_project(ctx.params.get("config_path"), None, ()).checks
    except (CiwrapError, OSError):  # nowhere to print it
        return []
    return [check.name for check in checks if check.name.startswith(incomplete)]


class Command(click.Command):
    """example: a command line, which help shows in the end."""

    def __init__(self, name: str | None, *, example: str, **attributes: Any) -> None:
        super().__init__(name, epilog=f"Example: {example}", **attributes)
        self.example = example
        self.params.append(_color_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises UsageError, which for an option of other tools says what it is called here."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = f"there is no option {error.option_name!r}{self._instead(error.option_name)}"
            raise click.UsageError(text, ctx) from None

    def _instead(self, option: str) -> str:
        """What to do for an option that there is not, as the end of a sentence."""
        known = [name for one in self.params for name in one.opts if name.startswith("--")]
        word = option.lstrip("-").replace("-", "_")
        meant = CALLED_ELSEWHERE.get(word, word)
        if meant in ("atol", "rtol", "ulps") and f"--{meant}" not in known:
            return f"; bounds are read from ciwrap.yaml ('{meant}:')"
        if meant == "accept":
            return "; goldens are made and replaced by `ciwrap accept`"
        near = nearest(word, [name[2:].replace("-", "_") for name in known], 0.6)
        return "" if near is None else f"; did you mean '--{near.replace('_', '-')}'?"

    def invoke(self, ctx: click.Context) -> Any:
        """Raises UsageError for --quiet before a command that is there to print."""
        if getattr(ctx.obj, "quiet", False) and all(one.name != "quiet" for one in self.params):
            raise click.UsageError(f"{ctx.command_path} takes no --quiet", ctx)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does, but in sections if they are many."""
        sections: dict[str, list[tuple[str, str]]] = {_FIRST_SECTION: [], LAST_SECTION: []}
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        is_long = len(options) > _MOST_WITHOUT_SECTIONS
        for one in options:
            is_last = not {"--color", "--help"}.isdisjoint(one.opts)
            title = LAST_SECTION if is_last else getattr(one, "section", _FIRST_SECTION)
            record = one.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title if is_long else _FIRST_SECTION, []).append(record)
        sections[LAST_SECTION] = sections.pop(LAST_SECTION)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


# What click calls the types of numbers, and what people do.
_TYPES = {"integer range": "whole number", "integer": "whole number", "float range": "number"}
_TOO_MANY = re.compile(r"Got unexpected extra arguments? \((.*)\)")


def usage_text(error: click.UsageError) -> str:
    """What is wrong with a command line, in our words where click has its own."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{error.param.human_readable_name} is missing"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name} wants a value"
    text = one_line(error.message).rstrip(".")
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = max(error.param.opts, key=len)
        for kind, words in _TYPES.items():
            text = text.replace(f" is not a valid {kind}", f" is no {words}")
        return f"{name}: {text}"
    return _TOO_MANY.sub(r"this is more than the command takes: \1", text)


class CommandGroup(click.Group):
    """A command that consists of others."""

    command_class = Command


def command(name: str, *, example: str) -> Callable[[Callable[..., Any]], Command]:
    """Makes a command of a function."""
    return click.command(name, cls=Command, example=example)


class LazyGroup(click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Raises UsageError for a name that is none of a command."""
        if cmd_name in COMMANDS:
            found = getattr(import_module(COMMANDS[cmd_name][0]), f"{cmd_name}_command")
            assert isinstance(found, click.Command)
            return found
        near = nearest(cmd_name, list(COMMANDS), 0.6)
        hint = "" if near is None else f"; did you mean {near!r}?"
        raise click.UsageError(f"there is no command {cmd_name!r}{hint}", ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = super().resolve_command(ctx, args)
        if ctx.obj is not None:
            ctx.obj.kind = found[0]
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """As click does, without importing the commands."""
        from click.shell_completion import CompletionItem

        return [
            *(
                CompletionItem(name, help=text)
                for name, (_, text) in COMMANDS.items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                # One column for all groups.
                formatter.write_dl(
                    [(name.ljust(width), text) for name, (_, text) in commands.items()]
                )


EXIT_CODE_HELP = (
    "Exit codes: 0 match, 1 differ, 2 usage or configuration, 3 could not compare."
    " Whatever was not compared is never a match."
)
group = click.version_option(
    __version__,
    "-V",
    "--version",
    message="%(prog)s %(version)s",
    help="Print the version.",
)(
    _quiet(
        LazyGroup(
            help="Are the numbers still the same? Golden trees with error bounds, for CI.",
            epilog=EXIT_CODE_HELP,
            context_settings={"help_option_names": ["-h", "--help"]},
            params=[_color_option()],
        )
    )
)
