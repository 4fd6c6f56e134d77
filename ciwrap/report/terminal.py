"""A result on a terminal or in a log: the verdict first, the worst first, and short."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from msgspec.structs import replace

from ciwrap.model import (
    CheckResult,
    CommandOutcome,
    Coverage,
    Message,
    MessageLevel,
    RunResult,
    VariableId,
    VariableResult,
    Verdict,
    severity,
    worst_first,
    worst_of,
)
from ciwrap.model.results import ProjectOptions, command_words, names_text
from ciwrap.report.console import Console, Lines, Text
from ciwrap.report.text import (
    beyond_text,
    bytes_text,
    common_start,
    counts_words,
    plural,
    rounded_down,
    safe_name,
    safe_text,
    seconds_text,
    share_text,
    size_text,
)
from ciwrap.report.where import (
    by_name,
    divergence_lines,
    extent_words,
    timeline_lines,
    timelines_of,
    together_text,
    where_listed,
)
from ciwrap.report.words import (
    HINT,
    OF_TWO_RUNS,
    arrays_words,
    became_nan,
    bounds_line,
    detail_lines,
    evidence_words,
    headline,
    left_out_words,
    lost_to,
    sides_of,
    total_words,
    used_share,
    used_words,
    variable_is_exact,
    without_share_text,
)

DEFAULT_MOST_VARIABLES = 8
# The word of each verdict, and its style.
WORDS = {
    Verdict.MATCH: ("match", "bold green"),
    Verdict.UNDECIDED: ("UNDECIDED", "bold yellow"),
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
    # The worst last, where the log of a run in CI opens.
    ordered = sorted(result.checks, key=attrgetter("verdict.severity"))
    quiet = [] if verbose else [one for one in ordered if _is_quiet(result, one)]
    if len(quiet) > 1:
        _render_quiet(quiet, console)
        ordered = [one for one in ordered if one not in quiet]
    if verbose or len(ordered) == 1:
        for check in ordered:
            _render_whole(result, check, console, limit, verbose)
    else:
        _render_some(result, ordered, console, limit)
    if result.verdict is not Verdict.MATCH:
        render_environment(result, console, verbose=verbose)
        render_hint(result, console)
    if verbose:
        console.print(Text(f"took {seconds_text(result.seconds)}", style="dim"))


def _is_quiet(result: RunResult, check: CheckResult) -> bool:
    """Whether the check matches, and nothing else is to be said of it."""
    is_said = bool(check.messages) or check.command is not None or result.kind == "compare"
    return check.verdict is Verdict.MATCH and check.coverage.is_whole and not is_said


def _render_quiet(checks: list[CheckResult], console: Console) -> None:
    """All checks that match, in one line, and what was compared in them."""
    names = names_text([safe_name(one.name) for one in checks], _MOST_NAMES)
    console.print(Text("  ").append(*WORDS[Verdict.MATCH]).append(f"  {names}"))
    good = [(one, variable) for one in checks for variable in one.variables]
    console.print(_matches_line(good, len(good)))
    console.print(Text(f"    {sum((one.coverage for one in checks), Coverage()).text}"))


# Lines that checks take in all, where there are several; the first has as many as it needs.
_MOST_LINES = 40


def _render_some(
    result: RunResult, checks: list[CheckResult], console: Console, limit: int | None
) -> None:
    """The worst last, as far as there is room; those of which the same is to be said together.

    checks: the worst last.
    """
    alike: dict[object, list[CheckResult]] = {}
    for check in sorted(checks, key=attrgetter("verdict.severity"), reverse=True):
        alike.setdefault(_what_is_said(check), []).append(check)
    room = _MOST_LINES
    left_out: list[CheckResult] = []
    shown: list[Lines] = []
    for first, *others in alike.values():
        lines = Lines()
        _render_whole(result, first, lines, limit, verbose=False)
        if others:
            names = names_text([safe_name(one.name) for one in others], _MOST_NAMES)
            lines.print(Text(f"    likewise: {names}"))
        if room < _MOST_LINES and len(lines.found) > room:
            left_out += [first, *others]
            continue
        room -= len(lines.found)
        shown.append(lines)
    if left_out:
        counts = counts_words(Counter(one.verdict for one in left_out))
        more = plural(len(left_out), "more check")
        console.print(
            Text(f"  {more}, not shown: {counts} (--verbose, --json or --report show all)")
        )
    for lines in reversed(shown):
        for line in lines.found:
            console.print(line)


def _what_is_said(check: CheckResult) -> object:
    """Equal for checks whose variables have equal verdicts for equal reasons."""
    bad = [one for one in check.variables if one.verdict is not Verdict.MATCH]
    if check.command is not None or check.history is not None or not bad:
        return check.name
    return (
        check.verdict,
        tuple(str(one) for one in check.messages),
        tuple((one.id.text, one.verdict, headline(one), one.explanations) for one in bad),
    )


def _render_whole(
    result: RunResult, check: CheckResult, console: Console, limit: int | None, verbose: bool
) -> None:
    if result.kind != "compare":
        head = Text("  ").append(*WORDS[check.verdict]).append(f"  {safe_name(check.name)}")
        if check.golden_path is not None:
            head.append(f"  ({safe_text(check.golden_path)})", style="dim")
        console.print(head)
    _render_check(check, console, limit, verbose)


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
        text.append(f"  {title_words(result, total)}")
    return text


def _render_check(
    check: CheckResult,
    console: Console,
    limit: int | None,
    verbose: bool,
) -> None:
    if check.command is not None:
        _render_command(check.command, console)
    bounds = "" if check.bounds_from is None else bounds_line(check)
    if bounds:
        console.print(Text(f"    {bounds}"))
    for message in check.messages:
        render_message(message, console, indent=4)
    good = [variable for variable in check.variables if variable.verdict is Verdict.MATCH]
    if not check.verdict.is_good or len(good) < len(check.variables):
        render_unmatched(check, console, limit, verbose)
    if verbose:
        for variable in worst_first(good):
            render_variable([variable], console, verbose, sides_of(check, variable))
    elif good:
        console.print(_matches_line([(check, one) for one in good], len(check.variables)))
    console.print(Text(f"    {check.coverage.text}"))
    if verbose and check.left_out_variables:
        names = ", ".join(safe_name(one.text) for one in check.left_out_variables)
        console.print(Text(f"      left out: {names}", style="dim"))
    if check.verdict is not Verdict.MATCH:
        render_timelines(check, console)
    if verbose:
        _render_costs(check, console)


def _matches_line(good: list[tuple[CheckResult, VariableResult]], total: int) -> Text:
    """All variables that match, of one check or of several. total: of how many. Where that is more,
    a variable that differs in one checkpoint may match in another, so that arrays are counted.
    """
    text = Text("    match  ")
    if len(good) < total:
        noun = "array" if is_over_checkpoints(good[0][0]) else "variable"
        text.append(f"{len(good):,} of {plural(total, noun)}")
    else:
        text.append(arrays_words(total, len({(check.name, one.name) for check, one in good})))
    kinds = Counter(one.evidence.value for _, one in good if one.evidence is not None)
    if kinds:
        said = [kind if len(kinds) == 1 else f"{kinds[kind]} {kind}" for kind in sorted(kinds)]
        text.append(f" [{', '.join(said)}]")
    known = [pair for pair in good if used_share(pair[1]) is not None]
    if known:
        # Of equally bad ones the first by iteration, rank and name, as they are listed.
        check, worst = max(known, key=lambda pair: severity(pair[1]))
        most = used_share(worst)
        text.append(used_words(most))
        if most and len(good) > 1:
            of_check = f"{safe_name(check.name)}: " if check is not good[0][0] else ""
            text.append(f" (by {of_check}{safe_name(worst.id.text)})")
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


def is_over_checkpoints(check: CheckResult) -> bool:
    """Whether some variable is there more than once, so that it can be shown in one line."""
    return len({one.name for one in check.variables}) < len(check.variables)


def is_of_runs(check: CheckResult) -> bool:
    """Whether two runs of several checkpoints were compared."""
    return check.history is not None and is_over_checkpoints(check)


def alarm_lines(check: CheckResult) -> Iterator[tuple[Verdict, str, str]]:
    """A line for each name that differs or is undecided anywhere: verdict, name and words; the
    first to differ comes first. What the first difference has in common is said of it already.
    """
    ordered = sorted(check.variables, key=lambda one: one.id.sort_key)
    groups = by_name(ordered)
    told = {one.name for one in _told_first(check)}
    for name, bad in by_name(one for one in ordered if one.verdict.is_alarm).items():
        verdict = Verdict.worst(one.verdict for one in bad)
        where = where_listed(check, groups[name], alarms_only=True)
        cause = "" if name in told else _first_cause(bad)
        yield verdict, name, "; ".join(filter(None, (cause, _words(where, bad))))


def _told_first(check: CheckResult) -> list[VariableId]:
    """The variables whose causes stand beside the first difference of a history."""
    firsts = (check.first_divergence, check.first_numeric_divergence) if check.is_history else ()
    return [one.variable.id for one in firsts if one is not None]


def _first_cause(bad: list[VariableResult]) -> str:
    from ciwrap.report.cause_words import first_cause

    return first_cause(bad)


def _words(where: str, bad: list[VariableResult]) -> str:
    """where: when and on which ranks, '' for one checkpoint."""
    where = where or _place(bad[0])
    parts = [where] if where else []
    there = " there" if where else ""
    total = sum(one.compared_elements for one in bad)
    least, most = (sum(counts) for counts in zip(*map(_differing, bad), strict=True))
    if least == most:
        verb = "differs" if least == 1 else "differ"
        parts.append(f"{least:,} of {plural(total, 'value')} {verb}{there}")
    elif least:
        parts.append(f"from {least:,} to {most:,} of {total:,} values differ{there}")
    else:
        suspect = sum(one.suspect_chunks or 0 for one in bad)
        chunks = sum(one.chunk_count or 0 for one in bad)
        parts.append(f"{suspect:,} of {plural(chunks, 'block')} may differ{there}")
    return "; ".join([*parts, *_how_much(bad)])


def _differing(variable: VariableResult) -> tuple[int, int]:
    """How many elements differ, at least and at most."""
    if variable.differing_count is not None:
        return variable.differing_count, variable.differing_count
    return variable.differing_count_at_least or 0, variable.differing_count_at_most or 0


def _how_much(bad: list[VariableResult]) -> Iterator[str]:
    """The largest difference, and where it is."""
    worst = worst_of(bad)
    share, size = worst.max_bound_share, worst.max_abs_difference
    if share is not None and not variable_is_exact(worst):
        words = without_share_text(worst) if math.isinf(share) else f"up to {beyond_text(share)}"
        yield f"{words}{_in_brackets(worst)}"
        return
    if size:
        yield f"largest |difference| {size_text(size)}{_in_brackets(worst)}"
        return
    # Told by residues: at least so much.
    moved = [m.share_from for one in bad for m in one.moved_elements if m.share_from]
    proven = [one.least_share for one in bad if one.least_share]
    least = min((one.guaranteed_share or 0.0 for one in bad), default=0.0)
    if moved or proven:
        yield f"a value moved by more than {share_text(rounded_down(max(moved + proven)))}"
    elif nan := sum(map(became_nan, bad)):
        yield f"{plural(nan, 'value')} became NaN"
    elif least:
        nan = sum(one.new_values.nan_count for one in bad if one.new_values is not None)
        how_far = share_text(rounded_down(least))
        yield (
            f"{plural(nan, 'new number')} there {'is' if nan == 1 else 'are'} NaN"
            if nan
            else f"a value moved by more than {how_far}, or is NaN, infinite or missing on one side"
        )


def _place(variable: VariableResult) -> str:
    """`iter 3 / rank 1`; nothing for a variable that is there once."""
    if variable.iteration is None and variable.rank is None:
        return ""
    return safe_name(variable.id.text).removesuffix(f" / {safe_name(variable.name)}")


def _in_brackets(variable: VariableResult) -> str:
    place = _place(variable)
    return f" ({place})" if place else ""


_LONGEST_NAMES = 1000


def accept_command(run: RunResult, why: str = "WHY") -> str:
    """The command, or one in each line where checks have their goldens in several places; nothing
    if there is no golden to accept.
    """
    names: dict[ProjectOptions, list[str]] = {}
    for check in _to_accept(run):
        names.setdefault(check.accept_options or ProjectOptions(), []).append(check.name)
    return "\n".join(_command(some, options, why) for options, some in names.items())


def accept_when(run: RunResult) -> str:
    """Under which condition the new numbers are to be accepted."""
    bad = (one for check in _to_accept(run) for one in check.variables if one.verdict.is_alarm)
    lost = next((words for one in bad if (words := lost_to(one))), "")
    return f"if {lost} is meant to be there" if lost else "if the new numbers are right"


def _to_accept(run: RunResult) -> list[CheckResult]:
    """The checks whose new numbers can be accepted: those with a golden. What `expect` and `range`
    say has none.
    """
    if run.kind not in ("check", "run"):
        return []
    return [one for one in run.checks if one.verdict.is_alarm and one.golden_path is not None]


def _command(names: list[str], options: ProjectOptions, why: str) -> str:
    given = f"{options} --reason '{why}'"
    words = command_words("ciwrap accept", list(dict.fromkeys(names)), given)
    if len(words) > _LONGEST_NAMES or not words.isprintable():
        # Without names all checks are meant; those that match stay as they are.
        return f"ciwrap accept{given}"
    return words


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
    """Which command looks further, and what to do about differences that are meant to be."""
    from ciwrap.report.top import next_steps

    for what, words in next_steps(result):
        command = f": {safe_text(words)}" if words else ""
        console.print(Text(f"  {what}{command}", style="dim"))
    if command := accept_command(result, "..."):
        console.print(Text(f"  {accept_when(result)}: {safe_text(command)}", style="dim"))


def title_words(result: RunResult, total: int) -> str:
    """How many variables have which verdict; of two runs, where and when they differ."""
    if not total:
        is_one = result.kind in OF_TWO_RUNS
        return "nothing could be compared" if is_one else plural(len(result.checks), "check")
    if len(result.checks) == 1 and is_of_runs(result.checks[0]):
        return extent_words(result.checks[0])
    counts = counts_words(result.verdict_counts)
    names = [by_name(check.variables) for check in result.checks]
    is_listed = sum(len(check.variables) for check in result.checks) == total
    if not is_listed or sum(map(len, names)) == total:
        return f"{total_words(result)}: {counts}"
    worst = Counter(
        Verdict.worst(one.verdict for one in some) for each in names for some in each.values()
    )
    variables = plural(worst.total(), "variable")
    if [one for one in worst if one is not Verdict.MATCH] == [result.verdict]:
        arrays = total - result.verdict_counts[Verdict.MATCH]
        return f"{worst[result.verdict]:,} of {variables} ({arrays:,} of {plural(total, 'array')})"
    return f"{variables}: {counts_words(worst)} ({plural(total, 'array')}: {counts})"


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
    from ciwrap.report.digest_words import decide_words

    bad = [one for one in worst_first(check.variables) if one.verdict is not Verdict.MATCH]
    alarms = [one.verdict for one in bad]
    by_name = []
    if is_over_checkpoints(check) and not verbose:
        # Where a text differs is shown of each by itself.
        texts = {one.name for one in bad if one.text is not None}
        by_name = [line for line in alarm_lines(check) if line[1] not in texts]
        bad = [one for one in bad if not one.verdict.is_alarm or one.name in texts]
    # What is printed is the same whether or not a document takes a second look at the data; the
    # causes of the first divergence stand beside it.
    told = set(_told_first(check))
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
    """Variables of which the same is to be said make one group."""
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
    for detail in detail_lines(variable, sides, is_verbose=verbose):
        console.print(_marked(f"      {detail}", variable))
    if not verbose:
        return
    from ciwrap.report.text_words import masked_lines

    for masked in masked_lines(variable):
        console.print(Text(f"      {masked}", style="dim"))
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
