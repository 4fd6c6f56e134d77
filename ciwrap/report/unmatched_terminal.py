"""What does not match on a terminal: where it diverges first, the worst first, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.model import Verdict, worst_first
from ciwrap.report.console import Text
from ciwrap.report.digest_words import decide_words
from ciwrap.report.history_terminal import alarm_lines, is_of_runs, is_over_checkpoints
from ciwrap.report.sides import sides_of
from ciwrap.report.terminal import WORDS
from ciwrap.report.text import common_start, counts_words, plural, safe_name, safe_text
from ciwrap.report.timelines import (
    divergence_lines,
    timeline_lines,
    timelines_of,
    together_text,
)
from ciwrap.report.to_accept import accept_command
from ciwrap.report.where import extent_words
from ciwrap.report.wording import (
    OF_TWO_RUNS,
    detail_lines,
    evidence_words,
    headline,
    total_words,
)
from ciwrap.structs import replace

if TYPE_CHECKING:
    from ciwrap.model import CheckResult, RunResult, VariableResult
    from ciwrap.report.console import Console

_MOST_NAMES = 4
_MOST_DIFFERENCES = 4


def render_environment(result: RunResult, console: Console, *, verbose: bool) -> None:
    """What differs from the golden's environment, the likeliest to change numbers first."""
    from ciwrap.report.environment import difference_line, worst_differences

    found = worst_differences(result)
    if not found:
        return
    console.print(Text("  the environment, as far as it was seen, is not that of the golden:"))
    shown = found if verbose else found[:_MOST_DIFFERENCES]
    for one in shown:
        console.print(Text(f"    {difference_line(one)}"))
    if rest := len(found) - len(shown):
        console.print(f"    ... and {rest} more (--verbose, --json or --report show all)")
    if found[0].prove is not None:
        prove = f"    to prove that {safe_name(found[0].name)} matters: {safe_text(found[0].prove)}"
        console.print(Text(prove, style="dim"))


def render_hint(result: RunResult, console: Console) -> None:
    """What to do about differences that are meant to be."""
    if command := accept_command(result, "..."):
        console.print(Text(f"  if the new numbers are right: {safe_text(command)}", style="dim"))


def title_words(result: RunResult, total: int) -> str:
    """How many variables have which verdict; of two runs, where and when they differ."""
    if not total:
        is_one = result.kind in OF_TWO_RUNS
        return "nothing could be compared" if is_one else plural(len(result.checks), "check")
    if len(result.checks) == 1 and is_of_runs(result.checks[0]):
        return extent_words(result.checks[0])
    return f"{total_words(result)}: {counts_words(result.verdict_counts)}"


def render_unmatched(
    check: CheckResult, console: Console, limit: int | None, verbose: bool
) -> None:
    """What diverged first, and the variables that do not match."""
    # What happened first stands first: the cause is more often there than where it is largest.
    if not check.verdict.is_good:
        _render_first_divergence(check, console)
    if any(one.verdict is not Verdict.MATCH for one in check.variables):
        _render_worst(check, console, limit, verbose)


def _render_worst(check: CheckResult, console: Console, limit: int | None, verbose: bool) -> None:
    """The variables that do not match, and how many more there are: the worst first; of a whole
    run those that differ by name, the first to diverge first, unless every detail is asked for.
    """
    bad = [one for one in worst_first(check.variables) if one.verdict is not Verdict.MATCH]
    alarms = [one.verdict for one in bad]
    by_name = []
    if is_over_checkpoints(check) and not verbose:
        # Where a text differs is told of each by itself.
        texts = {one.name for one in bad if one.text is not None}
        by_name = [line for line in alarm_lines(check) if line[1] not in texts]
        bad = [one for one in bad if not one.verdict.is_alarm or one.name in texts]
    # What is printed is the same whether or not a document takes a second look at the data; the
    # causes of the first divergence stand beside it.
    firsts = (check.first_divergence, check.first_numeric_divergence) if check.is_history else ()
    told = {one.variable.id for one in firsts if one is not None}
    if is_of_runs(check):
        told = {one.id for one in bad}
    bad = [replace(one, explanations=()) if one.id in told else one for one in bad]
    groups = _grouped(check, bad)
    shown = groups if limit is None else groups[:limit]
    for group in shown:
        render_variable(group, console, verbose, sides_of(check, group[0]))
    for verdict, name, words in by_name[:limit]:
        line = Text("    ").append(*WORDS[verdict]).append("  ").append(safe_name(name), "bold")
        console.print(line.append(f": {words}"))
    rest = len(bad) - sum(len(group) for group in shown)
    rest += len(by_name) - len(by_name[:limit])
    if rest:
        console.print(Text(f"    ... and {rest} more (--verbose or --json show all)"))
    if decide := decide_words(alarms):
        console.print(Text(f"    {decide}", style="dim"))


def render_timelines(check: CheckResult, console: Console) -> None:
    """How each variable went over the iterations, a line for each."""
    for number, text in enumerate(timeline_lines(timelines_of(check))):
        console.print(Text(f"{'      ' if number else '    '}{text}"))


def _grouped(check: CheckResult, variables: list[VariableResult]) -> list[list[VariableResult]]:
    """Variables of which the same is to be told make one group."""
    groups: dict[object, list[VariableResult]] = {}
    for variable in variables:
        details = detail_lines(variable, sides_of(check, variable))
        key: object = (variable.evidence, headline(variable), *details)
        if variable.verdict is Verdict.NOT_COMPARABLE:
            key = variable.reason
        groups.setdefault(key, []).append(variable)
    return list(groups.values())


def render_variable(
    group: list[VariableResult], console: Console, verbose: bool, sides: tuple[str, str]
) -> None:
    variable = group[0]
    line = Text("    ").append(*WORDS[variable.verdict]).append("  ")
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


def _render_first_divergence(check: CheckResult, console: Console) -> None:
    for what, name, more, causes in divergence_lines(check):
        console.print(Text(f"    {what}: ").append(name, "bold").append(more))
        for cause in causes:
            console.print(f"      {cause}")
    if together := together_text(check):
        console.print(f"      {together}")
