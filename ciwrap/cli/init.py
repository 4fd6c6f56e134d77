"""`ciwrap init`: a commented ciwrap.yaml from the outputs that lie here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import json_option
from ciwrap.errors import UsageError
from ciwrap.files import writing
from ciwrap.report.text import plural, safe_text
from ciwrap.report.wording import arrays_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.cli.session import Session
    from ciwrap.cli.starter import Starter

_ATTRIBUTES_LINES = ("*.golden binary diff=ciwrap", "*.goldens text eol=lf diff=ciwrap")
_GIT_FILES = {
    ".gitattributes": _ATTRIBUTES_LINES,
    ".gitignore": (".ciwrap.lock", "*.golden.next", "*.golden.yaml.next", "*.goldens*.next"),
}
# Where one of them lies, people run pytest.
_SIGNS_OF_PYTEST = ("pytest.ini", "pytest.toml", "conftest.py", "tox.ini", "tests")
_TEXTCONV = ("diff.ciwrap.textconv", "ciwrap show")


@click.command(name="init", short_help="Write a commented ciwrap.yaml from the outputs found here.")
@click.argument("outputs", nargs=-1, metavar="[OUTPUT]...")
@click.option("--git", is_flag=True, help="Also set git up to show goldens as text in diffs.")
@click.option("--logs", is_flag=True, help="Propose values from the logs of two runs.")
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@json_option
@click.pass_obj
def command(
    session: Session, outputs: tuple[str, ...], git: bool, logs: bool, dry_run: bool
) -> int:
    """Write ciwrap.yaml for the outputs found below this folder (or for the given OUTPUTs). With
    --logs, OUTPUTs are the logs of two runs, and what both print is proposed.

    An existing ciwrap.yaml is never touched.
    """
    from ciwrap.cli.json_documents import InitDocument, StarterCheck
    from ciwrap.cli.starter import starter_for
    from ciwrap.config import CONFIG_NAME

    target = Path(CONFIG_NAME)
    if target.exists() and not dry_run:
        raise UsageError("already exists", file=target, remedy="edit it, or remove it first")
    if git and not dry_run:
        _refuse_without_git()
    if logs:
        from ciwrap.cli.starter_logs import starter_for_logs

        starter = starter_for_logs([Path(one) for one in outputs])
        left_out: list[str] = []
    else:
        starter, left_out = starter_for(Path(), outputs)
    checks = tuple(
        StarterCheck(check.name, tuple(check.outputs), check.file_count) for check in starter.checks
    )
    session.emit_record(InitDocument(1, "init", str(target), not dry_run, checks))
    if dry_run:
        if session.json_target != "-":
            click.echo(starter.text, nl=False)
        return 0
    _write_new(target, starter.text)
    _tell(session, starter, left_out, target)
    if git:
        _set_up_git(session)
    else:
        attributes = "".join(f"  echo '{line}' >> .gitattributes\n" for line in _ATTRIBUTES_LINES)
        session.console.print(
            "For readable diffs of goldens: `ciwrap init --git` sets up git here, or by hand:\n"
            f"{attributes}"
            f"  git config {_TEXTCONV[0]} '{_TEXTCONV[1]}'"
        )
    return 0


def _write_new(target: Path, text: str) -> None:
    with writing(target), target.open("x", encoding="utf-8") as stream:
        try:
            stream.write(text)
            stream.flush()
        except BaseException:
            target.unlink()
            raise


def _tell(session: Session, starter: Starter, left_out: Sequence[str], target: Path) -> None:
    session.console.print(f"wrote {target}")
    for check in starter.checks:
        session.console.print(
            f"  check {check.name}: {plural(check.file_count, 'file')},"
            f" {arrays_words(check.array_count, check.variable_count)}"
        )
    for text in left_out:
        session.console.print(f"  left out: {safe_text(text)}")
    session.console.print(
        "Next: set the error bounds in it, then `ciwrap accept` makes the first goldens."
    )
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
    for name, lines in _GIT_FILES.items():
        for line in lines:
            if _add_line(Path(name), line):
                session.console.print(f"added {line!r} to {name}")
    done = subprocess.run(
        ["git", "config", *_TEXTCONV], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UsageError(f"git config failed: {done.stderr.strip()}")
    session.console.print(f"set git config {_TEXTCONV[0]} (of this clone)")


def _add_line(path: Path, line: str) -> bool:
    """Adds a line to a text file unless it is there; whether it was added."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if line in text.splitlines():
        return False
    end = "" if not text or text.endswith("\n") else "\n"
    path.write_text(f"{text}{end}{line}\n", encoding="utf-8")
    return True
