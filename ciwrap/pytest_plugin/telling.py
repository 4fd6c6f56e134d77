"""What a check says of itself: in a failure, in JUnit's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.pytest_plugin.judge import NEW
from ciwrap.report.failure import command_line, failure_lines
from ciwrap.report.text import plural, safe_name, safe_text
from ciwrap.report.wording import used_share, used_words

if TYPE_CHECKING:
    from ciwrap.model import CheckResult
    from ciwrap.pytest_plugin.judge import Outcome
    from ciwrap.pytest_plugin.tested_project import TestedProject


def failure_text(title: str, outcome: Outcome, project: TestedProject) -> str:
    """The message of a check that failed, of at most 20 lines."""
    result = outcome.result
    variant = f" (for {safe_text(result.variant)})" if result.variant else ""
    tail = []
    if outcome.word != NEW:
        tail.append(f"  golden: {safe_text(result.golden_path)}{variant}")
    if outcome.pending:
        place = outcome.place
        waiting = project.pending.store(place).path(place.name)
        tail.append(f"  the new numbers wait in {safe_text(project.shown(waiting))}")
        accept = command_line("ciwrap accept", result.name)
        reason = "" if outcome.word == NEW else " --reason '...'"
        tail.append(f"  if they are right: {accept}{reason}  (to look closer: ciwrap review)")
    elif outcome.problem is not None:
        tail.append(f"  no golden can be made from this: {safe_text(outcome.problem)}")
    if outcome.word == NEW:
        # Where it will lie depends on its size, which nobody knows if none can be made.
        where = f" ({safe_text(result.golden_path)})" if outcome.pending else ""
        first = f"{safe_name(title)}: there is no golden yet{where}"
        return "\n".join([first, *tail])
    return "\n".join(failure_lines(title, result, tail))


def property_of(check: str, word: str, result: CheckResult) -> tuple[str, str]:
    """A property of the test in JUnit's file: how each of its checks ended."""
    said = word.replace("_", " ")
    if result.variables:
        shares = [share for one in result.variables if (share := used_share(one)) is not None]
        said += (
            f", {plural(len(result.variables), 'variable')}{used_words(max(shares, default=None))}"
        )
    if not result.coverage.is_whole:
        said += f"; {result.coverage.text}"
    if result.variant:
        said += f", golden for {result.variant}"
    return f"ciwrap {safe_text(check)}", safe_text(said)
