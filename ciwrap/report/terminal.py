"""A result on a terminal or in a log: the verdict first, the worst first, and short."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from ciwrap.model import (
    CheckResult,
    MessageLevel,
    RunResult,
    VariableResult,
    Verdict,
    worst_first,
    worst_of,
)
from ciwrap.report.console import Text
from ciwrap.report.sides import sides_of
from ciwrap.report.text import (
    bytes_text,
    plural,
    safe_name,
    safe_text,
    seconds_text,
)
from ciwrap.report.wording import (
    HINT,
    arrays_words,
    bounds_line,
    left_out_words,
    total_words,
    used_share,
    used_words,
)

if TYPE_CHECKING:
    from ciwrap.model import CommandOutcome, Message
    from ciwrap.report.console import Console

DEFAULT_MOST_VARIABLES = 8
# The word of each verdict, and its style.
WORDS = {
    Verdict.MATCH: ("match", "bold green"),
    Verdict.SUSPECT: ("SUSPECT", "bold yellow"),
    Verdict.DIFFER: ("DIFFER", "bold red"),
    Verdict.NOT_COMPARABLE: ("NOT COMPARABLE", "bold magenta"),
    Verdict.CONSISTENT: ("consistent", "bold green"),
    Verdict.INCONSISTENT: ("INCONSISTENT", "bold red"),
}
_LEVEL_STYLES = {
    MessageLevel.ERROR: "bold magenta",
    MessageLevel.WARNING: "yellow",
    MessageLevel.NOTE: "dim",
}
_TAIL_LINES = 10


def render(
    result: RunResult,
    console: Console,
    *,
    verbose: bool = False,
    most_variables: int = DEFAULT_MOST_VARIABLES,
) -> None:
    """Prints a result. verbose: every variable and where the time went."""
    limit = None if verbose else most_variables
    console.print(_title(result))
    if result.command is not None:
        _render_command(result.command, console)
    for message in result.messages:
        render_message(message, console, indent=2)
    for check in sorted(result.checks, key=attrgetter("verdict.severity"), reverse=True):
        if result.kind != "compare":
            console.print(_check_head(check))
        _render_check(check, console, limit, verbose)
    if result.verdict is not Verdict.MATCH:
        from ciwrap.report.unmatched_terminal import render_environment, render_hint

        render_environment(result, console, verbose=verbose)
        render_hint(result, console)
    if verbose:
        console.print(Text(f"took {seconds_text(result.seconds)}", style="dim"))


def _title(result: RunResult) -> Text:
    total = sum(check.variable_count for check in result.checks)
    text = Text(*WORDS[result.verdict])
    if result.verdict is Verdict.MATCH:
        coverage = result.coverage
        if coverage.left_out:
            text.append(f", but {left_out_words(coverage, result.kind)}", style="bold")
        every = "all " if total > 1 and coverage.is_whole else ""
        text.append(f"  {every}{total_words(result)}")
    else:
        from ciwrap.report.unmatched_terminal import title_words

        text.append(f"  {title_words(result, total)}")
    return text


def _check_head(check: CheckResult) -> Text:
    head = Text("  ").append(*WORDS[check.verdict]).append(f"  {safe_name(check.name)}")
    if check.golden_path is not None:
        head.append(f"  ({safe_text(check.golden_path)})", style="dim")
    return head


def _render_check(
    check: CheckResult,
    console: Console,
    limit: int | None,
    verbose: bool,
) -> None:
    if check.command is not None:
        _render_command(check.command, console)
    if check.bounds_from is not None:
        console.print(Text(f"    {bounds_line(check)}"))
    for message in check.messages:
        render_message(message, console, indent=4)
    good = [variable for variable in check.variables if variable.verdict is Verdict.MATCH]
    if not check.verdict.is_good or len(good) < len(check.variables):
        from ciwrap.report.unmatched_terminal import render_unmatched

        render_unmatched(check, console, limit, verbose)
    if verbose:
        from ciwrap.report.unmatched_terminal import render_variable

        for variable in worst_first(good):
            render_variable([variable], console, verbose, sides_of(check, variable))
    elif good:
        console.print(_matches_line(good))
    console.print(Text(f"    {check.coverage.text}"))
    if verbose and check.left_out_variables:
        names = ", ".join(safe_name(one.text) for one in check.left_out_variables)
        console.print(Text(f"      left out: {names}", style="dim"))
    if check.verdict is not Verdict.MATCH:
        from ciwrap.report.unmatched_terminal import render_timelines

        render_timelines(check, console)
    if verbose:
        _render_costs(check, console)


def _matches_line(good: list[VariableResult]) -> Text:
    text = Text("    match  ")
    text.append(arrays_words(len(good), len({one.name for one in good})))
    kinds = Counter(variable.evidence.value for variable in good if variable.evidence is not None)
    if kinds:
        said = [kind if len(kinds) == 1 else f"{kinds[kind]} {kind}" for kind in sorted(kinds)]
        text.append(f" [{', '.join(said)}]")
    known = [variable for variable in good if used_share(variable) is not None]
    if known:
        most = used_share(worst_of(known))
        text.append(used_words(most))
        if most and len(good) > 1:
            text.append(f" (by {safe_name(worst_of(known).id.text)})")
    return text


def _render_costs(check: CheckResult, console: Console) -> None:
    parts = [f"took {seconds_text(check.seconds)}"]
    if check.bytes_read is not None:
        parts.append(f"read {bytes_text(check.bytes_read)}")
    if check.history is not None:
        facts = check.history
        parts.append(
            f"of which {bytes_text(facts.capture_bytes_read)} of captures, that settled"
            f" {plural(facts.by_captures, 'variable')}"
        )
    if check.engine is not None:
        parts.append(f"with {check.engine}")
    if check.golden_bytes is not None:
        parts.append(f"golden of {bytes_text(check.golden_bytes)}")
    console.print(Text(f"    {', '.join(parts)}", style="dim"))


def render_message(message: Message, console: Console, *, indent: int) -> None:
    # "note: hint: try it" would say twice what it is.
    level = HINT if message.text.startswith(HINT) else f"{message.level.value}: "
    line = Text(" " * indent).append(level, _LEVEL_STYLES[message.level])
    console.print(line.append(safe_text(message.text.removeprefix(HINT))))


def _render_command(command: CommandOutcome, console: Console) -> None:
    if command.exit_code == 0 and not command.timed_out:
        return
    console.print(Text(f"    command {safe_name(command.command)!r} {command.ending}"))
    for line in command.output_tail.splitlines()[-_TAIL_LINES:]:
        console.print(Text(f"      | {safe_text(line)}", style="dim"))
