"""What one call of the command line shares: consoles, the JSON target, and how results get out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.model import CheckResult, RunResult
    from ciwrap.report.console import Console
    from ciwrap.report.detail import Detail
    from ciwrap.trees.build import Resources


class Session(Struct):
    """json_target, report_target, markdown_target: a file, `-` for stdout, None for none.
    json_detail: which variables the document lists. kind: the command's name. started_at: UTC, ISO
    8601. environment: what the program ran with, where this call has run it. golden_dir: where
    snapshots of goldens lie.
    """

    json_target: str | None = None
    report_target: str | None = None
    markdown_target: str | None = None
    json_detail: Detail = "all"
    verbose: bool = False
    kind: str = "ciwrap"
    backend: str = "auto"
    threads: int = 0
    engine: str = "auto"
    arguments: tuple[str, ...] = ()  # as they were given
    started_at: str = ""
    environment: Mapping[str, str] | None = None
    golden_dir: Path | None = None
    _stdout: Console | None = None

    @property
    def writes_documents(self) -> bool:
        """Whether anything but the terminal is to show the result."""
        return self.json_target is not None or self.report_target is not None

    def give_up(self, option: str) -> None:
        """Takes back what `--json` or `--report` asked for."""
        if option == "--json":
            self.json_target = None
        else:
            self.report_target = None

    @property
    def resources(self) -> Resources:
        from ciwrap.trees.build import Resources

        return Resources(backend=self.backend, threads=self.threads, engine=self.engine)

    @property
    def console(self) -> Console:
        """For people: stdout, or stderr where stdout carries the JSON or the report."""
        if self._stdout is None:
            from ciwrap.report.console import make_console

            is_taken = "-" in (self.json_target, self.report_target, self.markdown_target)
            self._stdout = make_console(sys.stderr if is_taken else sys.stdout)
        return self._stdout

    def emit(self, result: RunResult, folder: Path) -> int:
        """Writes the JSON document and the report if asked for, prints the result, returns the exit
        code. folder: as for `with_circumstances`. Raises WriteFailedError, once the result has been
        seen.
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
            render(result, self.console, verbose=self.verbose)
        if self.report_target not in (None, "-"):
            from ciwrap.report.text import safe_text

            self.console.print(f"  report: {safe_text(self.report_target)}")
        return int(result.verdict.exit_code)

    def with_circumstances(self, result: RunResult, folder: Path) -> RunResult:
        """The result, saying when, on what machine and with which versions it was made.

        And what of that differs from what goldens were made with. folder: the project's, where to
        look for the git commit and for snapshots.
        """
        from importlib.metadata import version

        from ciwrap.snapshot.describe import describe_environment

        environment = self.environment or describe_environment(folder)
        return replace(
            result,
            environment=environment,
            checks=tuple(self._with_differences(one, environment, folder) for one in result.checks),
            ciwrap_version=version("ciwrap"),
            started_at=self.started_at,
        )

    def _with_differences(
        self, check: CheckResult, environment: Mapping[str, str], folder: Path
    ) -> CheckResult:
        from ciwrap.snapshot.runs import environment_differences
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
        from ciwrap.report.detail import with_detail
        from ciwrap.report.document import to_document
        from ciwrap.report.outputs import write_report
        from ciwrap.report.paths import relative_to
        from ciwrap.report.trim import trimmed

        # What leaves this machine names no folder of it.
        if self.json_target is not None:
            listed = relative_to(trimmed(with_detail(result, self.json_detail)), Path.cwd())
            self.emit_document(to_document(listed))
        if self.report_target is not None:
            write_report(self.report_target, relative_to(trimmed(result), Path.cwd()))

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
