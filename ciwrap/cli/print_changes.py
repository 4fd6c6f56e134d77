"""What accepting changed, for the terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ciwrap.report.console import Text
from ciwrap.report.sides import GOLDEN_AND_NEW
from ciwrap.report.text import bytes_text, safe_name, safe_text
from ciwrap.report.wording import arrays_words, detail_lines, headline, used_words
from ciwrap.review.accept_document import change_word
from ciwrap.review.golden_change import GoldenChange, Status, VariableChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.report.console import Console

_ROOT_DIGITS = 12
_MOST_VARIABLES = 12
_STYLES = {
    Status.CREATED: "bold green",
    Status.REPLACED: "bold yellow",
    Status.SAME: "bold",
    Status.KEPT: "bold",
}


DRY_RUN = Text("dry run: nothing was written", style="bold")


def print_changes(
    changes: Sequence[GoldenChange], console: Console, *, dry_run: bool, verbose: bool
) -> None:
    """Prints what became of each golden; of variables only those that really changed."""
    for change in changes:
        _print_golden(change, console, dry_run, verbose)


def _print_golden(golden: GoldenChange, console: Console, dry_run: bool, verbose: bool) -> None:
    status = golden.status
    head = Text()
    word = f"would be {status.value}" if dry_run and golden.needs_writing else status.value
    head.append(word, style=_STYLES[status])
    head.append(f"  {safe_name(golden.check)}  ({safe_text(golden.path)})")
    console.print(head)
    for warning in golden.warnings:
        console.print(Text(f"  warning: {safe_text(warning)}", style="bold yellow"))
    if status is Status.SAME:
        console.print(Text("  identical to the existing golden, byte for byte"))
        return
    if status is Status.KEPT:
        used = used_words(golden.largest_bound_share)
        console.print(
            Text(
                f"  every variable matches the golden{used}; it stays as it is"
                " (--force replaces it all the same)"
            )
        )
        return
    if golden.old.problem is not None:
        console.print(Text(f"  instead of one that cannot be read: {golden.old.problem}"))
    old = golden.old.golden
    old_root = None if old is None else old.root[:_ROOT_DIGITS]
    console.print(Text(f"  root {_arrow(old_root, golden.root[:_ROOT_DIGITS])}"))
    old_size = None if old is None else bytes_text(old.byte_count)
    console.print(Text(f"  size {_arrow(old_size, bytes_text(golden.byte_count))}"))
    _print_variables(golden, console, verbose)


def _arrow(old: str | None, new: str) -> str:
    return new if old is None or old == new else f"{old} -> {new}"


def _print_variables(golden: GoldenChange, console: Console, verbose: bool) -> None:
    quiet = [one for one in golden.changes if change_word(one) in ("equal", "within")]
    loud = [one for one in golden.changes if one not in quiet]
    if golden.old.golden is None:
        _print_first(golden, console, verbose)
        return
    shown = loud if verbose else loud[:_MOST_VARIABLES]
    for change in shown:
        _print_variable(change, console)
    if len(loud) > len(shown):
        console.print(Text(f"  ... and {len(loud) - len(shown)} more (--verbose shows all)"))
    if quiet:
        shares = [share for one in quiet if (share := one.used_share) is not None]
        note = used_words(max(shares, default=None))
        console.print(Text(f"  {_arrays(quiet)} within the bound{note}"))


def _print_first(golden: GoldenChange, console: Console, verbose: bool) -> None:
    made = [change for change in golden.changes if change.new is not None]
    kinds = Counter(change.new.evidence for change in made if change.new is not None)
    evidence = ", ".join(f"{count} with {words}" for words, count in sorted(kinds.items()))
    console.print(Text(f"  {_arrays(made)}: {evidence}"))
    for change in golden.changes if verbose else ():
        _print_variable(change, console)


def _arrays(changes: Sequence[VariableChange]) -> str:
    return arrays_words(len(changes), len({one.identity.name for one in changes}))


def _print_variable(change: VariableChange, console: Console) -> None:
    word = change_word(change)
    line = Text("  ")
    line.append(word, style="bold")
    line.append(f"  {safe_name(change.identity.text)}")
    old, new = change.old, change.new
    if new is not None and old is None:
        shape = "x".join(map(str, new.shape)) or "a single number"
        line.append(f": {new.dtype} {shape}, {new.bound}, evidence {new.evidence}")
    elif change.moved is not None:
        line.append(f": {headline(change.moved)}")
    elif old is not None and new is not None:
        line.append(": how far it moved is not known, the goldens do not keep the values")
    console.print(line)
    if old is not None and new is not None:
        for name in ("dtype", "shape", "bound", "evidence", "labels"):
            before, after = getattr(old, name), getattr(new, name)
            if before != after:
                wider = "  (WIDER)" if name == "bound" and change.is_bound_wider else ""
                console.print(Text(f"    {name} {safe_text(before)} -> {safe_text(after)}{wider}"))
    if change.moved is not None:
        for detail in detail_lines(change.moved, GOLDEN_AND_NEW):
            console.print(Text(f"    {detail}"))
