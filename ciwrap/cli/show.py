"""`ciwrap show`: a golden or a capture as text, for people and for `git diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ciwrap.cli.options import json_option
from ciwrap.errors import GoldenMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap import _core
    from ciwrap.cli.session import Session
    from ciwrap.golden.manifest import Manifest


@click.command(name="show", short_help="Print a golden or a capture as text (serves git diff).")
@click.argument("file", metavar="FILE")
@click.option("--full", is_flag=True, help="All data and leaves, however many.")
@json_option
@click.pass_obj
def command(session: Session, file: str, full: bool) -> int:
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
    from ciwrap.captures.fingerprints import capture_of

    capture = capture_of(Path(file))
    if capture is not None:
        return _show_capture(session, capture)
    from ciwrap.cli.json_documents import ShowDocument
    from ciwrap.golden.golden_file import read_golden_file
    from ciwrap.golden.paths import SHARED_SUFFIX
    from ciwrap.golden.show import golden_lines, shown_variables

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
    from ciwrap.files import read_regular
    from ciwrap.golden.shared_state import MOST_FILE_BYTES, read_shared

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
    from ciwrap.cli.load_project import find_project
    from ciwrap.golden.listing import stored_places
    from ciwrap.golden.places import checks_meant

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
    from ciwrap.cli.json_documents import ShowGoldensDocument, ShownGolden
    from ciwrap.golden.show import acceptance_line, golden_lines, shown_variables
    from ciwrap.report.text import safe_text

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
    from ciwrap.captures.open_capture import open_capture
    from ciwrap.captures.show import capture_lines, shown_capture
    from ciwrap.cli.json_documents import ShowCaptureDocument

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
    from ciwrap.golden.paths import BINARY_SUFFIX, MANIFEST_SUFFIX

    path = Path(file)
    if path.name.endswith(MANIFEST_SUFFIX):
        return path.with_name(path.name.removesuffix(MANIFEST_SUFFIX) + BINARY_SUFFIX)
    if path.is_file() or file.endswith(BINARY_SUFFIX):
        return path
    from ciwrap.cli.load_project import load_project
    from ciwrap.errors import ConfigMissingError

    try:
        project = load_project(None, None)
    except ConfigMissingError:
        return None
    is_check = file in {check.name for check in project.own_config.checks}
    return project.store.path(file) if is_check else None
