"""The command group, what its commands share, and the one place that turns errors into exit codes.

A reader of a standard stream may leave (`ciwrap check | head`), or never have been there
(`ciwrap check >&-`). The verdict, the exit code and the files that were asked for stay the same.
"""

from __future__ import annotations

import io
import os
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TextIO

import click

from ciwrap import __version__
from ciwrap.base.errors import (
    CiwrapError,
    ExitCode,
    InterruptedCallError,
    UnreadableFileError,
    escape,
)
from ciwrap.cli.commands import group, usage_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from typing_extensions import Buffer

    from ciwrap.golden.trees import Resources
    from ciwrap.model import CheckResult, RunResult
    from ciwrap.report.console import Console
    from ciwrap.report.document import Detail


# Options that write a document, and where the session keeps their files.
_DOCUMENTS = {
    "--json": "json_target",
    "--report": "report_target",
    "--markdown": "markdown_target",
    "--junit": "junit_target",
}


class Session:
    """json_target, report_target, markdown_target, junit_target: a file, `-` for stdout, None for
    none. json_detail: which variables the document lists. quiet: print nothing if all is well.
    color: auto, always or never. kind: the command's name. started_at: UTC, ISO 8601. environment:
    what the program ran with, where this call has run it. golden_dir: where snapshots of goldens
    lie.
    """

    json_target: str | None = None
    report_target: str | None = None
    markdown_target: str | None = None
    junit_target: str | None = None
    json_detail: Detail = "all"
    verbose: bool = False
    quiet: bool = False
    color: str = "auto"
    kind: str = "ciwrap"
    backend: str = "auto"
    threads: int = 0
    engine: str = "auto"
    environment: Mapping[str, str] | None = None
    golden_dir: Path | None = None
    _stdout: Console | None = None

    def __init__(self, arguments: tuple[str, ...], started_at: str) -> None:
        self.arguments = arguments  # as they were given
        self.started_at = started_at

    @property
    def writes_documents(self) -> bool:
        """Whether anything but the terminal is to show the result."""
        return bool(self.targets)

    @property
    def targets(self) -> dict[str, str]:
        """Where documents are asked for, by option."""
        said = {option: getattr(self, field) for option, field in _DOCUMENTS.items()}
        return {option: target for option, target in said.items() if target is not None}

    def give_up(self, option: str) -> None:
        """Takes back what an option asked for that writes a document."""
        setattr(self, _DOCUMENTS[option], None)

    def split_command(self, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words before and after the `--` that was given, which click does not tell of."""
        given = self.arguments
        count = len(given) - given.index("--") - 1 if "--" in given else 0
        return words[: len(words) - count], words[len(words) - count :]

    @property
    def resources(self) -> Resources:
        from ciwrap.golden.trees import Resources

        return Resources(backend=self.backend, threads=self.threads, engine=self.engine)

    @property
    def console(self) -> Console:
        """For people: stdout, or stderr where stdout carries the JSON or the report. With --quiet
        what is printed waits for `release`.
        """
        if self._stdout is None:
            from ciwrap.report.console import Lines

            self._stdout = Lines() if self.quiet else self._make_console()
        return self._stdout

    def _make_console(self) -> Console:
        from ciwrap.report.console import make_console

        is_taken = "-" in self.targets.values()
        color = {"always": True, "never": False}.get(self.color)
        return make_console(sys.stderr if is_taken else sys.stdout, color=color)

    def release(self, exit_code: int) -> None:
        """Prints what --quiet has kept back, if not all is well."""
        from ciwrap.report.console import Lines

        if exit_code != 0 and isinstance(self._stdout, Lines):
            waiting, self._stdout = self._stdout.found, self._make_console()
            for line in waiting:
                self._stdout.print(line)

    def emit(self, result: RunResult, folder: Path, *, is_printed: bool = True) -> int:
        """Writes the JSON document and the report if asked for, prints the result, returns the exit
        code. folder: as for `with_circumstances`. is_printed: False where somebody else prints it.
        Raises WriteFailedError, once the result has been seen.
        """
        from ciwrap.model import Verdict
        from ciwrap.report.terminal import render

        try:
            # Where something does not match, the terminal tells what differs from the environment
            # that a golden knows of; two runs have none.
            is_told = result.verdict is not Verdict.MATCH and any(
                check.golden_environment for check in result.checks
            )
            if self.writes_documents or is_told:
                result = self.with_circumstances(result, folder)
            if self.writes_documents:
                self._write_files(result)
        finally:
            if is_printed:
                render(result, self.console, verbose=self.verbose)
        if self.report_target not in (None, "-"):
            self.console.print(f"  report: {escape(str(self.report_target))}")
        if self.quiet:  # here, since a process whose worker hangs may end without `run`
            self.release(int(result.verdict.exit_code))
        return int(result.verdict.exit_code)

    def with_circumstances(self, result: RunResult, folder: Path) -> RunResult:
        """The result, saying when, on what machine and with which versions it was made.

        And what of that differs from what goldens were made with. folder: the project's, where to
        look for the git commit and for snapshots.
        """
        from msgspec.structs import replace

        from ciwrap.snapshot.difference import describe_environment

        environment = self.environment or describe_environment(folder)
        return replace(
            result,
            environment=environment,
            checks=tuple(self._with_differences(one, environment, folder) for one in result.checks),
            ciwrap_version=__version__,
            started_at=self.started_at,
            project=folder.resolve().name,
        )

    def _with_differences(
        self, check: CheckResult, environment: Mapping[str, str], folder: Path
    ) -> CheckResult:
        from msgspec.structs import replace

        from ciwrap.snapshot.difference import environment_differences
        from ciwrap.snapshot.store import SnapshotStore

        if not check.golden_environment:
            return check
        stores = [SnapshotStore.of_project(folder)]
        if self.golden_dir is not None:
            stores.append(SnapshotStore.of_goldens(self.golden_dir))
        found = environment_differences(
            check.golden_environment, check.environment or environment, stores
        )
        return replace(check, environment_differences=found)

    def _write_files(self, result: RunResult) -> None:
        from ciwrap.report.document import for_others, to_document, with_detail

        if self.json_target is not None:
            listed = for_others(with_detail(result, self.json_detail))
            self.emit_document(to_document(listed))
        self.write_renderings(for_others(result))

    def write_renderings(self, result: RunResult) -> None:
        """Writes what is asked for beside JSON. result: names no folder of this machine. Raises
        WriteFailedError.
        """
        from ciwrap.report import outputs

        for target, write in (
            (self.report_target, outputs.write_report),
            (self.markdown_target, outputs.write_markdown),
            (self.junit_target, outputs.write_junit),
        ):
            if target is not None:
                write(target, result)

    def emit_record(self, record: object) -> None:
        """Writes one of the records of `ciwrap.cli.json_documents`, where --json asks for it."""
        from ciwrap.report.document import plain

        if self.json_target is not None:
            self.emit_document(plain(record))

    def emit_summary(self, text: str) -> None:
        """Writes a job summary, where --markdown asks for it. Raises WriteFailedError."""
        from ciwrap.report.document import write_text

        if self.markdown_target is not None:
            write_text(text, self.markdown_target, "the summary")

    def emit_document(self, document: Mapping[str, Any]) -> None:
        from ciwrap.report.document import write_document

        if self.json_target is not None:
            write_document(document, self.json_target)


INTERNAL_ERROR = 70  # EX_SOFTWARE
INTERRUPTED = 130  # 128 + SIGINT
# What a shell's completion sets, where click looks for it.
_COMPLETION = "_CIWRAP_COMPLETE"


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code; every error ends here."""
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    session = Session(arguments=tuple(arguments), started_at=started_at)
    for stream in (sys.stdout, sys.stderr):
        # Names that the locale cannot show are shown as escapes.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not arguments and not os.environ.get(_COMPLETION):
        _complain(group.get_help(group.make_context("ciwrap", [], resilient_parsing=True)))
        return int(ExitCode.USAGE)
    code = _code_of(session, arguments)
    if session.quiet:
        session.release(code)
    return code


def _code_of(session: Session, arguments: Sequence[str]) -> int:
    try:
        if instruction := os.environ.get(_COMPLETION):
            from ciwrap.cli.complete import answer

            return answer(_COMPLETION, instruction)
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
    message = usage_text(error)
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
    from ciwrap.report.document import for_others, to_document

    message = Message(MessageLevel.ERROR, text, slug=slug, file=file)
    result = RunResult(
        Verdict.NOT_COMPARABLE,
        kind=session.kind,
        messages=(message,),
        started_at=session.started_at,
    )
    result = for_others(result)
    try:
        session.emit_document(to_document(result, exit_code=exit_code))
        session.write_renderings(result)
    except CiwrapError as error:
        if str(error) != text:
            _complain(f"error: {error}")


def _complain(text: Any) -> None:
    print(text, file=sys.stderr)


class _Descriptor(io.FileIO):
    """A file descriptor that takes whatever is written once nobody reads it any more.

    Raises OSError for whatever else keeps it from being written, once: what is left in buffers then
    goes nowhere, so that the process ends as the error says.
    """

    _is_lost = False

    def write(self, data: Buffer, /) -> int:
        try:
            if not self._is_lost:
                return super().write(data)
        except BrokenPipeError:
            self._is_lost = True
        except OSError:
            self._is_lost = True
            raise
        return memoryview(data).nbytes


def settle_streams() -> None:
    """Makes stdin, stdout and stderr safe to use, for the whole process. To be called before
    anything else is opened.
    """
    _open_closed_descriptors()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _settled(sys.stdout, 1)
    sys.stderr = _settled(sys.stderr, 2)


def _open_closed_descriptors() -> None:
    """Fills those of 0, 1 and 2 that are closed with the null device: else the next file that is
    opened would get the number of a stream, and what is printed would end up in it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _settled(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream, or one on the same descriptor that a reader may leave."""
    if stream is not None and not isinstance(stream, io.TextIOWrapper):
        return stream  # somebody else's: of an interactive shell, of a test
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(descriptor, "w", closefd=False)),
        encoding="utf-8" if stream is None else stream.encoding,
        errors=None if stream is None else stream.errors,
        line_buffering=stream is None or stream.line_buffering,
        write_through=stream is not None and stream.write_through,
    )
