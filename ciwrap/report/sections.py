"""The parts of the page beside its variables: messages, commands, statistics, checks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ciwrap.model import MessageLevel, Verdict
from ciwrap.report.ensemble_charts import MOST_SHIFTS, shift_bars
from ciwrap.report.ensemble_words import other_messages, rate_text
from ciwrap.report.findings import check_title
from ciwrap.report.text import bytes_text, plural, safe_name, safe_text, seconds_text, short_number
from ciwrap.report.wording import HINT, counted_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.model import CheckResult, CommandOutcome, RunResult

MOST_CHECKS = 100
_TAIL_CHARACTERS = 4000
_MOST_LEFT_OUT = 8


def tail_text(text: str, most: int) -> str:
    """The end of what a command printed, line by line made safe."""
    return "\n".join(safe_text(line) for line in text[-most:].splitlines())


def messages_of(run: RunResult) -> tuple[SimpleNamespace, ...]:
    """Errors first."""
    order = (MessageLevel.ERROR, MessageLevel.WARNING, MessageLevel.NOTE)
    found = [("", message) for message in run.messages]
    found += [(check.name, message) for check in run.checks for message in other_messages(check)]
    found.sort(key=lambda pair: order.index(pair[1].level))
    return tuple(
        SimpleNamespace(
            level="Hint" if message.text.startswith(HINT) else message.level.value.capitalize(),
            class_="not_comparable" if message.level is MessageLevel.ERROR else "",
            check=safe_name(name, 80) if len(run.checks) > 1 else "",
            text=safe_name(message.text.removeprefix(HINT), 1000),
        )
        for name, message in found
    )


def commands_of(run: RunResult) -> tuple[SimpleNamespace, ...]:
    """Those that failed, and the end of what they printed."""
    outcomes: list[CommandOutcome] = [] if run.command is None else [run.command]
    outcomes += [check.command for check in run.checks if check.command is not None]
    bad = [one for one in outcomes if one.exit_code != 0 or one.timed_out]
    return tuple(
        SimpleNamespace(
            command=safe_name(one.command, 500),
            ending=one.ending,
            tail=tail_text(one.output_tail, _TAIL_CHARACTERS),
        )
        for one in bad
    )


def ensembles_of(run: RunResult) -> Iterator[SimpleNamespace]:
    """The statistics of each check whose golden is an ensemble."""
    for check in run.checks[:MOST_CHECKS]:
        facts = check.ensemble
        if facts is None:
            continue
        p = "too few to tell" if facts.p is None else short_number(facts.p)
        more = len(facts.shifts) - MOST_SHIFTS
        rest = f"... and {plural(more, 'more feature')}; the JSON result has all."
        yield SimpleNamespace(
            name=safe_name(check_title(check), 120),
            verdict=check.verdict,
            facts=(
                ("new runs", str(facts.runs)),
                ("members", str(facts.members)),
                ("features", str(facts.features)),
                ("p", p),
                ("called inconsistent at", rate_text(facts.rate)),
            ),
            bars=shift_bars(facts.shifts) if facts.shifts else Markup(""),
            left_out=rest if more > 0 else "",
        )


def check_view(check: CheckResult) -> SimpleNamespace:
    golden = safe_name(check.golden_path or "", 120)
    if check.golden_bytes is not None:
        golden += f" ({bytes_text(check.golden_bytes)})"
    read = "" if check.bytes_read is None else bytes_text(check.bytes_read)
    if check.engine:
        read += f" with {safe_name(check.engine, 20)}"
    if check.history is not None and check.history.by_captures:
        read += f"; {plural(check.history.by_captures, 'variable')} by captures alone"
    return SimpleNamespace(
        name=safe_name(check_title(check), 120),
        verdict=check.verdict,
        evidence=counted_evidence(check),
        not_compared=_not_compared(check),
        golden=golden,
        read=read,
        time=seconds_text(check.seconds),
    )


def _not_compared(check: CheckResult) -> str:
    """What the check did not look at, and the first few names of what was left out."""
    words = ", ".join(check.coverage.not_compared)
    names = [safe_name(one.text, 60) for one in check.left_out_variables[:_MOST_LEFT_OUT]]
    if not names:
        return words
    more = len(check.left_out_variables) - len(names)
    rest = f" and {more:,} more" if more else ""
    return f"{words}. Left out of the golden: {', '.join(names)}{rest}"


def evidence_notes(run: RunResult) -> tuple[str, ...]:
    """What each kind of evidence that was used can tell."""
    kinds = {
        variable.evidence.value
        for check in run.checks
        for variable in check.variables
        if variable.evidence is not None and variable.verdict is not Verdict.NOT_COMPARABLE
    }
    notes = {
        "data": "data: the values of both sides were compared element by element; counts and"
        " indices are exact.",
        "residues": "residues only: the golden's values are not kept. A match is sure. In a suspect"
        " chunk an element lies near its bound or beyond it; which one, and how far it moved, is"
        " told where that could be found out, as of one or two elements of a chunk.",
        "tree": "tree only: the golden's values are not kept. A match is sure; a suspect chunk may"
        " be a false alarm of values close to a cell's edge.",
    }
    return tuple(notes[kind] for kind in ("data", "residues", "tree") if kind in kinds)
