"""`ciwrap accept`, `reject` and `prune`: making, replacing and deleting goldens."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from ciwrap.base.ci import is_ci
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    ConfigMissingError,
    CorruptGoldenError,
    ExitCode,
    UsageError,
)
from ciwrap.cli.commands import command, complete_checks, verbosity_options
from ciwrap.cli.json_documents import PruneDocument, RejectDocument
from ciwrap.cli.main import Session
from ciwrap.cli.options import check_option, config_options, json_option, resource_options
from ciwrap.cli.terminal import progress_bar
from ciwrap.golden.git_files import add_git_files
from ciwrap.golden.goldens_of_tests import telling_what_is_done
from ciwrap.golden.places import ENSEMBLE_SUFFIX, checks_meant, orphans
from ciwrap.golden.show import (
    UnusedGolden,
    delete_ensemble,
    delete_goldens,
    read_unused,
    stored_places,
)
from ciwrap.golden.trees import EXACT
from ciwrap.model.results import names_text
from ciwrap.report.console import Console, Text
from ciwrap.report.text import GOLDEN_AND_NEW, bytes_text, plural, safe_name, safe_text
from ciwrap.report.words import arrays_words, detail_lines, headline, used_words
from ciwrap.review.accept import accept_document, accept_outputs, accept_pending, alike, change_word
from ciwrap.review.artifact import ALLOWED_WORDS, project_with
from ciwrap.review.change import GoldenChange, Status, VariableChange
from ciwrap.review.pending import reject_all
from ciwrap.review.project import (
    Project,
    checks_of_others,
    find_project,
    load_project,
)
from ciwrap.review.project_state import other_state_words, state_of
from ciwrap.snapshot.store import SnapshotStore, used_snapshots


@command("accept", example="ciwrap accept --reason 'a better scheme'")
@click.argument("names", nargs=-1, metavar="[CHECK|PATTERN]...", shell_complete=complete_checks)
@check_option
@click.option("--pending", "is_pending", is_flag=True, help="Accept goldens that wait for review.")
@click.option(
    "--from",
    "source",
    metavar="DIR|ZIP",
    help="Accept the pending goldens of a CI run: its artifact, unpacked or not.",
)
@click.option("--variant", metavar="NAME", help="Accept pending goldens for one kind of machine.")
@click.option("--commit", metavar="SHA", help="The commit that the artifact was made from.")
@click.option("--allow-wider", is_flag=True, help="Let an artifact widen error bounds.")
@click.option(
    "--allow-less-evidence", is_flag=True, help="Let an artifact keep less than the golden does."
)
@click.option("--allow-removed", is_flag=True, help="Let an artifact remove variables.")
@click.option("-m", "--reason", metavar="TEXT", help="Why; needed to replace a golden.")
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@click.option("--in-ci", is_flag=True, help="Write goldens even in CI.")
@click.option("--force", is_flag=True, help="Also replace goldens that the outputs match.")
@click.option(
    "--bounds-only",
    is_flag=True,
    help="Keep the goldens' values; make them with the bounds that are asked for now.",
)
@config_options
@json_option
@verbosity_options
@resource_options
@click.pass_obj
def accept_command(
    session: Session,
    names: tuple[str, ...],
    check_names: tuple[str, ...],
    is_pending: bool,
    source: str | None,
    variant: str | None,
    commit: str | None,
    allow_wider: bool,
    allow_less_evidence: bool,
    allow_removed: bool,
    reason: str | None,
    dry_run: bool,
    in_ci: bool,
    force: bool,
    bounds_only: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Make goldens of the outputs that are there now, or accept pending goldens.

    CHECK is a check of the configuration: its outputs are captured. Any other name, and every name
    with --pending or --from, is a PATTERN for goldens that a test run or `ciwrap check --pending`
    left for review: the name of a check, test, file or folder, or with the wild cards * and ?.

    A first golden needs no reason; replacing one does, and it goes into the history that the
    manifest keeps. A golden that the outputs match is kept, so that it does not creep along with
    the noise (--force replaces it). With --bounds-only a golden keeps its values and takes the
    bounds of the configuration; one without data is made of the outputs, which must match it by
    the old bound and by the new one. Either everything asked for is captured, or nothing is
    written.
    """
    _refuse_nonsense(reason, may_write=in_ci or dry_run)
    said = (allow_wider, allow_less_evidence, allow_removed)
    allowed = tuple(word for word, is_said in zip(ALLOWED_WORDS, said, strict=True) if is_said)
    if source is None and (commit is not None or allowed):
        raise UsageError(f"--{allowed[0] if allowed else 'commit'} belongs to --from")
    if is_pending or source is not None or _means_pending(config_path, names, check_names):
        if check_names or force or bounds_only:
            raise UsageError(
                "--check, --force and --bounds-only are for checks of the configuration, not for"
                " goldens that wait"
            )
        project = find_project(config_path, golden_dir)
        given = nullcontext(project) if source is None else project_with(project, source, commit)
        with given as there:
            changes = accept_pending(
                there,
                names,
                reason,
                allowed=ALLOWED_WORDS if source is None else allowed,
                dry_run=dry_run,
                variant=variant,
            )
        if not changes:
            session.console.print("nothing waits for review")
            return 0
    else:
        _refuse_for_outputs(variant, force=force, bounds_only=bounds_only)
        project = _with_outputs(config_path, golden_dir, (*names, *check_names))
        with progress_bar() as progress:
            changes = accept_outputs(
                project,
                reason,
                force=force,
                bounds_only=bounds_only,
                dry_run=dry_run,
                resources=session.resources,
                progress=progress,
            )
    # First what became of the goldens: to write the document may fail.
    print_changes(changes, session.console, dry_run=dry_run, verbose=session.verbose)
    if dry_run:
        session.console.print(DRY_RUN)
    else:
        tell_git(session, project)
    session.emit_record(accept_document(changes, reason=reason, dry_run=dry_run))
    return 0


def _refuse_for_outputs(variant: str | None, *, force: bool, bounds_only: bool) -> None:
    if variant is not None:
        raise UsageError("--variant is for goldens that wait")
    if force and bounds_only:
        raise UsageError("--force is for new values, and --bounds-only keeps the old ones")


def tell_git(session: Session, project: Project) -> None:
    for path in add_git_files(project.golden_dir):
        session.console.print(f"written for git: {safe_text(path)}")


def _refuse_nonsense(reason: str | None, *, may_write: bool) -> None:
    """Raises UsageError for a reason that is none, and in CI, where nobody looks."""
    if reason is not None and not reason.strip():
        raise UsageError("--reason is empty", remedy="say why the new numbers are right")
    if is_ci() and not may_write:
        raise UsageError(
            "accepting is refused in CI, where a program would be compared with what it just wrote",
            remedy="accept where somebody looks at the numbers (`ciwrap accept --from`), or add"
            " --in-ci in a job that commits the goldens",
        )


def _with_outputs(config_path: str | None, golden_dir: str | None, names: Sequence[str]) -> Project:
    """The project with the checks that are meant: all whose goldens are made of outputs, if none
    is named.
    """
    project = load_project(config_path, golden_dir, names)
    checks = tuple(check for check in project.checks if names or not check.ensemble)
    return replace(project, checks=checks) if checks else project


def _means_pending(
    config_path: str | None, names: Sequence[str], check_names: Sequence[str]
) -> bool:
    """Whether goldens that wait are meant: no check of the configuration is called so, or there is
    no configuration at all.
    """
    if check_names:
        return False
    try:
        known = {check.name for check in load_project(config_path, None).checks}
    except ConfigMissingError:
        if config_path is not None or not any(find_project(None, None).pending.found()):
            raise
        return True
    unknown = [name for name in names if name not in known]
    if not unknown:
        return False
    waiting, _ = find_project(config_path, None).pending.found()
    names_waiting = {one.check for one in waiting}
    is_pending = [bool(checks_meant(name, names_waiting)) for name in unknown]
    if all(is_pending) and len(unknown) < len(names):
        raise UsageError(
            f"{unknown[0]!r} waits for review, other names are checks of the configuration",
            remedy="accept them in two steps",
        )
    return all(is_pending)


@command("reject", example="ciwrap reject --all")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--all", "is_all", is_flag=True, help="All that wait.")
@click.option("-m", "--reason", metavar="TEXT", help="Why; noted in .ciwrap/rejected.jsonl.")
@config_options
@json_option
@click.pass_obj
def reject_command(
    session: Session,
    patterns: tuple[str, ...],
    is_all: bool,
    reason: str | None,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Throw pending goldens away; the goldens stay as they are.

    PATTERN is the name of a check, test, file or folder, or has the wild cards * and ?.
    """
    if bool(patterns) == is_all:
        raise UsageError("name what to reject, or say --all")
    project = find_project(config_path, golden_dir)
    faults: list[CiwrapError] = []
    goldens = project.pending.select(patterns, faults if is_all else None)
    with project.indexed():
        reject_all(project, goldens, reason)
        names = [golden.check for golden in goldens]
        for name in names:
            session.console.print(f"rejected  {safe_name(name)}")
        damaged = [one for one in faults if isinstance(one, CorruptGoldenError)]
        for fault in damaged:
            project.pending.remove_damaged(fault)
            session.console.print(f"deleted  {safe_text(fault.file)} (damaged)")
    # What a later release has written is no damage: whoever has that release can decide.
    of_later = [one for one in faults if one not in damaged]
    for one in of_later:
        session.console.print(f"left as it is  {one}")
    if not (names or faults):
        session.console.print("nothing waits for review")
    session.emit_record(RejectDocument(1, "reject", reason, tuple(names)))
    return int(ExitCode.NOT_COMPARABLE) if of_later else 0


@command("prune", example="ciwrap prune")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted.")
@config_options
@json_option
@click.pass_obj
def prune_command(
    session: Session,
    yes: bool,
    dry_run: bool,
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Delete goldens and ensembles of checks that the configuration no longer has, and goldens of
    tests that are gone; also snapshots beside goldens that no remaining golden was made with.

    Goldens of checks that another configuration of the repository has stay, if its golden folder is
    the same one.

    Only a run of all tests shows which goldens no test uses; this takes what the last runs
    noted, as long as the project's files are those that ran. A golden that has changed since is
    kept.
    """
    project = find_project(config_path, golden_dir)
    found = _look(project)
    console = session.console
    for line in found.notes:
        console.print(safe_text(line))
    binaries = [project.goldens.at(one.place).shown(one.name) for one in found.goldens]
    binaries += map(str, found.ensembles)
    for path in (*binaries, *found.snapshots):
        console.print(f"unused  {safe_text(path)}")
    if not (binaries or found.is_other):
        console.print("no unused golden was found (run all tests to find theirs)")
    count = len(binaries) + len(found.snapshots)
    deleted: list[str] = []
    is_done = not dry_run and count > 0 and (yes or _is_wanted(count))
    if is_done:
        # While somebody was asked, another branch may have been checked out.
        now = found if yes else _look(find_project(config_path, golden_dir))
        deleted = _delete(project, found.also_in(now))
    for path in deleted:
        console.print(f"deleted  {safe_text(path)}")
    for path in sorted({*binaries, *found.snapshots}.difference(deleted)) if is_done else ():
        console.print(f"kept  {safe_text(path)}: it is no longer known to be unused")
    session.emit_record(
        PruneDocument(1, "prune", dry_run, tuple(binaries), tuple(deleted), found.snapshots)
    )
    return 0


class _Unused(Struct, frozen=True, kw_only=True):
    """What nothing uses. notes: lines about what is left as it is. is_other: whether a list of
    unused goldens is of other tests than there are now.
    """

    goldens: tuple[UnusedGolden, ...]
    ensembles: tuple[Path, ...]
    snapshots: tuple[str, ...]
    notes: tuple[str, ...]
    is_other: bool

    def also_in(self, other: _Unused) -> _Unused:
        return replace(
            self,
            goldens=tuple(one for one in self.goldens if one in other.goldens),
            ensembles=tuple(one for one in self.ensembles if one in other.ensembles),
            snapshots=tuple(one for one in self.snapshots if one in other.snapshots),
        )


def _look(project: Project) -> _Unused:
    notes: list[str] = []
    of_tests, other = _unused_of_tests(project, notes)
    known = _known_checks(project, notes)
    of_checks = [] if known is None else _unused_of_checks(project, known, notes)
    goldens = (*of_checks, *of_tests)
    if other is not None:
        notes.append(other)
    snapshots: list[Path] = []
    try:
        used = used_snapshots(project.golden_dir, [one.place for one in goldens])
        snapshots = SnapshotStore.of_goldens(project.golden_dir).others(used)
    except CorruptGoldenError as error:
        notes.append(f"snapshots stay: {error}")
    return _Unused(
        goldens=goldens,
        ensembles=()
        if known is None
        else tuple(orphans(project.golden_dir, known, ENSEMBLE_SUFFIX).values()),
        snapshots=tuple(map(str, snapshots)),
        notes=tuple(notes),
        is_other=other is not None,
    )


def _is_wanted(count: int) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is nobody to ask; nothing was deleted", remedy="add --yes")
    return click.confirm(f"delete {count} of {count}?")


def _delete(project: Project, found: _Unused) -> list[str]:
    """Returns what was deleted, in words."""
    with telling_what_is_done("deleted") as deleted:
        delete_goldens(project.golden_dir, found.goldens, deleted)
        for one in found.ensembles:
            deleted.append(str(delete_ensemble(one)))
        if found.snapshots:
            # Goldens that have come since, and those that stayed after all, name some, too.
            used = used_snapshots(project.golden_dir)
            others = SnapshotStore.of_goldens(project.golden_dir).remove_others(used)
            deleted += map(str, others)
    return deleted


def _known_checks(project: Project, notes: list[str]) -> set[str] | None:
    """Names of all checks that configurations with this golden folder have; None where nobody can
    tell: without a configuration, or where one of them cannot be read, of which `notes` takes a
    line.
    """
    if project.config is None:
        return None
    try:
        return {check.name for check in project.config.checks} | checks_of_others(project)
    except ConfigError as error:
        notes.append(
            f"goldens of checks stay: {error}; nobody can tell which of them another configuration"
            " uses"
        )
        return None


def _unused_of_checks(project: Project, known: set[str], notes: list[str]) -> list[UnusedGolden]:
    """Goldens of checks that no configuration knows. notes: takes a line on each of which
    nobody knows the name, so that it cannot be asked for.
    """
    found = []
    for name, path in orphans(project.golden_dir, known).items():
        if project.store.path(name) == path:
            found.append(UnusedGolden("", name, project.store.root_of(name)))
        else:
            notes.append(
                f"left as it is  {path}: its manifest cannot be read, so nobody knows of which"
                " check it is; fix it, or remove it"
            )
    return found


def _unused_of_tests(project: Project, notes: list[str]) -> tuple[list[UnusedGolden], str | None]:
    """What test runs found to be unused; and, if they ran other tests, a line that says so.

    notes: takes lines on files of which nobody knows what goldens they hold.
    """
    faults: list[CiwrapError] = []
    stored = set(stored_places(project.golden_dir, faults))
    notes += [f"left as it is  {fault}" for fault in faults]
    noted = read_unused(project.root)
    there = [] if noted is None else [one for one in noted.unused if one.place in stored]
    if noted is None or not there:
        return [], None
    why = other_state_words(noted.state, state_of(project))
    if why is not None:
        what = f"{plural(len(there), 'golden')} that no test used"
        return [], f"kept  {what}: {why}; run all tests, then prune"
    found = []
    for one in there:
        store = project.goldens.at(one.place)
        if one.root is None:
            notes.append(
                f"left as it is  {store.shown(one.name)}: no test used it, but it is damaged, so"
                " nobody knows whether it has changed since; fix it, or remove it"
            )
        elif store.root_of(one.name) == one.root:
            found.append(one)
    return found, None


_ROOT_DIGITS = 12
_MOST_VARIABLES = 12
_MOST_NAMES = 5
_STYLES = {
    Status.CREATED: "bold green",
    Status.REPLACED: "bold yellow",
    Status.SAME: "bold",
    Status.KEPT: "bold",
}


DRY_RUN = Text("dry run: nothing was written", style="bold")


def print_changes(
    changes: Sequence[GoldenChange], console: Console, *, dry_run: bool, verbose: bool
) -> None:
    """Prints what became of each golden; of variables only those that really changed."""
    for golden in changes:
        _print_golden(golden, console, dry_run, verbose)


def _print_golden(golden: GoldenChange, console: Console, dry_run: bool, verbose: bool) -> None:
    status = golden.status
    head = Text()
    word = f"would be {status.value}" if dry_run and golden.needs_writing else status.value
    head.append(word, style=_STYLES[status])
    head.append(f"  {safe_name(golden.check)}  ({safe_text(golden.path)})")
    console.print(head)
    for warning in golden.warnings:
        console.print(Text(f"  warning: {safe_text(warning)}", style="bold yellow"))
    if status is Status.SAME:
        console.print(Text("  identical to the existing golden, byte for byte"))
        return
    if status is Status.KEPT:
        words = f"  every variable matches the golden{used_words(golden.largest_bound_share)}"
        more = "; it stays as it is (--force replaces it all the same)"
        console.print(Text(words + more))
        return
    if golden.old.problem is not None:
        console.print(Text(f"  instead of one that cannot be read: {golden.old.problem}"))
    _print_variables(golden, console, verbose)
    _print_exact_ones(golden, console)
    # Numbers first: a root tells nobody anything but that it is another.
    old = golden.old.golden
    old_root = None if old is None else old.root[:_ROOT_DIGITS]
    console.print(Text(f"  root {_arrow(old_root, golden.root[:_ROOT_DIGITS])}"))
    old_size = None if old is None else bytes_text(old.byte_count)
    console.print(Text(f"  size {_arrow(old_size, bytes_text(golden.byte_count))}"))


def _print_exact_ones(golden: GoldenChange, console: Console) -> None:
    """Of numbers with a fraction that are compared exactly, and too large to be kept: noise makes
    them differ, and no bound that is set later can be judged by their golden.
    """
    found = [
        one.identity.name
        for one in golden.changes
        if one.new is not None
        and (one.new.bound, one.new.evidence) == (EXACT, "tree")
        and one.new.dtype[1] in "fbc"
        and one.new.dtype[1:] != "b1"
    ]
    names = list(dict.fromkeys(found))
    if names:
        verb = "is" if len(names) == 1 else "are"
        console.print(
            Text(
                f"  {names_text([safe_name(name) for name in names], 3)} {verb} compared exactly,"
                " and a golden of digests alone can judge no other bound later; to measure bounds"
                " first: ciwrap repeat --write-bounds"
            )
        )


def _arrow(old: str | None, new: str) -> str:
    return new if old is None or old == new else f"{old} -> {new}"


def _print_variables(golden: GoldenChange, console: Console, verbose: bool) -> None:
    quiet = [one for one in golden.changes if change_word(one) in ("equal", "within")]
    loud = [one for one in golden.changes if one not in quiet]
    if golden.old.golden is None:
        made = [change for change in golden.changes if change.new is not None]
        kinds = Counter(change.new.evidence for change in made if change.new is not None)
        evidence = ", ".join(f"{count} with {words}" for words, count in sorted(kinds.items()))
        console.print(Text(f"  {_arrays(made)}: {evidence}"))
        for change in golden.changes if verbose else ():
            _print_variable(change, console)
        return
    groups = [[one] for one in loud] if verbose else alike(loud)
    shown = groups if verbose else groups[:_MOST_VARIABLES]
    for first, *others in shown:
        _print_variable(first, console)
        if others:
            names = [safe_name(one.identity.text) for one in others]
            console.print(Text(f"    likewise: {names_text(names, _MOST_NAMES)}"))
    if left := len(loud) - sum(map(len, shown)):
        console.print(Text(f"  ... and {left} more (--verbose shows all)"))
    if quiet:
        shares = [share for one in quiet if (share := one.used_share) is not None]
        note = used_words(max(shares, default=None))
        console.print(Text(f"  {_arrays(quiet)} within the bound{note}"))


def _arrays(changes: Sequence[VariableChange]) -> str:
    return arrays_words(len(changes), len({one.identity.name for one in changes}))


def _print_variable(change: VariableChange, console: Console) -> None:
    word = change_word(change)
    line = Text("  ")
    line.append(word, style="bold")
    line.append(f"  {safe_name(change.identity.text)}")
    old, new = change.old, change.new
    if new is not None and old is None:
        shape = "x".join(map(str, new.shape)) or "a single number"
        line.append(f": {new.dtype} {shape}, {new.bound}, evidence {new.evidence}")
    elif change.moved is not None:
        line.append(f": {headline(change.moved)}")
    elif old is not None and new is not None:
        line.append(": how far it moved is not known, the goldens do not keep the values")
    console.print(line)
    if old is not None and new is not None:
        for name in ("dtype", "shape", "bound", "evidence", "labels"):
            before, after = getattr(old, name), getattr(new, name)
            if before != after:
                wider = "  (WIDER)" if name == "bound" and change.is_bound_wider else ""
                console.print(Text(f"    {name} {safe_text(before)} -> {safe_text(after)}{wider}"))
    if change.moved is not None:
        for detail in detail_lines(change.moved, GOLDEN_AND_NEW):
            console.print(Text(f"    {detail}"))
