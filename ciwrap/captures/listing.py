"""The files of a run by checkpoint, and where its capture lies."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.captures.index import key_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ciwrap.captures.index import CheckpointKey
    from ciwrap.readers.layout import FoundOutputs, OutputFile

DEFAULT_INSIDE = ".ciwrap.tree"


def by_checkpoint(found: FoundOutputs) -> dict[CheckpointKey, list[OutputFile]]:
    """The files by (iteration, rank), in that order."""
    groups: dict[CheckpointKey, list[OutputFile]] = {}
    for file in found.files:
        groups.setdefault((file.iteration, file.rank), []).append(file)
    return {key: groups[key] for key in sorted(groups, key=key_order)}


def capture_paths(run: Path) -> tuple[Path, ...]:
    """Where a run's capture is looked for: inside, then beside."""
    return (
        (run / DEFAULT_INSIDE, run.with_name(run.name + ".tree"))
        if run.name
        else (run / DEFAULT_INSIDE,)
    )


def sizes_of(files: Iterable[OutputFile]) -> Iterator[int]:
    """What the files hold, as far as they can be asked."""
    for file in files:
        with contextlib.suppress(OSError):
            yield file.path.stat().st_size
