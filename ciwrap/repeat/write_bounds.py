"""The suggested bounds as a change of ciwrap.yaml: shown first, then written."""

from __future__ import annotations

import difflib
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ciwrap.config.nodes import read_text
from ciwrap.model.repeat_result import BoundFit
from ciwrap.repeat.edit_config import BoundEdit, IterationEdit, edited
from ciwrap.report.repeat_words import bound_reason
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.model.repeat_result import RepeatResult


class ConfigChange(Struct, frozen=True):
    """The new text of a configuration, and what is different in it, as a unified diff."""

    text: str
    diff: tuple[str, ...]


def changed_config(result: RepeatResult, path: Path) -> ConfigChange | None:
    """The configuration with the suggested bounds where the present ones do not fit; None if there
    are none.

    Everything must have been compared: what a run would have shown is not known. Raises ConfigError
    as `edited` does.
    """
    assert not result.has_failed
    today = datetime.now(timezone.utc).date().isoformat()
    edits = [
        BoundEdit(
            one.check,
            one.name,
            one.suggested_bound.bound,
            f"{bound_reason(one.suggested_bound)}, {today}",
        )
        for one in result.variables
        if one.suggested_bound is not None
        and one.present_fit is not BoundFit.FITS
        and one.suggested_bound.bound != one.present_bound
    ]
    iterations = _iterations(result, today)
    text = read_text(path)
    new = edited(text, edits, path, iterations)
    if new == text:
        return None
    lines = difflib.unified_diff(
        text.splitlines(), new.splitlines(), path.name, f"{path.name} (new)", n=2, lineterm=""
    )
    return ConfigChange(new, tuple(lines))


def _iterations(result: RepeatResult, today: str) -> list[IterationEdit]:
    """Of each check with variables that grow, the last iteration that is good for all of them;
    nothing where all that was compared is good: what a longer run would show is not known.
    """
    until: dict[str, int] = {}
    for one in result.variables:
        if one.compare_until is not None and not one.is_compared_to_the_end:
            until[one.check] = min(until.get(one.check, one.compare_until), one.compare_until)
    return [
        IterationEdit(check, last, f"three digits are left here, {today}")
        for check, last in until.items()
    ]
