"""`ciwrap doctor`: what this installation can do, and what may trouble it."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ciwrap.cli.options import json_option
from ciwrap.errors import CiwrapError, ConfigMissingError, ExitCode
from ciwrap.report.text import plural, safe_text
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ciwrap.cli.json_documents import DoctorDocument, FoundConfig, Usable
    from ciwrap.cli.session import Session


@click.command(name="doctor", short_help="Say what this installation can do.")
@json_option
@click.pass_obj
def command(session: Session) -> int:
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
    from ciwrap import _core
    from ciwrap.cli.json_documents import DoctorDocument
    from ciwrap.readers.optional import lacking
    from ciwrap.readers.registry import reader_names
    from ciwrap.snapshot.describe import describe_environment

    findings = DoctorDocument(
        schema_version=1,
        kind="doctor",
        ciwrap_version=version("ciwrap"),
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
    from ciwrap.cli.json_documents import Usable

    return tuple(Usable(**item) for item in items)


def _config_finding() -> FoundConfig:
    from ciwrap.cli.json_documents import FoundConfig, KnownCheck
    from ciwrap.cli.load_project import load_project, near

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
    config = findings.config
    if config.problem:
        found.append(config.problem)
    lacking = [check.name for check in config.checks if not check.has_golden]
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
        extras = ",".join(findings.lacking.values())
        what = ", ".join(findings.lacking)
        lines.append(f"  without their libraries: {what}; pip install 'ciwrap[{extras}]'")
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
