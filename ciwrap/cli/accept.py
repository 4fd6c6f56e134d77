"""`ciwrap accept`, `reject`, `prune` and `review`: making, replacing and deleting goldens."""

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
from ciwrap.base.documents import DocumentError
from ciwrap.base.errors import (
    CiwrapError,
    ConfigError,
    ConfigMissingError,
    CorruptGoldenError,
    ExitCode,
    UsageError,
    WriteFailedError,
)
from ciwrap.base.files import WORK_DIR
from ciwrap.base.repository import DIRTY
from ciwrap.cli.commands import command, complete_checks, verbose_option, verbosity_options
from ciwrap.cli.json_documents import PruneDocument, RejectDocument
from ciwrap.cli.main import (
    Session,
    ask_key,
    check_option,
    config_options,
    has_keys,
    json_option,
    progress_bar,
    resource_options,
)
from ciwrap.golden.git_files import add_git_files
from ciwrap.golden.goldens_of_tests import telling_what_is_done
from ciwrap.golden.places import ENSEMBLE_SUFFIX, checks_meant, orphans
from ciwrap.golden.show import (
    UnusedGolden,
    delete_ensemble,
    delete_goldens,
    first_elements,
    read_unused,
    stored_places,
)
from ciwrap.golden.trees import EXACT
from ciwrap.model import VariableId
from ciwrap.model.results import command_words, names_text
from ciwrap.report.console import Console, Lines, Text, terminal_height
from ciwrap.report.document import from_document
from ciwrap.report.failure import failure_lines
from ciwrap.report.outputs import write_report
from ciwrap.report.text import GOLDEN_AND_NEW, bytes_text, plural, safe_name, safe_text
from ciwrap.report.words import arrays_words, detail_lines, headline, used_words
from ciwrap.review.accept import (
    PendingChange,
    accept,
    accept_document,
    accept_outputs,
    accept_pending,
    alike,
    change_word,
    checkout_of,
    likeness,
    look_at,
    recorded_result,
    source_of,
    with_stale_reason,
)
from ciwrap.review.artifact import ALLOWED_WORDS, project_with
from ciwrap.review.change import GoldenChange, Status, VariableChange
from ciwrap.review.pending import PendingGolden, reject, reject_all
from ciwrap.review.project import (
    Project,
    checks_of_others,
    find_project,
    load_project,
    other_state_words,
    state_of,
)
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
@click.option("--allow-removed", is_flag=True, help="Let an artifact take variables out.")
@click.option("-m", "--reason", metavar="TEXT", help="Why; needed to replace a golden.")
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@click.option("--in-ci", is_flag=True, help="Let goldens be written in CI all the same.")
@click.option(
    "--force", is_flag=True, help="Replace goldens, too, that everything matches within its bound."
)
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
    """Make the outputs that lie there now the goldens of their checks, or accept goldens that wait.

    CHECK is a check of the configuration: its outputs are captured. Any other name, and every name
    with --pending or --from, is a PATTERN for goldens that a test run or `ciwrap check --pending`
    left for review: the name of a check, test, file or folder, or with the wild cards * and ?.

    A first golden needs no reason; replacing one does, and it goes into the history that the
    manifest keeps. A golden that everything matches within its bounds is kept, so that it does not
    creep along with the noise (--force replaces it). With --bounds-only a golden keeps its values,
    and is made with the bounds that are asked for now; where it keeps no data, outputs that match
    it by the old bound and by the new one take their place. Either all that is asked for is
    captured, or nothing is written.
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
        _tell_git(session, project)
    session.emit_record(accept_document(changes, reason=reason, dry_run=dry_run))
    return 0


def _refuse_for_outputs(variant: str | None, *, force: bool, bounds_only: bool) -> None:
    if variant is not None:
        raise UsageError("--variant is for goldens that wait")
    if force and bounds_only:
        raise UsageError("--force is for new values, and --bounds-only keeps the old ones")


def _tell_git(session: Session, project: Project) -> None:
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
    tests that are gone; and snapshots beside goldens that none of those that stay was made with.

    Goldens of checks that another configuration of the repository has stay, if its golden folder is
    the same one.

    Which goldens no test uses is found out by running all tests; this takes what the last runs
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
        console.print("no golden is known to be unused (run all tests to find out)")
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


_MOST_COMMANDS = 10
_MOST_NAMES = 5
# Of a screen: of the keys and the question why, and of a change, however small the terminal is.
_KEY_LINES, _LEAST_LINES = 4, 5
_CHOICES = (
    "[a]ccept, [r]eject, [s]kip, [g]roup, [A]ccept all, [R]eject all,\n"
    "[d]etails, [t]est, [o]pen, [b]ack, [?] help, [q]uit"
)
_ACCEPTED, _REJECTED, _LEFT = "accepted", "rejected", "left for later"
_DECIDED = (_ACCEPTED, _REJECTED)
_HELP = """\
  a  make the new numbers the golden; a replacement asks why
  r  throw the new numbers away; the golden stays
  s  decide later (Enter does so, too)
  g  make the new numbers the goldens of this one and of all that change alike
  A, R  the same for this one and all that follow
  d  all that changes, and what the failed check said: values, indices, sizes
  t  the source of the test
  o  open the page with its pictures in the browser
  b  back to the one before that was left for later
  q  end; what is not decided stays
  any other key shows the change again"""


@command("review", example="ciwrap review 'tests/test_flow.py*'")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@config_options
@json_option
@verbose_option
@click.pass_obj
def review_command(
    session: Session,
    patterns: tuple[str, ...],
    config_path: str | None,
    golden_dir: str | None,
) -> int:
    """Go through the goldens that test runs and `ciwrap check --pending` left for review.

    Each is shown with what it changes; then it is accepted, rejected, or left for later. PATTERN is
    the name of a check, test, file or folder, or has the wild cards * and ?. Without a terminal,
    what waits is listed with the commands to type.
    """
    project = find_project(config_path, golden_dir)
    faults: list[CiwrapError] = []
    goldens = project.pending.select(patterns, faults)
    for fault in faults:
        session.console.print(f"error: {fault}")
    looked = _look_at_all(project, goldens)
    changes = [one.change for one in looked if not isinstance(one, CiwrapError)]
    session.emit_record(accept_document(changes, reason=None, dry_run=True))
    if not goldens:
        if not faults:
            session.console.print("nothing waits for review")
        return int(ExitCode.NOT_COMPARABLE) if faults else 0
    if sys.stdin.isatty() and sys.stdout.isatty():
        _Interview(session, project).ask_about_all(looked, goldens)
        _tell_git(session, project)
        project.pending.write_index(project.golden_dir_text)
        return 0
    print_changes(changes, session.console, dry_run=True, verbose=session.verbose)
    for one in looked:
        if isinstance(one, CiwrapError):
            session.console.print(f"error: {one}")
    _tell_commands(session, project, goldens)
    return 0


def _look_at_all(
    project: Project, goldens: list[PendingGolden]
) -> list[PendingChange | CiwrapError]:
    here = checkout_of(project)

    def look(golden: PendingGolden) -> PendingChange | CiwrapError:
        try:
            return with_stale_reason(look_at(project, golden), here)
        except CiwrapError as error:
            return error

    return [look(golden) for golden in goldens]


def _tell_commands(session: Session, project: Project, goldens: list[PendingGolden]) -> None:
    checks = () if project.config is None else project.config.checks
    configured, options = {check.name for check in checks}, str(project.options)
    session.console.print(f"{plural(len(goldens), 'golden')} waiting; to decide, type one of")
    for golden in goldens[:_MOST_COMMANDS]:
        name = [safe_text(golden.check)]
        # By its name alone, what lies there by now would be accepted of a check of the
        # configuration, instead of what waits.
        accept = f"ciwrap accept{' --pending' if golden.check in configured else ''}"
        reason = " --reason '...'" if golden.origin.kind != "new" else ""
        session.console.print(f"  {command_words(accept, name, options + reason)}")
        session.console.print(f"  {command_words('ciwrap reject', name, options)}")
    session.console.print("or, for all of them at once,")
    session.console.print(f"  ciwrap accept --pending{options} --reason '...'")
    session.console.print(f"  ciwrap reject --all{options}")


def _groups_of(looked: list[PendingChange | CiwrapError]) -> list[list[int]]:
    """For each, the numbers of all that change alike, its own with them."""
    groups: dict[object, list[int]] = {}
    keys: list[object] = [
        number if isinstance(one, CiwrapError) else likeness(one.change)
        for number, one in enumerate(looked)
    ]
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    return [groups[key] for key in keys]


def _answer() -> str:
    """A letter at once, where the terminal can; else what was typed until Enter."""
    if has_keys():
        return ask_key(_CHOICES).replace("\n", "s")
    typed: str = click.prompt(_CHOICES, default="s", show_default=False)
    return typed.strip()


class _Interview:
    """Asks about one pending golden after the other."""

    def __init__(self, session: Session, project: Project) -> None:
        self._session = session
        self._project = project
        self._reason: str | None = None
        self._for_all: str | None = None
        self._in_group = False
        # What became of the one before, which the cleared screen shows again.
        self._notes: list[str] = []

    def ask_about_all(
        self, looked: list[PendingChange | CiwrapError], goldens: list[PendingGolden]
    ) -> None:
        became: list[str | None] = [None] * len(goldens)
        groups = _groups_of(looked)
        at = 0
        while at < len(goldens):
            if became[at] in _DECIDED:
                at += 1
                continue
            group = [one for one in groups[at] if became[one] not in _DECIDED]
            answer = self._ask_about(at, looked[at], goldens, group)
            if answer == "q":
                break
            if answer == "b":
                at = self._before(became, at)
                continue
            if answer == "g":
                for one in group:
                    became[one] = self._try("a", looked[one], goldens[one])
                    self._in_group = True
                self._in_group = False
                continue
            became[at] = self._try(answer, looked[at], goldens[at])
            at += 1
        counts = Counter(one or _LEFT for one in became)
        said = ", ".join(
            f"{counts[words]} {words}" for words in (*_DECIDED, _LEFT) if counts[words]
        )
        for note in self._notes:
            self._print(note)
        self._print(f"\n{said}")

    def _try(self, answer: str, looked: PendingChange | CiwrapError, golden: PendingGolden) -> str:
        """What became of the golden; left for later, if that cannot be done."""
        try:
            return self._carry_out(answer, looked, golden)
        except CiwrapError as error:
            self._note(f"error: {error}")
            is_done = isinstance(error, WriteFailedError) and self._is_done(answer, looked, golden)
            return {"a": _ACCEPTED, "r": _REJECTED}[answer] if is_done else _LEFT

    def _is_done(
        self, answer: str, looked: PendingChange | CiwrapError, golden: PendingGolden
    ) -> bool:
        """Whether it was done before an error was met: while a shared file was put in place."""
        waits = self._project.pending.still_waits(golden)
        if answer == "r" or isinstance(looked, CiwrapError):
            return not waits
        store, change = self._project.goldens.at(looked.place), looked.change
        was_other = change.old.root != change.root
        return store.root_of(change.name) == change.root and (was_other or not waits)

    def _ask_about(
        self,
        at: int,
        one: PendingChange | CiwrapError,
        goldens: list[PendingGolden],
        group: list[int],
    ) -> str:
        """What to do with one of them: a, r, s, g, b or q."""
        others = [goldens[other].check for other in group if other != at]
        head = f"--- {at + 1} of {len(goldens)} ---"
        is_whole = self._show(head, one, others)
        while not self._for_all:
            answer = self._ask(can_accept=not isinstance(one, CiwrapError))
            if answer == "d":
                self._show_details(goldens[at], None if is_whole else one)
            elif answer == "t":
                self._show_source(goldens[at])
            elif answer == "o":
                self._open_page(goldens[at])
            elif answer == "?":
                self._print_page(_HELP.splitlines())
            elif answer:
                return answer
            else:
                self._note("please answer with one of these letters")
                self._show(head, one, others)
        return self._for_all

    def _before(self, became: list[str | None], at: int) -> int:
        """The place of the last one before that was left for later; the same if there is none."""
        for earlier in range(at - 1, -1, -1):
            if became[earlier] == _LEFT:
                return earlier
        self._note("none before this one was left for later")
        return at

    def _show_details(self, golden: PendingGolden, one: PendingChange | CiwrapError | None) -> None:
        """The message of the check that failed, as its test printed it. one: what changes, if not
        all of it has been shown.
        """
        lines = Lines()
        if one is not None and not isinstance(one, CiwrapError):
            print_changes([one.change], lines, dry_run=True, verbose=True)
        check = recorded_result(self._project, golden)
        if check is None:
            lines.print("no details: the run's own result is missing")
        else:
            for line in failure_lines(golden.check, check, ()):
                lines.print(f"  {line}")
        self._print_page([line.plain for line in lines.found])

    def _show_source(self, golden: PendingGolden) -> None:
        try:
            lines = source_of(golden.place, self._project.root).splitlines()
        except CiwrapError as error:
            self._print(f"no source: {error}")
            return
        self._print_page([f"  {safe_text(line)}" for line in lines])

    def _open_page(self, golden: PendingGolden) -> None:
        """Writes the result as a page with pictures, and asks the system's browser to show it."""
        import webbrowser

        path = self._project.root / WORK_DIR / "review.html"
        try:
            write_report(path, from_document(self._project.pending.read_result(golden.place)))
        except DocumentError:
            self._print("no page: the run's own result is missing")
            return
        except CiwrapError as error:
            self._print(f"no page: {error}")
            return
        is_open = webbrowser.open(path.resolve().as_uri())
        self._print(f"  {'opened' if is_open else 'no browser was found; the page is'} {path}")

    def _note(self, text: str) -> None:
        """To be printed above the next one, or at the end."""
        self._notes.append(text)

    def _print(self, text: str) -> None:
        self._session.console.print(text)

    def _print_page(self, lines: Sequence[str]) -> None:
        """On a screen of its own; through the system's pager, if they are more than a screen."""
        page = Lines()
        for line in lines:
            page.print(line)
        if has_keys() and len(page.on_screen()) > terminal_height() - _KEY_LINES:
            click.echo_via_pager("".join(f"{line}\n" for line in lines))
            return
        if has_keys():
            click.clear()
        for line in lines:
            self._print(line)

    def _show(self, head: str, one: PendingChange | CiwrapError, others: list[str]) -> bool:
        """Clears the screen and shows what became of the one before, and one: as much as leaves
        room for the keys. Returns whether that is all of it.
        """
        click.clear()
        above, body, end = Lines(), Lines(), Lines()
        for note in _few(self._notes):
            above.print(note)
        above.print(head)
        self._notes = []
        if isinstance(one, CiwrapError):
            body.print(f"error: {one}")
        else:
            print_changes([one.change], body, dry_run=True, verbose=self._session.verbose)
            if one.change.status is Status.CREATED:
                _print_numbers(one, body)
            _print_origin(one, others, end)
        first, lines, last = above.on_screen(), body.on_screen(), end.on_screen()
        room = max(terminal_height() - len(first) - len(last) - _KEY_LINES, _LEAST_LINES)
        left = len(lines) - room + 1 if len(lines) > room else 0
        if left:
            lines[-left:] = [Text(f"  ... {plural(left, 'more line')}: [d]")]
        for line in (*first, *lines, *last):
            self._session.console.print(line)
        return not left

    def _ask(self, *, can_accept: bool) -> str:
        """One of the letters; "" for anything else."""
        answer = _answer()
        key = answer.lower()[:1]
        if not key or key not in ("rsqdtob?ag" if can_accept else "rsqdtob?"):
            return ""
        if answer in ("A", "R"):
            self._for_all = key
        return key

    def _carry_out(
        self, answer: str, looked: PendingChange | CiwrapError, golden: PendingGolden
    ) -> str:
        """What became of the golden, in words. Raises as `accept` and `reject` do."""
        if answer == "a" and not isinstance(looked, CiwrapError):
            accept(self._project, looked, self._reason_for(looked))
            self._note(f"accepted: {looked.change.path}")
            return _ACCEPTED
        if answer == "r":
            reject(self._project, golden, None)
            self._note(f"rejected: {safe_text(golden.check)}")
            return _REJECTED
        return _LEFT

    def _reason_for(self, looked: PendingChange) -> str | None:
        """Asked for each replacement; the one before is offered again."""
        if looked.change.status is not Status.REPLACED:
            return None
        if (self._for_all or self._in_group) and self._reason:
            return self._reason
        while True:
            reason: str = click.prompt("why are the new numbers right", default=self._reason)
            if reason.strip():
                self._reason = reason.strip()
                return self._reason


_ROOT_DIGITS = 12
_MOST_VARIABLES = 12
_FIRST_ELEMENTS = 6
_STYLES = {
    Status.CREATED: "bold green",
    Status.REPLACED: "bold yellow",
    Status.SAME: "bold",
    Status.KEPT: "bold",
}


def _few(notes: list[str]) -> list[str]:
    """All errors, and a few of the others: a group may be as large as it likes."""
    errors = [note for note in notes if note.startswith("error:")]
    done = [note for note in notes if note not in errors]
    more = [f"... and {len(done) - _MOST_NAMES} more"] if len(done) > _MOST_NAMES else []
    return [*errors, *done[:_MOST_NAMES], *more]


def _print_origin(looked: PendingChange, others: list[str], console: Console) -> None:
    """Which run made it. others: the checks that change alike."""
    origin, environment = looked.pending.origin, looked.stored.manifest.environment
    facts = [f"made {origin.created}"]
    if origin.commit is not None:
        commit, dirty, _ = origin.commit.partition(DIRTY)
        facts.append(f"from commit {commit[:12]}{' with changes' if dirty else ''}")
    facts += [environment[key] for key in ("cpu", "os") if key in environment]
    console.print(f"  {safe_text(', '.join(facts))}")
    if others:
        verb = "changes" if len(others) == 1 else "change"
        names = names_text([safe_text(name) for name in others], _MOST_NAMES)
        console.print(
            f"  {plural(len(others), 'other check')} {verb} alike ([g] accepts all): {names}"
        )


def _print_numbers(looked: PendingChange, console: Console) -> None:
    """The first numbers of a new golden: there is nothing to compare them with."""
    variables = looked.stored.variables
    for variable in variables[:_MOST_VARIABLES]:
        name = VariableId(variable.name, variable.iteration, variable.rank).text
        numbers = first_elements(variable, _FIRST_ELEMENTS) or "its values are not kept"
        console.print(f"  {safe_name(name)}: {safe_text(numbers)}")
    if len(variables) > _MOST_VARIABLES:
        console.print(f"  ... and {len(variables) - _MOST_VARIABLES} more (ciwrap show)")


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
