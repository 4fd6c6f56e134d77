"""How a comparison works: what the core may use, whom it tells; and how much it has read."""

from __future__ import annotations

from ciwrap.progress import NO_PROGRESS, Progress
from ciwrap.structs import Struct
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources


class Work(Struct):
    """The first argument of everything that compares. Not for several threads at once.

    engine: that read files ("io_uring", "pread"), None as long as none did. data_bytes_read: of
    both sides' data. with_details: whether results of variables that differ say what stands out;
    with_pictures: whether they have what reports draw of it, too.
    """

    resources: Resources = DEFAULT_RESOURCES
    progress: Progress = NO_PROGRESS
    engine: str | None = None
    data_bytes_read: int = 0
    with_details: bool = True
    with_pictures: bool = True
