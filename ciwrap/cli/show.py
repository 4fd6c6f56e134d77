"""`ciwrap show`, `values` and `doctor`: what a golden, a log and this installation hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec.structs import replace

from ciwrap import __version__, _core
from ciwrap.base.errors import (
    CiwrapError,
    ConfigMissingError,
    ExitCode,
    GoldenMissingError,
    UsageError,
)
from ciwrap.base.files import read_regular
from ciwrap.cli.commands import command
from ciwrap.cli.json_documents import (
    DoctorDocument,
    FoundConfig,
    FoundValue,
    KnownCheck,
    ShowCaptureDocument,
    ShowDocument,
    ShowGoldensDocument,
    ShownGolden,
    Usable,
    ValuesDocument,
)
from ciwrap.cli.main import Session
from ciwrap.cli.options import json_option
from ciwrap.formats.find_outputs import reader_names
from ciwrap.formats.log import LogReader, LogSource
from ciwrap.formats.reader import lacking
from ciwrap.golden.manifest import Manifest
from ciwrap.golden.places import BINARY_SUFFIX, MANIFEST_SUFFIX, SHARED_SUFFIX, checks_meant
from ciwrap.golden.shared_file import MOST_FILE_BYTES, read_shared
from ciwrap.golden.show import acceptance_line, golden_lines, shown_variables, stored_places
from ciwrap.golden.store import read_golden_file
from ciwrap.project.config import options_of_preset
from ciwrap.recording.recorded_run import capture_of, open_capture
from ciwrap.report.text import plural, safe_text
from ciwrap.review.project import find_project, load_project, near
from ciwrap.runs.sides import capture_lines, shown_capture
from ciwrap.snapshot.difference import describe_environment


@command("show", example="ciwrap show golden/field.golden")
@click.argument("file", metavar="FILE")
@click.option("--full", is_flag=True, help="All data and leaves, however many.")
@json_option
@click.pass_obj
def show_command(session: Session, file: str, full: bool) -> int:
    """Print a golden file (or the golden of the check of that name) as stable text.

    Of a file that the small goldens of a test file share (.goldens), print all of them, and who
    accepted each; of the name of a test, class or test file (tests/test_flow.py::test_push), or of
    a pattern with * and ?, print the goldens that it means. Of a capture (RUN.tree, or a run's
    folder with one), print what was captured, by which bounds, and what is known of each variable.

    As a git textconv it makes changes of goldens readable:

    \b
      git config diff.ciwrap.textconv "ciwrap show"
      echo "*.golden diff=ciwrap" >> .gitattributes
    """
    capture = capture_of(Path(file))
    if capture is not None:
        return _show_capture(session, capture)

    if file.endswith(SHARED_SUFFIX):
        return _show_shared(session, Path(file), full=full)
    path = _resolve(file)
    if path is None:
        return _show_goldens(session, _named(file), full=full)
    variables, root = read_golden_file(path)
    session.emit_record(ShowDocument(1, "show", root, shown_variables(variables)))
    if session.json_target == "-":
        return 0
    for line in golden_lines(variables, root, full=full):
        click.echo(line)
    return 0


def _show_shared(session: Session, path: Path, *, full: bool) -> int:
    """All goldens of a file that small ones share, in the order of their names."""
    try:
        goldens = read_shared(read_regular(path, MOST_FILE_BYTES), path)
    except FileNotFoundError:
        raise GoldenMissingError("there is no such file", file=path) from None
    found = [_Golden(one.manifest.check, one.manifest, one.variables) for one in goldens]
    return _show_goldens(session, found, full=full)


class _Golden(NamedTuple):
    """check: what it is called here."""

    check: str
    manifest: Manifest
    variables: Sequence[_core.GoldenVariable]


def _named(name: str) -> list[_Golden]:
    """The goldens of tests that a name or pattern means. Raises GoldenMissingError for none."""
    project = find_project(None, None)
    places = [one for one in stored_places(project.golden_dir) if one.folder]
    meant = checks_meant(name, (one.check for one in places))
    found = []
    for place in places:
        if place.check in meant:
            golden = project.goldens.at(place).read(place.name)
            kind = "" if place.variant is None else f" (@{place.variant})"
            found.append(_Golden(place.check + kind, golden.manifest, golden.variables))
    if not found:
        raise GoldenMissingError(
            "there is neither such a file, nor a check or test of this name that has a golden",
            file=Path(name),
        )
    return found


def _show_goldens(session: Session, goldens: Sequence[_Golden], *, full: bool) -> int:
    shown = tuple(
        ShownGolden(one.check, one.manifest.binary.root, shown_variables(one.variables))
        for one in goldens
    )
    session.emit_record(ShowGoldensDocument(1, "show-goldens", shown))
    if session.json_target == "-":
        return 0
    for number, one in enumerate(goldens):
        if number:
            click.echo("")
        click.echo(safe_text(f"check {one.check}"))
        for entry in one.manifest.accepted:
            click.echo(safe_text(acceptance_line(entry)))
        for line in golden_lines(one.variables, one.manifest.binary.root, full=full):
            click.echo(line)
    return 0


def _show_capture(session: Session, path: Path) -> int:
    shown = shown_capture(path, open_capture)
    session.emit_record(ShowCaptureDocument(1, "show-capture", shown))
    if session.json_target != "-":
        for line in capture_lines(shown):
            click.echo(line)
    return 0


def _resolve(file: str) -> Path | None:
    """The binary meant by a path (its manifest counts, too) or by the name of a check; None for a
    name that could be that of tests.
    """
    path = Path(file)
    if path.name.endswith(MANIFEST_SUFFIX):
        return path.with_name(path.name.removesuffix(MANIFEST_SUFFIX) + BINARY_SUFFIX)
    if path.is_file() or file.endswith(BINARY_SUFFIX):
        return path

    try:
        project = load_project(None, None)
    except ConfigMissingError:
        return None
    is_check = file in {check.name for check in project.own_config.checks}
    return project.store.path(file) if is_check else None


_TITLES = ("name", "matches", "first", "last", "line")


@command("values", example="ciwrap values run.log --use cp2k")
@click.argument("file", type=click.Path())
@click.option("--check", "check_name", metavar="NAME", help="The check whose rules are tried.")
@click.option("--config", "config_path", type=click.Path(), help="Where that check is configured.")
@click.option("--use", metavar="CODE", help="Try shipped rules: cp2k, lammps, pyscf or qe.")
@json_option
@click.pass_obj
def values_command(
    session: Session, file: str, check_name: str | None, config_path: str | None, use: str | None
) -> int:
    """Print what the rules of a check find in FILE: how often, the first and the last value, and
    the line of the first.

    Without --check, the one check with `format: log` is taken. Writes nothing and compares nothing.

    Exit codes: 0 all rules find something, but for `optional` ones, 2 usage or configuration, 3 one
    finds nothing, or what it finds is not a number.
    """
    options = _options(check_name, config_path, use)
    with LogReader().open(Path(file), options=options) as source:
        found = tuple(_found(source))
        problems = [f"{one.name}: {one.fault}" for one in found if one.fault is not None]
        problems += [str(error) for error in source.faults]
        told = (*source.notes, *problems)
    session.emit_record(ValuesDocument(1, "values", file, found, told))
    for line in (*_table(found), *told):
        session.console.print(safe_text(line))
    return int(ExitCode.NOT_COMPARABLE if problems else ExitCode.MATCH)


def _options(check_name: str | None, config_path: str | None, use: str | None) -> dict[str, Any]:
    """The rules that are asked for. Raises UsageError, ConfigError."""
    if use is not None:
        if check_name is not None or config_path is not None:
            raise UsageError("--use cannot be used with --check and --config")

        return options_of_preset(use)
    project = load_project(config_path, None, () if check_name is None else (check_name,))
    checks = [check for check in project.checks if check.format == "log"]
    if check_name is not None and not checks:
        raise UsageError(
            f"the check {check_name!r} has no 'format: log', so it has no rules of logs",
            remedy="name another one, or try the rules of a code with --use",
        )
    if len(checks) != 1:
        names = ", ".join(check.name for check in checks) or "none"
        raise UsageError(
            f"one check with 'format: log' is needed (known: {names})",
            remedy="name it with --check, or try the rules of a code with --use",
        )
    return dict(checks[0].options)


def _found(source: LogSource) -> Iterator[FoundValue]:
    """What each rule finds."""
    for name, series in source.series.items():
        values = source.elements_of(name)
        line = series.place(0)[0].line if series.count else None
        first = str(values[0]) if series.count else None
        last = str(values[-1]) if series.count else None
        unit = " ".join(text for text, _ in series.units.values()) or None
        yield FoundValue(name, series.found_count, first, last, line, unit, series.fault)
    for counter in source.counters:
        line = None if counter.first is None else counter.first.number
        yield FoundValue(counter.name, counter.count, None, None, line)


def _table(found: Iterable[FoundValue]) -> list[str]:
    """Columns side by side, names to the left, numbers to the right."""
    lines = [_TITLES]
    for one in found:
        last = " ".join(text for text in (one.last, one.unit) if text)
        lines.append((one.name, str(one.matches), one.first or "", last, str(one.line or "")))
    widths = [max(len(line[at]) for line in lines) for at in range(len(_TITLES))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


@command("doctor", example="ciwrap doctor")
@json_option
@click.pass_obj
def doctor_command(session: Session) -> int:
    """Print versions, backends, read engines and CPU levels, and warn of trouble.

    Exit code 0 if everything that is needed works, else 3.
    """
    findings = examine()
    session.emit_record(findings)
    for line in _lines(findings):
        session.console.print(line)
    return int(ExitCode.NOT_COMPARABLE if findings.errors else ExitCode.MATCH)


def examine() -> DoctorDocument:
    """Everything doctor knows."""
    findings = DoctorDocument(
        schema_version=1,
        kind="doctor",
        ciwrap_version=__version__,
        libraries={name: str(text) for name, text in _core.library_versions().items()},
        environment=dict(describe_environment(Path.cwd())),
        backends=_usable(_core.backends()),
        io_engines=_usable(_core.io_engines()),
        cpu_levels=_usable(_core.cpu_levels()),
        readers=tuple(reader_names()),
        lacking=lacking(),
        config=_config_finding(),
        warnings=(),
        errors=(),
    )
    return replace(findings, warnings=tuple(_warnings(findings)), errors=tuple(_errors(findings)))


def _usable(items: Iterable[Mapping[str, Any]]) -> tuple[Usable, ...]:
    return tuple(Usable(**item) for item in items)


def _config_finding() -> FoundConfig:
    try:
        project = load_project(None, None)
    except ConfigMissingError:
        return FoundConfig(None, None, ())
    except CiwrapError as error:
        return FoundConfig(error.file, str(error), ())
    stored = set(project.store.checks())
    checks = tuple(KnownCheck(check.name, check.name in stored) for check in project.checks)
    return FoundConfig(str(near(project.own_config.path)), None, checks)


def _errors(findings: DoctorDocument) -> list[str]:
    found = []
    if not any(item.usable for item in findings.backends):
        found.append("no backend is usable, so no tree can be built")
    if not any(item.usable for item in findings.io_engines):
        found.append("no read engine is usable, so no file can be streamed")
    if findings.config.problem:
        found.append(findings.config.problem)
    return found


def _warnings(findings: DoctorDocument) -> list[str]:
    found = [
        f"io_uring is not usable ({engine.reason}); files are read with pread instead"
        for engine in findings.io_engines
        if engine.name == "io_uring" and not engine.usable
    ]
    active = [level.name for level in findings.cpu_levels if level.active]
    best = [level.name for level in findings.cpu_levels if level.usable][-1:]
    if active != best:
        found.append(f"CPU level {active} is in use, although {best} would do")
    asked = os.environ.get("OMP_NUM_THREADS", "")
    cpus = int(findings.environment["cpu_count"])
    first = asked.split(",")[0].strip()
    if first.isdecimal() and int(first) > cpus:
        found.append(f"OMP_NUM_THREADS={asked}, but only {cpus} CPUs may be used")
    lacking = [check.name for check in findings.config.checks if not check.has_golden]
    if lacking:
        found.append(f"no golden yet for {', '.join(lacking)}: `ciwrap accept` makes them")
    if sys.flags.optimize:
        found.append("Python runs with -O, so assertions in tests are skipped")
    return found


def _lines(findings: DoctorDocument) -> list[str]:
    lines = [f"ciwrap {findings.ciwrap_version}"]
    lines += [f"  {name:<12} {text}" for name, text in findings.libraries.items()]
    lines.append("machine")
    for name in ("cpu", "cpu_count", "os", "kernel", "python", "numpy"):
        lines.append(f"  {name:<12} {findings.environment[name]}")
    for title, items in (
        ("backends", findings.backends),
        ("read engines", findings.io_engines),
        ("CPU levels", findings.cpu_levels),
    ):
        lines.append(title)
        lines += [f"  {item.name:<12} {_state(item)}" for item in items]
    lines.append(f"readers\n  {', '.join(findings.readers)}")
    if findings.lacking:
        packages = " ".join(dict.fromkeys(" ".join(findings.lacking.values()).split()))
        what = ", ".join(findings.lacking)
        lines.append(f"  without their libraries: {what}; pip install {packages}")
    config = findings.config
    if config.path is None:
        lines.append("configuration\n  none here or above; `ciwrap init` writes one")
    else:
        names = ", ".join(check.name for check in config.checks)
        lines.append(f"configuration\n  {config.path}: {names or 'cannot be read'}")
    lines += [f"warning: {text}" for text in findings.warnings]
    lines += [f"error: {text}" for text in findings.errors]
    if not findings.warnings and not findings.errors:
        lines.append("no trouble found")
    return [safe_text(part) for line in lines for part in line.split("\n")]


def _state(item: Usable) -> str:
    if not item.usable:
        return f"not usable: {item.reason or 'not on this machine'}"
    state = "usable"
    if item.concurrency:
        state += f", {plural(item.concurrency, 'thread')}"
    if item.active:
        state += ", in use"
    return state
