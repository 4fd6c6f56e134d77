"""`ciwrap import`: tests of other runners as checks of ciwrap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import json_option

if TYPE_CHECKING:
    from ciwrap.cli.session import Session

_KINDS = ("cp2k", "testcode", "lammps")
_MOST_LISTED = 20


@click.command(name="import", short_help="Make checks of the tests of other runners.")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("source", metavar="PATH", type=click.Path())
@click.option("--output", metavar="DIR", help="Where the files go; default: beside the tests.")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@json_option
@click.pass_obj
def command(session: Session, kind: str, source: str, output: str | None, dry_run: bool) -> int:
    """Make a ciwrap.yaml for each folder of tests in PATH, and say what was not carried over.

    cp2k: the folder with CP2K's matchers.py. testcode: a folder with jobconfig and userconfig, as
    Quantum ESPRESSO has it. lammps: the YAML file of LAMMPS's regression tests. Nothing of PATH is
    run, no file is replaced, and the runners stay as they are: ciwrap judges what they leave.

    Exit codes: 0 done, 2 usage.
    """
    from ciwrap.cli.json_documents import ImportDocument, NotImported
    from ciwrap.report.text import plural, safe_text

    path = Path(source)
    if kind == "cp2k":
        from ciwrap.importers.cp2k import import_cp2k

        found = import_cp2k(path)
    elif kind == "testcode":
        from ciwrap.importers.testcode import import_testcode

        found = import_testcode(path)
    else:
        from ciwrap.importers.lammps import import_lammps

        found = import_lammps(path)
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
            tuple(NotImported(one.what, one.reason) for one in found.left_out),
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
