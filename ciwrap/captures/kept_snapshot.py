"""The snapshot of an environment that a capture carries, as bytes that it knows nothing of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from ciwrap.captures.container import CaptureFile, Section

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ciwrap.captures.container_writer import CaptureWriter

Identity = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class KeptSnapshot(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which snapshot a capture has, and where its JSON lies, compressed."""

    identity: Identity
    section: Section


class GivenSnapshot(msgspec.Struct, frozen=True):
    """A snapshot to be put into a capture. text: its JSON."""

    identity: Identity
    text: bytes


def appended(
    writer: CaptureWriter, given: GivenSnapshot | None, earlier: KeptSnapshot | None
) -> KeptSnapshot | None:
    """Where a snapshot lies in a capture from now on; the earlier one where none is given."""
    if given is None or (earlier is not None and earlier.identity == given.identity):
        return earlier
    return KeptSnapshot(given.identity, writer.append_packed(given.text))


def snapshot_text(
    path: Path, open_capture: Callable[[Path], CaptureFile] = CaptureFile
) -> GivenSnapshot | None:
    """The snapshot of what an opener finds there, a capture or a recorded run; None if it has none.

    Raises the errors of `CaptureFile`, and CorruptCaptureError.
    """
    from ciwrap.captures.index_codec import read_index

    with open_capture(path) as capture:
        kept = read_index(capture).header.snapshot
        if kept is None:
            return None
        return GivenSnapshot(kept.identity, capture.packed_section(kept.section))
