"""`ciwrap review`: look at pending goldens one by one; accept, reject or skip each."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from ciwrap.cli.options import config_options, json_option, verbose_option
from ciwrap.errors import CiwrapError

if TYPE_CHECKING:
    from ciwrap.cli.proposals import Proposed, Workplace
    from ciwrap.cli.session import Session
    from ciwrap.golden.pending import PendingGolden

_MOST_COMMANDS = 10
_CHOICES = "[a]ccept, [r]eject, [s]kip, [A]ccept all, [R]eject all, [q]uit"


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
    from ciwrap.cli.acceptance import render_acceptance
    from ciwrap.cli.proposals import find_workplace
    from ciwrap.compare.proposed import named_for_people
    from ciwrap.review.accept_document import accept_document

    place = find_workplace(config_path, golden_dir)
    goldens = place.select(patterns)
    looked = [_look(place, golden) for golden in goldens]
    good = [one for one in looked if not isinstance(one, CiwrapError)]
    shown = [named_for_people(one.candidate, one.golden.check) for one in good]
    session.emit_record(accept_document(shown, reason=None, dry_run=True))
    if not goldens:
        session.console.print("nothing waits for review")
        return 0
    if sys.stdin.isatty() and sys.stdout.isatty():
        _Interview(session, place).go(looked, goldens)
        place.pending.write_index(place.golden_dir_text)
        return 0
    render_acceptance(shown, session.console, dry_run=True, verbose=session.verbose)
    for one in looked:
        if isinstance(one, CiwrapError):
            session.console.print(f"error: {one}")
    _tell_commands(session, goldens)
    return 0


def _look(place: Workplace, golden: PendingGolden) -> Proposed | CiwrapError:
    from ciwrap.cli.proposals import proposed

    try:
        return proposed(place, golden)
    except CiwrapError as error:
        return error


def _tell_commands(session: Session, goldens: list[PendingGolden]) -> None:
    from ciwrap.report.text import plural, safe_text

    session.console.print(f"{plural(len(goldens), 'golden')} waiting; to decide, type one of")
    for golden in goldens[:_MOST_COMMANDS]:
        name = shlex.quote(safe_text(golden.check))
        reason = " --reason '...'" if golden.proposal.kind != "new" else ""
        session.console.print(f"  ciwrap accept {name}{reason}")
        session.console.print(f"  ciwrap reject {name}")
    session.console.print("or, for all of them at once,")
    session.console.print("  ciwrap accept --pending --reason '...'")
    session.console.print("  ciwrap reject --all")


class _Interview:
    """Asks about one pending golden after the other."""

    def __init__(self, session: Session, place: Workplace) -> None:
        self._session = session
        self._place = place
        self._reason: str | None = None
        self._for_all: str | None = None
        self._counts = {"accepted": 0, "rejected": 0, "left for later": 0}

    def go(self, looked: list[Proposed | CiwrapError], goldens: list[PendingGolden]) -> None:
        for number, (one, golden) in enumerate(zip(looked, goldens, strict=True), 1):
            self._session.console.print(f"\n--- {number} of {len(goldens)} ---")
            if isinstance(one, CiwrapError):
                self._session.console.print(f"error: {one}")
            else:
                self._show(one)
            answer = self._for_all or self._ask(can_accept=not isinstance(one, CiwrapError))
            if answer == "q":
                self._counts["left for later"] += len(goldens) - number + 1
                break
            self._do(answer, one, golden)
        said = ", ".join(f"{count} {words}" for words, count in self._counts.items() if count)
        self._session.console.print(f"\n{said}")

    def _show(self, one: Proposed) -> None:
        from ciwrap.cli.acceptance import render_acceptance
        from ciwrap.compare.proposed import named_for_people
        from ciwrap.environment import DIRTY
        from ciwrap.report.text import safe_text

        candidate = named_for_people(one.candidate, one.golden.check)
        verbose = self._session.verbose
        render_acceptance([candidate], self._session.console, dry_run=True, verbose=verbose)
        environment = one.stored.manifest.environment
        facts = [f"made {one.golden.proposal.created}"]
        if one.golden.proposal.commit is not None:
            commit, dirty, _ = one.golden.proposal.commit.partition(DIRTY)
            facts.append(f"from commit {commit[:12]}{' with changes' if dirty else ''}")
        facts += [environment[key] for key in ("cpu", "os") if key in environment]
        self._session.console.print(f"  {safe_text(', '.join(facts))}")

    def _ask(self, *, can_accept: bool) -> str:
        while True:
            answer: str = click.prompt(_CHOICES, default="s", show_default=False).strip()
            if answer in ("A", "R"):
                self._for_all = answer.lower()
            answer = answer.lower()[:1]
            if answer in ("r", "s", "q") or (answer == "a" and can_accept):
                return answer
            self._for_all = None
            self._session.console.print("please answer with one of these letters")

    def _do(self, answer: str, one: Proposed | CiwrapError, golden: PendingGolden) -> None:
        from ciwrap.cli.proposals import accept_one
        from ciwrap.cli.reject import reject_one

        if answer == "a" and not isinstance(one, CiwrapError):
            try:
                accept_one(self._place, one, self._reason_for(one))
            except CiwrapError as error:
                self._session.console.print(f"error: {error}")
                self._counts["left for later"] += 1
                return
            self._session.console.print(f"accepted: {one.candidate.path}")
            self._counts["accepted"] += 1
        elif answer == "r":
            reject_one(self._place, golden, None)
            self._counts["rejected"] += 1
        else:
            self._counts["left for later"] += 1

    def _reason_for(self, one: Proposed) -> str | None:
        """Asked for each replacement; the one before is offered again."""
        from ciwrap.compare.accept import Status

        if one.candidate.status is not Status.REPLACED:
            return None
        if self._for_all and self._reason:
            return self._reason
        while True:
            reason: str = click.prompt("why are the new numbers right", default=self._reason)
            if reason.strip():
                self._reason = reason.strip()
                return self._reason
