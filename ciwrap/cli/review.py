"""`ciwrap review`: the goldens that wait, one after the other, with what each of them changes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import click

from ciwrap.base.documents import DocumentError
from ciwrap.base.errors import CiwrapError, ExitCode, WriteFailedError
from ciwrap.base.files import WORK_DIR
from ciwrap.base.repository import DIRTY
from ciwrap.cli.accept import print_changes, tell_git
from ciwrap.cli.commands import command, verbose_option
from ciwrap.cli.main import Session
from ciwrap.cli.options import config_options, json_option
from ciwrap.cli.terminal import ask_key, has_keys
from ciwrap.golden.show import first_elements
from ciwrap.model import VariableId
from ciwrap.model.results import command_words, names_text
from ciwrap.report.console import Console, Lines, Text, terminal_height
from ciwrap.report.document import from_document
from ciwrap.report.failure import failure_lines
from ciwrap.report.outputs import write_report
from ciwrap.report.text import plural, safe_name, safe_text
from ciwrap.review.accept import (
    PendingChange,
    accept,
    accept_document,
    checkout_of,
    likeness,
    look_at,
    recorded_result,
    source_of,
    with_stale_reason,
)
from ciwrap.review.change import Status
from ciwrap.review.pending import PendingGolden, reject
from ciwrap.review.project import Project, find_project

_MOST_COMMANDS = 10
_MOST_NAMES = 5
_MOST_VARIABLES, _FIRST_ELEMENTS = 12, 6
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
        tell_git(session, project)
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
