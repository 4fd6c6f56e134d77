"""`ciwrap review`: look at pending goldens one by one; accept, reject or skip each."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option, verbose_option
from ciwrap.errors import CiwrapError, ExitCode, WriteFailedError

if TYPE_CHECKING:
    from ciwrap.cli.session import Session
    from ciwrap.review.pending_change import PendingChange
    from ciwrap.review.pending_files import PendingGolden
    from ciwrap.review.project import Project

_MOST_COMMANDS = 10
_CHOICES = (
    "[a]ccept, [r]eject, [s]kip, [g]roup, [A]ccept all, [R]eject all, [d]etails, [t]est, [o]pen,"
    " [b]ack, [?] help, [q]uit"
)
_ACCEPTED, _REJECTED, _LEFT = "accepted", "rejected", "left for later"
_DECIDED = (_ACCEPTED, _REJECTED)
_HELP = """\
  a  make the new numbers the golden; a replacement asks why
  r  throw the new numbers away; the golden stays
  s  decide later (Enter does so, too)
  g  make the new numbers the goldens of this one and of all that change alike
  A, R  the same for this one and all that follow
  d  what the failed test said: elements, indices, sizes
  t  the source of the test
  o  open the page with its pictures in the browser
  b  back to the one before that was left for later
  q  end; what is not decided stays"""


@click.command(name="review", short_help="Look at pending goldens; accept or reject each.")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@config_options
@json_option
@verbose_option
@click.pass_obj
def command(
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
    from ciwrap.cli.load_project import find_project
    from ciwrap.cli.print_changes import print_changes
    from ciwrap.review.accept_document import accept_document

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
    from ciwrap.review.pending_change import told_if_stale
    from ciwrap.review.stale import checkout_of

    here = checkout_of(project)
    looked = (_look_or_fail(project, golden) for golden in goldens)
    return [one if isinstance(one, CiwrapError) else told_if_stale(one, here) for one in looked]


def _look_or_fail(project: Project, golden: PendingGolden) -> PendingChange | CiwrapError:
    from ciwrap.review.pending_change import look_at

    try:
        return look_at(project, golden)
    except CiwrapError as error:
        return error


def _tell_commands(session: Session, project: Project, goldens: list[PendingGolden]) -> None:
    from ciwrap.model.commands import command_words
    from ciwrap.report.text import plural, safe_text

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
    from ciwrap.review.alike import likeness

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
    from ciwrap.cli.keys import ask_key, has_keys

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
        self._print(f"\n{said}")

    def _try(self, answer: str, looked: PendingChange | CiwrapError, golden: PendingGolden) -> str:
        """What became of the golden; left for later, if that cannot be done."""
        try:
            return self._carry_out(answer, looked, golden)
        except CiwrapError as error:
            self._print(f"error: {error}")
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
        self._print(f"\n--- {at + 1} of {len(goldens)} ---")
        if isinstance(one, CiwrapError):
            self._print(f"error: {one}")
        else:
            self._show(one)
            self._tell_group([goldens[other].check for other in group if other != at])
        while not self._for_all:
            answer = self._ask(can_accept=not isinstance(one, CiwrapError))
            if answer == "d":
                self._show_details(goldens[at])
            elif answer == "t":
                self._show_source(goldens[at])
            elif answer == "o":
                self._open_page(goldens[at])
            elif answer == "?":
                self._print(_HELP)
            else:
                return answer
        return self._for_all

    def _before(self, became: list[str | None], at: int) -> int:
        """The place of the last one before that was left for later; the same if there is none."""
        for earlier in range(at - 1, -1, -1):
            if became[earlier] == _LEFT:
                return earlier
        self._print("none before this one was left for later")
        return at

    def _show_details(self, golden: PendingGolden) -> None:
        """The message of the check that failed, as its test printed it."""
        from ciwrap.report.failure import failure_lines
        from ciwrap.review.pending_change import recorded_result

        check = recorded_result(self._project, golden)
        if check is None:
            self._print("no details: the run's own result is missing")
            return
        for line in failure_lines(golden.check, check, ()):
            self._print(f"  {line}")

    def _tell_group(self, others: list[str]) -> None:
        from ciwrap.report.text import plural, safe_text

        if not others:
            return
        verb = "changes" if len(others) == 1 else "change"
        self._print(f"  {plural(len(others), 'other check')} {verb} alike ([g] accepts all):")
        for name in others[:_MOST_COMMANDS]:
            self._print(f"    {safe_text(name)}")
        if len(others) > _MOST_COMMANDS:
            self._print(f"    ... and {len(others) - _MOST_COMMANDS} more")

    def _show_source(self, golden: PendingGolden) -> None:
        from ciwrap.report.text import safe_text
        from ciwrap.review.source import source_of

        try:
            lines = source_of(golden.place, self._project.root).splitlines()
        except CiwrapError as error:
            self._print(f"no source: {error}")
            return
        for line in lines:
            self._print(f"  {safe_text(line)}")

    def _open_page(self, golden: PendingGolden) -> None:
        """Writes the result as a page with pictures, and asks the system's browser to show it."""
        import webbrowser

        from ciwrap.documents import DocumentError
        from ciwrap.report.document import from_document
        from ciwrap.report.outputs import write_report
        from ciwrap.work_folder import WORK_DIR

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

    def _print(self, text: str) -> None:
        self._session.console.print(text)

    def _show(self, looked: PendingChange) -> None:
        from ciwrap.cli.print_changes import print_changes
        from ciwrap.report.text import safe_text
        from ciwrap.repository import DIRTY

        session = self._session
        print_changes([looked.change], session.console, dry_run=True, verbose=session.verbose)
        origin, environment = looked.pending.origin, looked.stored.manifest.environment
        facts = [f"made {origin.created}"]
        if origin.commit is not None:
            commit, dirty, _ = origin.commit.partition(DIRTY)
            facts.append(f"from commit {commit[:12]}{' with changes' if dirty else ''}")
        facts += [environment[key] for key in ("cpu", "os") if key in environment]
        self._print(f"  {safe_text(', '.join(facts))}")

    def _ask(self, *, can_accept: bool) -> str:
        while True:
            answer = _answer()
            if answer in ("A", "R"):
                self._for_all = answer.lower()
            answer = answer.lower()[:1]
            if answer in (*"rsqdtob?",) or (answer in ("a", "g") and can_accept):
                return answer
            self._for_all = None
            self._print("please answer with one of these letters")

    def _carry_out(
        self, answer: str, looked: PendingChange | CiwrapError, golden: PendingGolden
    ) -> str:
        """What became of the golden, in words. Raises as `accept` and `reject` do."""
        from ciwrap.review.pending_change import accept
        from ciwrap.review.reject_pending import reject

        if answer == "a" and not isinstance(looked, CiwrapError):
            accept(self._project, looked, self._reason_for(looked))
            self._print(f"accepted: {looked.change.path}")
            return _ACCEPTED
        if answer == "r":
            reject(self._project, golden, None)
            return _REJECTED
        return _LEFT

    def _reason_for(self, looked: PendingChange) -> str | None:
        """Asked for each replacement; the one before is offered again."""
        from ciwrap.review.golden_change import Status

        if looked.change.status is not Status.REPLACED:
            return None
        if (self._for_all or self._in_group) and self._reason:
            return self._reason
        while True:
            reason: str = click.prompt("why are the new numbers right", default=self._reason)
            if reason.strip():
                self._reason = reason.strip()
                return self._reason
