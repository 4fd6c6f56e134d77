"""A result on a terminal or in a log: the verdict first, the worst first, and short."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from ciwrap.model import CheckResult, MessageLevel, RunResult, VariableResult, Verdict
from ciwrap.report.console import Text
from ciwrap.report.digest_words import decide_words
from ciwrap.report.history_terminal import alarm_lines, is_over_checkpoints
from ciwrap.report.text import (
    bytes_text,
    common_start,
    plural,
    safe_name,
    safe_text,
    seconds_text,
    sparkline,
)
from ciwrap.report.timelines import (
    divergence_lines,
    timeline_lines,
    timelines_of,
    together_text,
)
from ciwrap.report.where import extent_words
from ciwrap.report.wording import (
    arrays_words,
    bounds_line,
    command_ending,
    detail_lines,
    evidence_words,
    headline,
    left_out_words,
    sides_of,
    total_words,
    used_share,
    used_words,
    worst_first,
)
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import CommandOutcome, Message
    from ciwrap.report.console import Console

DEFAULT_MOST_VARIABLES = 8
# The word of each verdict, and its style.
_WORDS = {
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
_MOST_NAMES = 4
_MOST_DIFFERENCES = 4


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
        _render_environment(result, console, verbose=verbose)
        _render_hint(result, console)
    if verbose:
        console.print(Text(f"took {seconds_text(result.seconds)}", style="dim"))


def _render_environment(result: RunResult, console: Console, *, verbose: bool) -> None:
    """What differs from the golden's environment, the likeliest to change numbers first."""
    from ciwrap.report.environment import difference_line, worst_differences

    found = worst_differences(result)
    if not found:
        return
    console.print(Text("  the environment is not that of the golden:"))
    shown = found if verbose else found[:_MOST_DIFFERENCES]
    for one in shown:
        console.print(Text(f"    {difference_line(one)}"))
    if len(found) > len(shown):
        rest = (
            f"    ... and {len(found) - len(shown)} more (--verbose, --json or --report show all)"
        )
        console.print(Text(rest))
    if found[0].prove is not None:
        prove = f"    to prove that {safe_name(found[0].name)} matters: {safe_text(found[0].prove)}"
        console.print(Text(prove, style="dim"))


def _render_hint(result: RunResult, console: Console) -> None:
    """What to do about differences that are meant to be."""

    names = [check.name for check in result.checks if check.verdict.is_alarm]
    if names and result.kind in ("check", "run"):
        import shlex

        words = " ".join(shlex.quote(safe_text(name)) for name in names)
        hint = f"if the new numbers are right: ciwrap accept {words} --reason '...'"
        console.print(Text(f"  {hint}", style="dim"))


def _title(result: RunResult) -> Text:
    total = sum(check.variable_count for check in result.checks)
    text = Text()
    text.append(*_WORDS[result.verdict])
    if result.verdict is Verdict.MATCH:
        coverage = result.coverage
        if coverage.left_out:
            text.append(f", but {left_out_words(coverage, result.kind)}", style="bold")
        every = "all " if total > 1 and coverage.is_whole else ""
        text.append(f"  {every}{total_words(result)}")
    elif not total:
        is_one = result.kind == "compare"
        words = plural(len(result.checks), "check")
        text.append("  nothing could be compared" if is_one else f"  {words}")
    elif len(result.checks) == 1 and _is_of_runs(result.checks[0]):
        text.append(f"  {extent_words(result.checks[0])}")
    else:
        counts = result.verdict_counts
        said = [
            f"{counts[verdict]} {verdict.words}"
            for verdict in Verdict.worst_first()
            if counts[verdict]
        ]
        text.append(f"  {total_words(result)}: {', '.join(said)}")
    return text


def _is_of_runs(check: CheckResult) -> bool:
    return check.history is not None and is_over_checkpoints(check)


def _check_head(check: CheckResult) -> Text:
    head = Text("  ")
    head.append(*_WORDS[check.verdict])
    head.append(f"  {safe_name(check.name)}")
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
    # What happened first stands first: the cause is more often there than where it is largest.
    if not check.verdict.is_good:
        _render_first_divergence(check, console)
    good = [variable for variable in check.variables if variable.verdict is Verdict.MATCH]
    if len(good) < len(check.variables):
        _render_unmatched(check, console, limit, verbose)
    if verbose:
        for variable in worst_first(good):
            _render_variable([variable], console, verbose, sides_of(check))
    elif good:
        console.print(_matches_line(good))
    console.print(Text(f"    {check.coverage.text}"))
    if verbose and check.left_out_variables:
        names = ", ".join(safe_name(one.text) for one in check.left_out_variables)
        console.print(Text(f"      left out: {names}", style="dim"))
    if check.verdict is not Verdict.MATCH:
        for number, text in enumerate(timeline_lines(timelines_of(check))):
            console.print(Text(f"{'      ' if number else '    '}{text}"))
    if verbose:
        _render_costs(check, console)


def _render_unmatched(
    check: CheckResult,
    console: Console,
    limit: int | None,
    verbose: bool,
) -> None:
    """The variables that do not match, and how many more there are: the worst first; of a whole
    run those that differ by name, the first to diverge first, unless every detail is asked for.
    """
    bad = [one for one in worst_first(check.variables) if one.verdict is not Verdict.MATCH]
    alarms = [one.verdict for one in bad]
    sides = sides_of(check)
    by_name = []
    if is_over_checkpoints(check) and not verbose:
        # Where a text differs is told of each by itself.
        texts = {one.name for one in bad if one.text is not None}
        by_name = [line for line in alarm_lines(check) if line[1] not in texts]
        bad = [one for one in bad if not one.verdict.is_alarm or one.name in texts]
    # What is printed is the same whether or not a document takes a second look at the data; the
    # causes of the first divergence stand beside it.
    told = {
        one.variable.id for one in (check.first_divergence, check.first_numeric_divergence) if one
    }
    is_of_runs = _is_of_runs(check)
    bad = [
        replace(one, explanations=())
        if is_of_runs or (check.is_history and one.id in told)
        else one
        for one in bad
    ]
    groups = _grouped(bad, sides)
    shown = groups if limit is None else groups[:limit]
    for group in shown:
        _render_variable(group, console, verbose, sides)
    for verdict, name, words in by_name[:limit]:
        line = Text("    ")
        line.append(*_WORDS[verdict])
        line.append("  ")
        line.append(safe_name(name), style="bold")
        console.print(line.append(": ").append(words))
    rest = len(bad) - sum(len(group) for group in shown)
    rest += len(by_name) - len(by_name[:limit])
    if rest:
        console.print(Text(f"    ... and {rest} more (--verbose or --json show all)"))
    if decide := decide_words(alarms):
        console.print(Text(f"    {decide}", style="dim"))


def _matches_line(good: list[VariableResult]) -> Text:
    text = Text("    match  ")
    text.append(arrays_words(len(good), len({one.name for one in good})))
    kinds = Counter(variable.evidence.value for variable in good if variable.evidence is not None)
    if kinds:
        said = [kind if len(kinds) == 1 else f"{kinds[kind]} {kind}" for kind in sorted(kinds)]
        text.append(f" [{', '.join(said)}]")
    most, mover = None, None
    for variable in good:
        share = used_share(variable)
        if share is not None and (most is None or share > most):
            most, mover = share, variable
    text.append(used_words(most))
    if most and mover is not None and len(good) > 1:
        text.append(f" (by {safe_name(mover.id.text)})")
    return text


def _grouped(variables: list[VariableResult], sides: tuple[str, str]) -> list[list[VariableResult]]:
    """Variables of which the same is to be told make one group."""
    groups: dict[object, list[VariableResult]] = {}
    for variable in variables:
        key: object = (variable.evidence, headline(variable), *detail_lines(variable, sides))
        if variable.verdict is Verdict.NOT_COMPARABLE:
            key = variable.reason
        groups.setdefault(key, []).append(variable)
    return list(groups.values())


def _render_variable(
    group: list[VariableResult], console: Console, verbose: bool, sides: tuple[str, str]
) -> None:
    variable = group[0]
    line = Text("    ")
    line.append(*_WORDS[variable.verdict])
    line.append("  ")
    names = group if verbose else group[:_MOST_NAMES]
    line.append(", ".join(safe_name(one.id.text) for one in names), style="bold")
    if len(group) > len(names):
        line.append(f" and {len(group) - len(names)} more")
    if variable.verdict is not Verdict.NOT_COMPARABLE and variable.evidence is not None:
        line.append(f" [{variable.evidence.value}]")
    line.append(f": {headline(variable)}")
    console.print(line)
    for detail in detail_lines(variable, sides, most_places=50 if verbose else 5):
        console.print(_marked(f"      {detail}", variable))
    if not verbose:
        return
    words = evidence_words(variable)
    if words:
        console.print(Text(f"      on the evidence of {words}", style="dim"))
    if variable.source_path is not None:
        console.print(Text(f"      in {safe_text(variable.source_path)}", style="dim"))
    if variable.drift_histogram and _can_draw(console):
        console.print(
            Text(
                f"      drift, 0 to the bound: |{sparkline(variable.drift_histogram)}|", style="dim"
            )
        )


def _marked(line: str, variable: VariableResult) -> Text:
    """The line on the first difference, its digits bold from where both values part."""
    text = Text(line)
    if not variable.first_differences:
        return text
    first = variable.first_differences[0]
    golden, new = safe_name(first.golden), safe_name(first.new)
    start = common_start(golden, new)
    at = line.find(f" {golden}, ")
    if not start or at < 0:
        return text
    other = line.find(f" {new}", at + 1)
    ends = [(at + 1, len(golden)), (other + 1, len(new))]
    marked, last = Text(), 0
    for first_character, length in ends:
        parted = first_character + start
        marked.append(line[last:parted])
        last = first_character + length
        marked.append(line[parted:last], "bold underline")
    return marked.append(line[last:])


def _can_draw(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def _render_first_divergence(check: CheckResult, console: Console) -> None:
    for what, name, more, causes in divergence_lines(check):
        line = Text(f"    {what}: ")
        line.append(name, style="bold")
        line.append(more)
        console.print(line)
        for cause in causes:
            console.print(Text(f"      {cause}"))
    together = together_text(check)
    if together:
        console.print(Text(f"      {together}"))


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
    line = Text(" " * indent)
    line.append(f"{message.level.value}: ", style=_LEVEL_STYLES[message.level])
    line.append(safe_text(message.text))
    console.print(line)


def _render_command(command: CommandOutcome, console: Console) -> None:
    if command.exit_code == 0 and not command.timed_out:
        return
    ending = command_ending(command)
    console.print(Text(f"    command {safe_name(command.command)!r} {ending}"))
    for line in command.output_tail.splitlines()[-_TAIL_LINES:]:
        console.print(Text(f"      | {safe_text(line)}", style="dim"))
