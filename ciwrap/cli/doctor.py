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

if TYPE_CHECKING:
    from ciwrap.cli.session import Session


@click.command(name="doctor", short_help="Say what this installation can do.")
@json_option
@click.pass_obj
def command(session: Session) -> int:
    """Print versions, backends, read engines and CPU levels, and warn of trouble.

    Exit code 0 if everything that is needed works, else 3.
    """
    from ciwrap.report.document import SCHEMA_VERSION

    findings = examine()
    session.emit_document({"schema_version": SCHEMA_VERSION, "kind": "doctor", **findings})
    for line in _lines(findings):
        session.console.print(line)
    return int(ExitCode.NOT_COMPARABLE if findings["errors"] else ExitCode.MATCH)


def examine() -> dict[str, Any]:
    """Everything doctor knows, as JSON values."""
    from ciwrap import _core
    from ciwrap.environment import describe_environment
    from ciwrap.readers.optional import lacking
    from ciwrap.readers.registry import reader_names

    backends, engines = _core.backends(), _core.io_engines()
    levels = _core.cpu_levels()
    findings: dict[str, Any] = {
        "ciwrap_version": version("ciwrap"),
        "libraries": {name: str(text) for name, text in _core.library_versions().items()},
        "environment": describe_environment(Path.cwd()),
        "backends": [dict(item) for item in backends],
        "io_engines": [dict(item) for item in engines],
        "cpu_levels": [dict(item) for item in levels],
        "readers": reader_names(),
        "lacking": lacking(),
        "config": _config_finding(),
        "warnings": [],
        "errors": [],
    }
    findings["warnings"] += _warnings(findings)
    if not any(item["usable"] for item in backends):
        findings["errors"].append("no backend is usable, so no tree can be built")
    if not any(item["usable"] for item in engines):
        findings["errors"].append("no read engine is usable, so no file can be streamed")
    return findings


def _config_finding() -> dict[str, Any]:
    from ciwrap.cli.project import load_project, near

    try:
        project = load_project(None, None)
    except ConfigMissingError:
        return {"path": None, "problem": None, "checks": []}
    except CiwrapError as error:
        return {"path": error.file, "problem": str(error), "checks": []}
    stored = set(project.store.checks())
    checks = [{"name": check.name, "has_golden": check.name in stored} for check in project.checks]
    return {"path": str(near(project.config.path)), "problem": None, "checks": checks}


def _warnings(findings: dict[str, Any]) -> list[str]:
    found = [
        f"io_uring is not usable ({engine['reason']}); files are read with pread instead"
        for engine in findings["io_engines"]
        if engine["name"] == "io_uring" and not engine["usable"]
    ]
    active = [level["name"] for level in findings["cpu_levels"] if level.get("active")]
    best = [level["name"] for level in findings["cpu_levels"] if level["usable"]][-1:]
    if active != best:
        found.append(f"CPU level {active} is in use, although {best} would do")
    asked = os.environ.get("OMP_NUM_THREADS", "")
    cpus = int(findings["environment"]["cpu_count"])
    first = asked.split(",")[0].strip()
    if first.isdecimal() and int(first) > cpus:
        found.append(f"OMP_NUM_THREADS={asked}, but only {cpus} CPUs may be used")
    config = findings["config"]
    if config["problem"]:
        found.append(config["problem"])
    lacking = [check["name"] for check in config["checks"] if not check["has_golden"]]
    if lacking:
        found.append(f"no golden yet for {', '.join(lacking)}: `ciwrap accept` makes them")
    if sys.flags.optimize:
        found.append("Python runs with -O, so assertions in tests are skipped")
    return found


def _lines(findings: dict[str, Any]) -> list[str]:
    lines = [f"ciwrap {findings['ciwrap_version']}"]
    lines += [f"  {name:<12} {text}" for name, text in findings["libraries"].items()]
    lines.append("machine")
    environment = findings["environment"]
    for name in ("cpu", "cpu_count", "os", "kernel", "python", "numpy"):
        lines.append(f"  {name:<12} {environment[name]}")
    for title, key in (
        ("backends", "backends"),
        ("read engines", "io_engines"),
        ("CPU levels", "cpu_levels"),
    ):
        lines.append(title)
        lines += [f"  {item['name']:<12} {_state(item)}" for item in findings[key]]
    lines.append(f"readers\n  {', '.join(findings['readers'])}")
    if findings["lacking"]:
        extras = ",".join(findings["lacking"].values())
        what = ", ".join(findings["lacking"])
        lines.append(f"  without their libraries: {what}; pip install 'ciwrap[{extras}]'")
    config = findings["config"]
    if config["path"] is None:
        lines.append("configuration\n  none here or above; `ciwrap init` writes one")
    else:
        names = ", ".join(check["name"] for check in config["checks"])
        lines.append(f"configuration\n  {config['path']}: {names or 'cannot be read'}")
    lines += [f"warning: {text}" for text in findings["warnings"]]
    lines += [f"error: {text}" for text in findings["errors"]]
    if not findings["warnings"] and not findings["errors"]:
        lines.append("no trouble found")
    return [safe_text(part) for line in lines for part in line.split("\n")]


def _state(item: dict[str, Any]) -> str:
    if not item["usable"]:
        return f"not usable: {item.get('reason') or 'not on this machine'}"
    state = "usable"
    if item.get("concurrency"):
        state += f", {plural(item['concurrency'], 'thread')}"
    if item.get("active"):
        state += ", in use"
    return state
