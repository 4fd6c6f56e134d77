"""`ciwrap init`, `import` and `demo`: a first ciwrap.yaml, and what ciwrap looks like at work."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ciwrap.base.errors import ExitCode, NotComparableError, UsageError
from ciwrap.base.files import WORK_DIR, keep_out_of_git, writing
from ciwrap.cli.commands import command, verbose_option
from ciwrap.cli.main import Session
from ciwrap.cli.options import json_option, resource_options
from ciwrap.cli.starters import ALL_NUMBERS, in_comment, starter_for, starter_of_runs
from ciwrap.formats.log import LogReader
from ciwrap.formats.log_lines import blocks_of
from ciwrap.formats.log_rules import STEP_SUFFIX
from ciwrap.formats.log_template import Proposal, count_numbers, propose
from ciwrap.formats.reader import InputFile
from ciwrap.golden.git_files import GIT_FILES, add_line
from ciwrap.model import RunResult
from ciwrap.project.settings import CONFIG_NAME
from ciwrap.project.starter import Starter, StarterCheck, run_line
from ciwrap.report.document import SCHEMA_VERSION, to_document
from ciwrap.report.terminal import render
from ciwrap.report.text import plural, relative_to, safe_text
from ciwrap.report.words import arrays_words
from ciwrap.studies.demo import run_demo
from ciwrap.studies.importers import ImportDocument, import_cp2k, import_lammps, import_testcode

# Where one of them lies, people run pytest.
_SIGNS_OF_PYTEST = ("pytest.ini", "pytest.toml", "conftest.py", "tox.ini", "tests")
_TEXTCONV = ("diff.ciwrap.textconv", "ciwrap show")


@command("init", example="ciwrap init --runs 4 -- ./simulate --steps 100")
@click.argument("outputs", nargs=-1, metavar="[OUTPUT]... [-- COMMAND...]")
@click.option("--git", is_flag=True, help="Also set git up to show goldens as text in diffs.")
@click.option("--logs", is_flag=True, help="Propose values from a log, better from two runs'.")
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab"]),
    help="Also write what has CI call ciwrap; alone where ciwrap.yaml is there.",
)
@click.option(
    "--runs",
    type=click.IntRange(2, 100),
    metavar="N",
    help="Run COMMAND N times now, and propose what the runs need to match.",
)
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@json_option
@click.pass_obj
def init_command(
    session: Session,
    outputs: tuple[str, ...],
    git: bool,
    logs: bool,
    ci: str | None,
    runs: int | None,
    dry_run: bool,
) -> int:
    """Write ciwrap.yaml for the outputs found below this folder (or for the given OUTPUTs). With
    --logs, OUTPUTs are the logs of one or two runs, and values that they print are proposed.
    COMMAND is what `ciwrap run` will run. It runs now only with --runs; files that it does not
    write are then taken for inputs.

    An existing file is never touched.
    """
    from ciwrap.cli.ci_files import ci_texts, refuse_ci_files, write_ci_files
    from ciwrap.cli.json_documents import InitDocument, StarterCheck

    target = Path(CONFIG_NAME)
    if ci is not None and not dry_run:
        refuse_ci_files(ci)
    if ci is not None and target.exists() and not dry_run:
        session.emit_record(InitDocument(1, "init", str(target), False, ()))
        write_ci_files(session, ci)
        return 0
    if target.exists() and not dry_run:
        raise UsageError("already exists", file=target, remedy="edit it, or remove it first")
    if git and not dry_run:
        _refuse_without_git()
    outputs, words = session.split_command(outputs)
    command = shlex.join(words) if words else None
    if runs and (logs or command is None):
        raise UsageError("--runs needs a COMMAND, and cannot be used with --logs")
    if logs:
        starter, left_out = starter_for_logs([Path(one) for one in outputs], command)
    elif runs:
        starter, left_out = starter_of_runs(Path(), outputs, words, runs)
    else:
        starter, left_out = starter_for(Path(), outputs, command)
    checks = tuple(
        StarterCheck(check.name, tuple(check.outputs), check.file_count) for check in starter.checks
    )
    session.emit_record(InitDocument(1, "init", str(target), not dry_run, checks))
    if dry_run:
        if session.json_target != "-":
            click.echo(starter.text, nl=False)
            for text in () if ci is None else ci_texts(ci):
                click.echo(text, nl=False)
        return 0
    with writing(target), target.open("x", encoding="utf-8") as stream:
        try:
            stream.write(starter.text)
            stream.flush()
        except BaseException:
            target.unlink()
            raise
    keep_out_of_git(Path(WORK_DIR))  # and the schema with it
    _tell(session, starter, left_out, target, of_runs=runs is not None)
    if ci is not None:
        write_ci_files(session, ci)
    if git:
        _set_up_git(session)
    else:
        session.console.print(
            f"For readable diffs of goldens: git config {_TEXTCONV[0]} '{_TEXTCONV[1]}'"
        )
    return 0


def _tell(
    session: Session, starter: Starter, left_out: Sequence[str], target: Path, *, of_runs: bool
) -> None:
    session.console.print(f"wrote {target}")
    for check in starter.checks:
        holds = arrays_words(check.array_count, check.variable_count)
        if check.unopened:
            holds += f" in the first {check.file_count - check.unopened:,} of them"
        if check.keys:
            holds = ", ".join(f"{key}: {value}" for key, value in check.keys)
        session.console.print(f"  check {check.name}: {plural(check.file_count, 'file')}, {holds}")
    for text in left_out:
        session.console.print(f"  left out: {safe_text(text)}")
    first = "see in it what a run may print anew" if of_runs else "set the error bounds in it"
    session.console.print(f"Next: {first}, then `ciwrap accept` makes the first goldens.")
    if any(Path(name).exists() for name in _SIGNS_OF_PYTEST):
        session.console.print(
            "Tests that check arrays: `ciwrap_unused = fail` in pytest's configuration fails a run"
            " that leaves a golden unused."
        )


def _refuse_without_git() -> None:
    """Raises UsageError outside of a git repository, before anything is written."""
    try:
        done = subprocess.run(["git", "rev-parse", "--git-dir"], capture_output=True, check=False)
    except FileNotFoundError:
        raise UsageError("there is no git here", remedy="install it, or leave --git out") from None
    if done.returncode != 0:
        raise UsageError(
            "is not a git repository",
            file=Path.cwd(),
            remedy="run `git init` first, or leave --git out",
        )


def _set_up_git(session: Session) -> None:
    """Sets git up to show goldens as text, and to leave an interrupted accept's files out."""
    for name, lines in GIT_FILES.items():
        for line in lines:
            if add_line(Path(name), line):
                session.console.print(f"added {line!r} to {name}")
    done = subprocess.run(
        ["git", "config", *_TEXTCONV], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UsageError(f"git config failed: {done.stderr.strip()}")
    session.console.print(f"set git config {_TEXTCONV[0]} (of this clone)")


MOST_LIVE = 10
_HEAD = """\
# What ciwrap looks for in the log, and how closely. {how}
# `ciwrap values {path}` shows what is found, `ciwrap accept` makes the golden.
version: 1

{run}

checks:
  {name}:
    format: log
    outputs: {path}
"""
_OF_TWO = """Two runs were compared with each other: a bound
# is 10 times what they differ by, and at least 1.5 units of the last place that is ever printed."""
_OF_ONE = """A bound is 1.5 units of the last place that is
# ever printed: of one run nobody knows its noise (`ciwrap repeat --write-bounds` measures it)."""
# A step that is there again, as after `reset_timestep`, counts again.
_TABLE = {"header": "Step *", "end": "Loop time of", "iteration": "Step", "duplicates": "all"}
_TABLES = f"""\
    # A table by steps; its bounds were not measured.
    tables:
      thermo: {{{", ".join(f"{key}: {json.dumps(said)}" for key, said in _TABLE.items())}}}
"""
# LAMMPS: a line of names that begins with Step, and the line after the rows.
_IS_HEADER = re.compile(rb"\s*Step\s+[A-Za-z_]\S*(\s+[A-Za-z_]\S*)*\s*$")
_IS_END = re.compile(rb"Loop time of ")


def starter_for_logs(
    paths: Sequence[Path], command: str | None = None
) -> tuple[Starter, list[str]]:
    """A starter for a log, or for the first of two; and, in words, what was left out.

    Raises UsageError for none or more, NotComparableError if they have nothing in common, and the
    errors of reading them.
    """
    if len(paths) not in (1, 2):
        raise UsageError(
            f"--logs needs the logs of one or two runs, not {len(paths)}",
            remedy="ciwrap init --logs run1.log run2.log",
        )
    how = _OF_TWO if len(paths) == 2 else _OF_ONE
    paths = [paths[0], paths[-1]]
    found = _that_work(propose(_lines(paths[0]), _lines(paths[1])), paths)
    has_table = all(
        any(map(one.match, _lines(path))) for path in paths for one in (_IS_HEADER, _IS_END)
    )
    if not found and not has_table:
        raise NotComparableError(
            "there is no number that looks like a result (7 digits or more, a word of two letters"
            " before it, no time, memory or rank; of two logs in both, within 1 % of each other)",
            file=paths[0],
            remedy="compare all of it (`ciwrap init LOG`), or name the values by hand",
        )
    name = re.sub(r"[^A-Za-z0-9_-]", "_", paths[0].stem) or "log"
    text = _HEAD.format(
        how=how,
        run=run_line(command),
        name=json.dumps(name),
        path=json.dumps(paths[0].as_posix()),
    )
    text += "" if not found else "    values:\n"
    text += "".join(_line(one, is_live=at < MOST_LIVE) for at, one in enumerate(found))
    text += _TABLES if has_table else ""
    count, looked_for = _count_found(found[:MOST_LIVE], paths[0], has_table=has_table)
    check = StarterCheck(name, (paths[0].as_posix(),), 1, count, count)
    others = count_numbers(_lines(paths[0])) - looked_for
    left_out = [f"{plural(others, 'other number')} of the log; {ALL_NUMBERS}"] if others > 0 else []
    return Starter((check,), text + in_comment(left_out)), left_out


def _count_found(found: Sequence[Proposal], path: Path, *, has_table: bool) -> tuple[int, int]:
    """How many variables the rules that were written find, of a table each column is one, and how
    many numbers.
    """
    options: dict[str, Any] = {"values": {one.name: _rule(one) for one in found}}
    if has_table:
        options["tables"] = {"thermo": _TABLE}
    with LogReader().open(path, options=options) as source:
        values = [one for one in source.variables if not one.name.endswith(STEP_SUFFIX)]
        return len(source.variables), sum(one.element_count for one in values)


def _lines(path: Path) -> Iterator[bytes]:
    blocks = blocks_of(InputFile(path))
    return chain.from_iterable(block.data.splitlines() for block in blocks)


def _that_work(proposals: list[Proposal], paths: Sequence[Path]) -> list[Proposal]:
    """Those that find the same lines in both logs, no more and no fewer, when they are tried."""
    if not proposals:
        return []
    options = {"values": {one.name: _rule(one) for one in proposals}}
    counts = []
    for path in paths:
        with LogReader().open(path, options=options) as source:
            counts.append(
                {
                    name: one.count if one.fault is None else -1
                    for name, one in source.series.items()
                }
            )
    return [one for one in proposals if all(found[one.name] == one.count for found in counts)]


def _rule(one: Proposal) -> dict[str, Any]:
    if one.column is None:
        return {"match": one.text}
    return {"line": one.text, "column": one.column}


def _line(one: Proposal, *, is_live: bool) -> str:
    rule = ", ".join(f"{key}: {json.dumps(said)}" for key, said in _rule(one).items())
    mark = "" if is_live else "# "
    times = "1 match" if one.count == 1 else f"{one.count} matches"
    return (
        f"      {mark}{one.name}: {{{rule}, atol: {one.atol:g}}}  # {times}, {one.digits} digits\n"
    )


_IMPORTERS = {"cp2k": import_cp2k, "testcode": import_testcode, "lammps": import_lammps}
_MOST_LISTED = 20


@command("import", example="ciwrap import cp2k tests/QS")
@click.argument("kind", type=click.Choice(list(_IMPORTERS)))
@click.argument("source", metavar="PATH", type=click.Path())
@click.option("--output", metavar="DIR", help="Where the files go; default: beside the tests.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@json_option
@click.pass_obj
def import_command(
    session: Session, kind: str, source: str, output: str | None, dry_run: bool
) -> int:
    """Make a ciwrap.yaml for each folder of tests in PATH, and say what was not carried over.

    cp2k: the folder with CP2K's matchers.py. testcode: a folder with jobconfig and userconfig, as
    Quantum ESPRESSO has it. lammps: the YAML file of LAMMPS's regression tests. Nothing of PATH is
    run, no file is replaced, and the runners stay as they are: ciwrap judges what they leave.

    Exit codes: 0 done, 2 usage.
    """
    path = Path(source)
    found = _IMPORTERS[kind](path)
    folder = Path(output) if output is not None else path if path.is_dir() else path.parent
    if not dry_run:
        found.write(folder)
    session.emit_record(
        ImportDocument(
            1,
            "import",
            source,
            not dry_run,
            found.test_count,
            found.carried_count,
            tuple(found.files),
            tuple(found.left_out),
            tuple(found.notes),
        )
    )
    say = session.console.print
    verb = "would be written" if dry_run else "written"
    say(f"{plural(found.test_count, 'test')}, {found.carried_count} carried over whole")
    say(f"{plural(len(found.files), 'file')} {verb} to {safe_text(str(folder))}")
    for note in found.notes:
        say(f"note: {safe_text(note)}")
    if found.left_out:
        say("Not carried over:")
    for reason, count in list(found.reasons.items())[:_MOST_LISTED]:
        named = [one.what for one in found.left_out if one.reason == reason]
        first = safe_text(named[0]) + ("" if count == 1 else f" and {count - 1} more")
        say(f"  {first}: {safe_text(reason)}")
    if len(found.reasons) > _MOST_LISTED:
        say(f"  and {len(found.reasons) - _MOST_LISTED} more reasons")
    return 0


@command("demo", example="ciwrap demo")
@click.option(
    "--simulation-threads",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Threads of the simulation; from two on it is noisy.",
)
@click.option(
    "--keep",
    "folder",
    type=click.Path(file_okay=False),
    help="Keep everything in this new folder, to play with.",
)
@json_option
@verbose_option
@resource_options
@click.pass_obj
def demo_command(session: Session, simulation_threads: int, folder: str | None) -> int:
    """Run a small simulation with real floating-point noise, and check it against its golden.

    First the unchanged program, which must match; then one with a planted defect, which must not.
    Exit code 0 if both come out so, else 1.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="ciwrap-demo-") as temporary:
            return _run(session, Path(temporary) / "demo", simulation_threads)
    target = Path(folder)
    if target.exists() and any(target.iterdir()):
        raise UsageError("is not empty", file=target, remedy="choose a new folder")
    code = _run(session, target.absolute(), simulation_threads)
    session.console.print(f"\nEverything is kept in {target}: try `ciwrap check -v` there.")
    return code


def _run(session: Session, folder: Path, threads: int) -> int:
    say = session.console.print

    def show(result: RunResult) -> None:
        render(relative_to(result, folder), session.console, verbose=session.verbose)

    demonstration = run_demo(
        folder, say=say, show=show, threads=threads, resources=session.resources
    )
    session.emit_document(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": "demo",
            "as_expected": demonstration.is_as_expected,
            "good": to_document(demonstration.good),
            "defective": to_document(demonstration.defective),
        }
    )
    if demonstration.is_as_expected:
        say("\nAs it should be: the noise passes, the defect does not.")
        return int(ExitCode.MATCH)
    say(
        "\nNOT as it should be: expected match, then differ; found"
        f" {demonstration.good.verdict.words}, then {demonstration.defective.verdict.words}."
    )
    return int(ExitCode.DIFFER)
