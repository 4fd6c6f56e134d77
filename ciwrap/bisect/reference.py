"""What every commit of a search is compared with: the configuration and the goldens of one commit.

Both change over time, so they are taken from the good commit and kept outside of the working tree.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.config.loading import find_config, load_config, load_text
from ciwrap.errors import ConfigMissingError, RepositoryError, UsageError
from ciwrap.repository import Repository, place_below
from ciwrap.structs import Struct
from ciwrap.worktrees import revision_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ciwrap.config import Config

_REMEDY = "--config FILE and --golden-dir DIR say which ones to take instead"


class Reference(Struct, frozen=True):
    """config: as if it stood in the working tree. golden_dir: where the goldens are; golden_text:
    where they are from, for people.
    """

    config: Config
    golden_dir: Path
    golden_text: str


@contextlib.contextmanager
def reference_of(
    repository: Repository, commit: str, config_path: str | None, golden_dir: str | None
) -> Iterator[Reference]:
    """The configuration and the goldens of a commit, for as long as the block lasts.

    config_path, golden_dir: what is taken as it is now, instead of what the commit has. Raises
    UsageError if the commit has none, ConfigError.
    """
    with (
        revision_folder(repository, commit, is_empty=True) as folder,
        tempfile.TemporaryDirectory(prefix="ciwrap-") as copies,
    ):
        then = _Then(repository, Repository(folder), commit)
        config = then.config() if config_path is None else load_config(Path(config_path))
        if golden_dir is None:
            goldens = then.goldens(config)
            place = goldens.relative_to(folder).as_posix()
            yield Reference(config, goldens, f"{commit[:10]}:{place}")
        else:
            # It may lie in the working tree, where it changes with every commit.
            copy = Path(copies) / "golden"
            shutil.copytree(golden_dir, copy)
            yield Reference(config, copy, golden_dir)


class _Then(Struct, frozen=True):
    """What a commit holds. now: the repository with its working tree; then: another one."""

    now: Repository
    then: Repository
    commit: str

    def config(self) -> Config:
        place = self._place(find_config(Path.cwd()))
        text = self._text(place)
        if text is None:
            raise ConfigMissingError(f"commit {self.commit[:10]} has no {place}", remedy=_REMEDY)
        return load_text(text, self.now.top / place, lambda path: self._text(self._place(path)))

    def _text(self, place: str) -> str | None:
        """A file as the commit has it; None if it has none."""
        if not self._check_out(place):
            return None
        return (self.then.top / place).read_text(encoding="utf-8-sig")

    def goldens(self, config: Config) -> Path:
        place = self._place(config.golden_dir)
        if not self._check_out(place):
            raise UsageError(f"commit {self.commit[:10]} has no goldens in {place}", remedy=_REMEDY)
        return self.then.top / place

    def _place(self, path: Path) -> str:
        """Where a file is in the repository. Raises UsageError if it is not in it."""
        place = place_below(path, self.now.top)
        if place is None:
            raise UsageError(
                f"this is not in the repository {self.now.top}", file=path, remedy=_REMEDY
            )
        return place

    def _check_out(self, place: str) -> bool:
        """Whether the commit has that file or folder."""
        try:
            self.then.git("checkout", "--quiet", self.commit, "--", f":(literal){place}")
        except RepositoryError:
            return False
        return True
