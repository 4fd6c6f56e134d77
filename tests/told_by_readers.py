"""All that a reader tells of a file, which is all that two runs are compared by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.formats.find_outputs import reader_named, reader_of_suffix

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader


def reader_for(path: Path) -> Reader:
    """The reader that a file's suffix names."""
    found = reader_of_suffix(path.suffix)
    assert found is not None, path
    return found


def told(path: Path, reader: str | None = None) -> dict[str, Any]:
    """All that a reader tells of a file, by variable."""
    chosen = reader_for(path) if reader is None else reader_named(reader)
    with chosen.open(path) as source:
        return {
            one.name: one.fault
            or (
                one.dtype,
                one.shape,
                one.labels,
                source.read(one.name, 0, one.element_count).tolist(),
            )
            for one in source.variables
        }
