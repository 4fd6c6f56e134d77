"""A watched run in lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.report.text import at_most_text, percent_text, plural, safe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.online.watched import WatchedRun, WatchedVariable

_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_DIGITS = "0123456789"
_MOST_BARS = 24
_MOST_NAME = 28


def watch_lines(run: WatchedRun, *, has_ended: bool, has_bars: bool) -> Iterator[str]:
    """One line of the run, and one for each variable.

    has_bars: whether bars can be shown; else tenths of the bound are digits.
    """
    yield _run_line(run, has_ended=has_ended)
    width = min(_MOST_NAME, max((len(safe_name(name)) for name in run.variables), default=0))
    for one in run.variables.values():
        name = safe_name(one.name, _MOST_NAME)
        yield f"  {name:<{width}}  {_variable_words(one, has_bars=has_bars)}"


def _run_line(run: WatchedRun, *, has_ended: bool) -> str:
    if run.last_iteration is None:
        return "nothing recorded yet"
    state = "still running"
    if has_ended:
        killed = run.ranks - run.closed
        state = "ended" if not killed else f"ended; {killed} of {run.ranks} without an end"
    errors = f"; {plural(run.errors, 'error')} while recording" if run.errors else ""
    ranks = f"{run.ranks} process{'' if run.ranks == 1 else 'es'}"
    checkpoints = plural(run.checkpoints, "checkpoint")
    return f"iteration {run.last_iteration}, {ranks}, {checkpoints} ({state}){errors}"


def _variable_words(one: WatchedVariable, *, has_bars: bool) -> str:
    parts = []
    if one.shares:
        parts.append(_share_words(one, has_bars=has_bars))
    if one.first_no_match is not None:
        first = one.first_no_match
        parts.append(
            f"does not match since iteration {first.iteration} (rank {first.rank},"
            f" {first.suspect_chunks} of {plural(first.chunks, 'chunk')})"
        )
    elif one.compared and not one.shares:
        parts.append("equal")
    if one.not_compared:
        times = plural(one.not_compared, "time")
        parts.append(f"not compared {times}: {safe_name(one.reason)}")
    return "; ".join(parts)


def _share_words(one: WatchedVariable, *, has_bars: bool) -> str:
    latest = one.latest
    share = latest[-1][1]
    words = f"{_bars([share for _, share in latest[-_MOST_BARS:]], has_bars)}  "
    used = f"{at_most_text(_upper(one, share))} of the bound"
    words += used if share else _no_drift_words(one)
    rise = one.rise()
    if rise is None or one.first_no_match is not None:
        return words
    return (
        f"{words}; grows by {percent_text(rise.per_iteration)} an iteration: reaches the bound"
        f" near iteration {rise.reaches_at} if it goes on so"
    )


def _no_drift_words(one: WatchedVariable) -> str:
    """There may have been some before."""
    return (
        f"no drift in iteration {one.latest[-1][0]}"
        if any(one.shares.values())
        else "no drift seen"
    )


def _upper(one: WatchedVariable, share: float) -> float:
    """The upper end of what residues leave open."""
    return min(1.0, share + (one.step or 0.0))


def _bars(shares: list[float], has_bars: bool) -> str:
    letters = _BARS if has_bars else _DIGITS
    return "".join(letters[min(len(letters) - 1, int(len(letters) * share))] for share in shares)
