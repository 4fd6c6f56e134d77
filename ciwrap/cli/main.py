"""The command group, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import io
import sys
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.cli.session import Session
from ciwrap.errors import CiwrapError, ExitCode, InterruptedCallError, UnreadableFileError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERNAL_ERROR = 70  # EX_SOFTWARE
INTERRUPTED = 130  # 128 + SIGINT

# name: (module, the line that `ciwrap --help` shows). Nothing is imported before it is used.
COMMANDS = {
    "init": ("ciwrap.cli.init", "Write a commented ciwrap.yaml from the outputs found here."),
    "accept": ("ciwrap.cli.accept", "Make goldens of the outputs, or replace them."),
    "check": ("ciwrap.cli.check", "Compare the outputs with their goldens."),
    "run": ("ciwrap.cli.run", "Run the configured command, then check what it wrote."),
    "repeat": ("ciwrap.cli.repeat", "Run the command several times; suggest error bounds."),
    "review": ("ciwrap.cli.review", "Look at pending goldens; accept or reject each."),
    "reject": ("ciwrap.cli.reject", "Throw pending goldens away."),
    "prune": ("ciwrap.cli.prune", "Delete goldens that nothing uses any more."),
    "compare": ("ciwrap.cli.compare", "Compare two files or folders with each other."),
    "report": ("ciwrap.cli.report", "Make a page, a summary and more from JSON results."),
    "capture": ("ciwrap.cli.capture", "Capture a whole run as trees, to compare it in no time."),
    "selftest": ("ciwrap.cli.selftest", "Plant damage, and see that it is caught."),
    "record": ("ciwrap.cli.record", "Run a program that records its arrays as it goes."),
    "native": ("ciwrap.cli.native", "Say where the recording library and its headers lie."),
    "watch": ("ciwrap.cli.watch", "Show how far a recorded run is from its bounds, live."),
    "time": ("ciwrap.cli.time_command", "Say whether one command is slower than another."),
    "variability": (
        "ciwrap.cli.variability",
        "Map how much runs vary, by configuration.",
    ),
    "snapshot": ("ciwrap.cli.snapshot", "Keep, compare and restore environments."),
    "trend": ("ciwrap.cli.trend", "Say what moves from result to result."),
    "bisect": ("ciwrap.cli.bisect", "Find the commit that moved a number."),
    "changes": ("ciwrap.cli.changes", "Say what is checked differently since a commit."),
    "import": ("ciwrap.cli.import_command", "Make checks of the tests of other runners."),
    "values": ("ciwrap.cli.values", "Print what a configuration finds in a log."),
    "show": ("ciwrap.cli.show", "Print a golden or a capture as text (serves git diff)."),
    "doctor": ("ciwrap.cli.doctor", "Say what this installation can do and what troubles it."),
    "demo": ("ciwrap.cli.demo", "See it work: a noisy simulation, its golden, and a defect."),
}

EXIT_CODE_HELP = (
    "Exit codes: 0 match, 1 differ, 2 usage or configuration, 3 could not compare."
    " Whatever was not compared is never a match."
)


class LazyGroup(click.Group):
    """Imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Raises UsageError for a name that is nearly one of a command."""
        if cmd_name in COMMANDS:
            command = import_module(COMMANDS[cmd_name][0]).command
            assert isinstance(command, click.Command)
            return command
        from difflib import get_close_matches

        near = get_close_matches(cmd_name, COMMANDS, 1)
        if near:
            raise click.UsageError(
                f"there is no command {cmd_name!r}; did you mean {near[0]!r}?", ctx
            )
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


group = click.version_option(
    package_name="ciwrap", message="%(prog)s %(version)s", help="Print the version."
)(
    LazyGroup(
        help="Are the numbers still the same? Golden trees with error bounds, for CI.",
        epilog=EXIT_CODE_HELP,
        context_settings={"max_content_width": 100},
    )
)


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code; every error ends here."""
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    kind = arguments[0] if arguments and arguments[0] in COMMANDS else "ciwrap"
    session = Session(kind=kind, arguments=tuple(arguments), started_at=started_at)
    for stream in (sys.stdout, sys.stderr):
        # Names that the locale cannot show are shown as escapes.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not arguments:
        _complain(group.get_help(group.make_context("ciwrap", [], resilient_parsing=True)))
        return int(ExitCode.USAGE)
    try:
        code = group.main(
            args=list(arguments), prog_name="ciwrap", standalone_mode=False, obj=session
        )
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        session.json_target = session.json_target or _json_target(arguments)
        return _usage_error(session, error)
    except (KeyboardInterrupt, click.Abort, InterruptedCallError):
        _complain("interrupted")
        return INTERRUPTED
    except CiwrapError as error:
        return _failed(session, error)
    except MemoryError:
        _complain("error: not enough memory; keep less data in the golden (evidence: tree)")
        return int(ExitCode.NOT_COMPARABLE)
    except OSError as error:
        unreadable = UnreadableFileError(error.strerror or str(error), file=error.filename)
        return _failed(session, unreadable)
    # Anything else is a fault of ours: say so, and never let it pass for a verdict.
    except Exception:
        import traceback

        traceback.print_exc()
        _complain("internal error: please report the lines above")
        return INTERNAL_ERROR


def _json_target(arguments: Sequence[str]) -> str | None:
    """What --json says, for a command line that was given up before options were looked at."""
    for position, argument in enumerate(arguments):
        if argument.startswith("--json="):
            return argument.partition("=")[2]
        if argument == "--json" and position + 1 < len(arguments):
            return arguments[position + 1]
    return None


def _usage_error(session: Session, error: click.UsageError) -> int:
    # Of an option without its value click does not know whose it is.
    own = "ciwrap" if session.kind == "ciwrap" else f"ciwrap {session.kind}"
    path = own if error.ctx is None else error.ctx.command_path
    message = one_line(error.format_message()).rstrip(".")
    _write_failure(session, message, "usage", int(ExitCode.USAGE))
    _complain(f"error: {message}; see `{path} --help`")
    return int(ExitCode.USAGE)


def _failed(session: Session, error: CiwrapError) -> int:
    _write_failure(session, str(error), error.slug, int(error.exit_code), error.file)
    _complain(f"error: {error}")
    return int(error.exit_code)


def _write_failure(
    session: Session, text: str, slug: str, exit_code: int, file: str | None = None
) -> None:
    """The JSON document and the report of a call that came to no verdict, if asked for."""
    if not session.writes_documents:
        return
    from ciwrap.model import Message, MessageLevel, RunResult, Verdict
    from ciwrap.report.document import to_document
    from ciwrap.report.outputs import write_report
    from ciwrap.report.paths import relative_to

    message = Message(MessageLevel.ERROR, text, slug=slug, file=file)
    result = RunResult(
        Verdict.NOT_COMPARABLE,
        kind=session.kind,
        messages=(message,),
        started_at=session.started_at,
    )
    result = relative_to(result, Path.cwd())
    try:
        session.emit_document(to_document(result, exit_code=exit_code))
        if session.report_target is not None:
            write_report(session.report_target, result)
    except CiwrapError as error:
        if str(error) != text:
            _complain(f"error: {error}")


def _complain(text: Any) -> None:
    print(text, file=sys.stderr)
