"""Changes of what `ciwrap time` and `ciwrap repeat` ask, which are checks where they fail a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.config.settings import CommandSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.config import Config


def timing_changes(old: Config, new: Config) -> Iterator[tuple[str, bool]]:
    """What differs, in words, and whether less is asked. How often runs are repeated is no change
    of what is asked.
    """
    was, now = old.timing, new.timing
    for key in ("command", "build"):
        before, after = (_text(one, key) for one in (old, new))
        if before != after:
            yield f"timing: {key}: {before} -> {after}", False
    if was.gate != now.gate:
        yield f"timing: a slower run {'fails' if now.gate else 'is only told of'} now", was.gate
    if was.margin != now.margin:
        yield f"timing: margin: {was.margin:g} -> {now.margin:g}", now.margin > was.margin
    if was.confidence != now.confidence:
        sides = [f"{one.confidence_used:g}" for one in (was, now)]
        is_surer = now.confidence_used > was.confidence_used
        if sides[0] != sides[1]:
            yield f"timing: confidence: {sides[0]} -> {sides[1]}", is_surer


def repeat_changes(old: Config, new: Config) -> Iterator[tuple[str, bool]]:
    """As `timing_changes`, of what runs are compared with."""
    was, now = old.repeat.reference, new.repeat.reference
    if was != now:
        yield f"repeat: reference: {was} -> {now}", was == "golden"


def _text(config: Config, key: str) -> str:
    words = getattr(config.timing, key)
    return "none" if words is None else CommandSettings(words, config.root).text
