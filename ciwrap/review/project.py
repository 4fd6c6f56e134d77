"""A project as everything sees it that reads, makes or reviews goldens."""

from __future__ import annotations

import contextlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import CiwrapError, UsageError
from ciwrap.golden.places import Place
from ciwrap.model.commands import ProjectOptions
from ciwrap.structs import Struct
from ciwrap.work_folder import WORK_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.config import Check, Config
    from ciwrap.golden.store import GoldenStore
    from ciwrap.golden.stores import GoldenStores
    from ciwrap.review.pending_goldens import PendingGoldens


def root_without_config(here: Path) -> Path:
    """The folder of a project without a ciwrap.yaml: where work was done, or the repository's."""
    for folder in (here, *here.parents):
        if (folder / WORK_DIR).is_dir() or (folder / ".git").exists():
            return folder
    return here


class Project(Struct, frozen=True, kw_only=True, dict=True):
    """A folder with goldens.

    root: the folder of ciwrap.yaml; without one, of the repository. config: None without a
    ciwrap.yaml. checks: those of the configuration that are asked for. pending_dir: where goldens
    wait to be accepted. keeps_pending: as is_kept of a `GoldenStore`. is_own: whether they were
    made here, and not in somebody else's run. options: what a command has to be told to work on
    this very project.
    """

    root: Path
    golden_dir: Path
    goldens: GoldenStores
    pending_dir: Path
    keeps_pending: bool = False
    config: Config | None = None
    checks: tuple[Check, ...] = ()
    is_own: bool = True
    options: ProjectOptions = ProjectOptions()

    @property
    def own_config(self) -> Config:
        """The configuration of a project that has one."""
        assert self.config is not None
        return self.config

    @cached_property
    def pending(self) -> PendingGoldens:
        """The goldens that wait to be accepted. Most commands never ask for them."""
        from ciwrap.review.pending_goldens import PendingGoldens

        return PendingGoldens(self.pending_dir, is_kept=self.keeps_pending)

    @contextlib.contextmanager
    def indexed(self) -> Iterator[None]:
        """Brings the list of what waits up to date when the block ends, also if an error ends it.

        Raises WriteFailedError, LockBusyError.
        """
        try:
            yield
        except CiwrapError:
            # The list is made anew each time; what ended the block is to be told.
            with contextlib.suppress(CiwrapError):
                self.pending.write_index(self.golden_dir_text)
            raise
        self.pending.write_index(self.golden_dir_text)

    @property
    def store(self) -> GoldenStore:
        """The goldens of the configuration's checks."""
        return self.goldens.at(Place("", ""))

    @property
    def golden_dir_text(self) -> str:
        """The golden folder relative to the project's, with '/'.

        Raises UsageError unless it lies in the project's, links resolved: what somebody else has
        made is never accepted into another place.
        """
        folder, root = self.golden_dir.resolve(), self.root.resolve()
        if not folder.is_relative_to(root):
            raise UsageError(
                f"the golden folder must lie in the project's, {self.root}", file=self.golden_dir
            )
        as_given = Path(os.path.relpath(self.golden_dir, self.root))
        is_below = os.pardir not in as_given.parts
        return (as_given if is_below else folder.relative_to(root)).as_posix()
