"""Where the outputs of each run go, so that no run is ever compared with itself.

Before the first run the outputs that are there are set aside; after each run what it wrote is moved
to a folder of its own. At the end what was set aside is put back, by the next call if this one was
killed. Whatever has come in its place by then is moved away, not deleted: it may be newer. A file
is whole in one of both places at any time, also between file systems and on a full disk.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.compare.ensemble_runs import each_run
from ciwrap.compare.outputs import outputs_of
from ciwrap.errors import NotComparableError, UsageError, WriteFailedError
from ciwrap.golden.lock import writer_lock
from ciwrap.interrupts import later_interrupts
from ciwrap.patterns import PathPattern
from ciwrap.structs import replace
from ciwrap.work_folder import WORK_DIR, keep_out_of_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from ciwrap.config import Check

_ASIDE = "before"
_INPUTS = "inputs"
_FOUND = "found"
_MOVING = ".ciwrap-moving"  # what is not yet whole where it is moved to


class RunFolders:
    """The folders of runs of a project, one beside the other; a context manager.

    root: the project's folder, which all outputs lie in. keeps: whether the folders of runs stay,
    until the first run of the next call is over. prefix: of the folders' names; those of other
    names are left alone. by_ensemble: whether a check that has an ensemble means the folders of its
    runs, and not what the command writes once more each time. One process at a time has them:
    raises LockBusyError for a second one, and WriteFailedError.
    """

    def __init__(
        self, root: Path, *, keeps: bool = False, prefix: str = "run", by_ensemble: bool = False
    ) -> None:
        self._root = root
        self._keeps = keeps
        self._prefix = prefix
        self._by_ensemble = by_ensemble
        self.folder = root / WORK_DIR / "repeat"
        self.notes: list[str] = []  # what to tell of an earlier call that was killed
        self._is_first_taken = False
        self._begun: list[Check] = []  # whose outputs, if there are any, are of a run under way
        # Folders that were not there before the first run, and what was in those that were.
        self._made: set[Path] = set()
        self._known_runs: set[Path] = set()  # folders of an ensemble's runs that were there
        self._known: dict[Path, set[Path]] = {}
        self._lock = writer_lock(self.folder, 0, doing="running commands")

    def __enter__(self) -> RunFolders:
        keep_out_of_git(self._root / WORK_DIR)
        self.folder.mkdir(exist_ok=True)
        self._lock.__enter__()
        try:
            self._recover()
            self._drop_all(_INPUTS)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with later_interrupts():  # a second Ctrl-C, of one who does not want to wait
                self._end()
        finally:
            self._lock.__exit__(kind, error, trace)
            for empty in (self.folder, self.folder.parent):
                with suppress(OSError):
                    empty.rmdir()

    def _end(self) -> None:
        """Removes what a run under way has written, and puts back what was there."""
        for check in self._runs(self._begun):
            for path in _files_of(check):
                _remove(path)
                self._clear_above(path, check)
            self._clear_new(check)
        self._put_back()
        self._drop_all(_INPUTS)
        if self._is_first_taken and not self._keeps:
            self._drop_all(self._prefix)

    def set_aside(self, checks: Sequence[Check]) -> None:
        """Moves outputs that are there already out of the way of a run.

        Raises UsageError for outputs outside of the project's folder.
        """
        runs = self._runs(checks)
        self._known_runs.update(run.root for run in runs)
        for check in runs:
            for base in _bases(check):
                if not base.exists():
                    self._made.add(base)
                elif base not in self._known:
                    self._known[base] = _folders_in(base, check.root)
        for check in runs:
            for path in _files_of(check):
                target = self._target(_ASIDE, path)
                if os.path.lexists(target):
                    _remove(path)
                else:
                    _move(path, target)
                self._clear_above(path, check)
        self._begun += checks

    def take(self, number: int, checks: Sequence[Check]) -> list[Check]:
        """Moves what a run has written to its own folder; the checks as they are found there."""
        if not self._is_first_taken:
            # Not before: runs that were kept are not lost to a call that runs nothing.
            self._drop_all(self._prefix)
            self._is_first_taken = True
        # All are looked for before any is moved: a file may be in the outputs of two checks.
        runs = self._runs(checks)
        found = [(check, path) for check in runs for path in _files_of(check)]
        for check, path in found:
            _move(path, self._target(self.run_folder(number).name, path), follows_links=True)
            self._clear_above(path, check)
        for check in runs:
            self._clear_new(check)
        self._begun = [check for check in self._begun if check not in checks]
        return [replace(check, root=self.run_folder(number)) for check in checks]

    def _runs(self, checks: Iterable[Check]) -> list[Check]:
        """The checks, or of each that has an ensemble one for each of the runs that are there."""
        return [run for one in checks for run in (each_run(one) if self._by_ensemble else (one,))]

    def run_folder(self, number: int) -> Path:
        """Where the outputs of a run are."""
        return self.folder / f"{self._prefix}_{number}"

    def inputs_folder(self, number: int) -> Path:
        """Where the perturbed inputs of a run lie."""
        return self.folder / f"{_INPUTS}_{number}"

    def drop_inputs(self, number: int) -> None:
        shutil.rmtree(self.inputs_folder(number), ignore_errors=True)

    def drop(self, number: int) -> None:
        """Removes a run's outputs for good."""
        shutil.rmtree(self.run_folder(number), ignore_errors=True)

    def _drop_all(self, prefix: str) -> None:
        for old in self.folder.glob(f"{prefix}_*"):
            shutil.rmtree(old, ignore_errors=True)

    def _target(self, name: str, path: Path) -> Path:
        try:
            relative = path.absolute().relative_to(self._root.absolute())
        except ValueError:
            relative = Path("..")
        if ".." in relative.parts:
            raise UsageError(
                f"{path}: outputs outside of the configuration's folder cannot be kept apart",
                remedy="write them below it, or compare runs that are there with --runs",
            )
        return self.folder / name / relative

    def _clear_above(self, path: Path, check: Check) -> None:
        """Removes the folders of a file that was moved, as far as they are empty now, up to those
        that outputs are looked for in.
        """
        kept = {*_bases(check), check.root}
        for folder in path.parents:
            if folder in kept or not _is_removed(folder):
                return

    def _clear_new(self, check: Check) -> None:
        """Removes empty folders that a run has made."""
        for base in _bases(check):
            known = self._known.get(base, set())
            for folder in sorted(_folders_in(base, check.root) - known, reverse=True):
                _is_removed(folder)
            if base in self._made:
                _is_removed(base)
        if check.root != self._root and check.root not in self._known_runs:
            # Else the next one of an ensemble's runs would be there, without outputs.
            for folder in (*sorted(_folders_in(check.root, self._root), reverse=True), check.root):
                _is_removed(folder)

    def _recover(self) -> None:
        """Puts back what a call that was killed had set aside."""
        aside = self._set_aside()
        in_its_place = [path for path in aside if os.path.lexists(self._root / path)]
        found = self._free_folder(_FOUND)
        for path in in_its_place:
            _move(self._root / path, found / path)
        self._put_back()
        if aside:
            moved = f"; what had come in its place is in {found}"
            self.notes.append(
                "an earlier call was killed, and the outputs that it had set aside are back"
                + (moved if in_its_place else "")
            )

    def _free_folder(self, name: str) -> Path:
        """One that is not there: an earlier call may have been killed before it told of its own."""
        names = chain((name,), (f"{name}_{number}" for number in count(2)))
        return next(path for path in map(self.folder.joinpath, names) if not path.exists())

    def _put_back(self) -> None:
        aside = self.folder / _ASIDE
        for path in self._set_aside():
            _remove(self._root / path)
            _move(aside / path, self._root / path)
        shutil.rmtree(aside, ignore_errors=True)

    def _set_aside(self) -> list[Path]:
        """The files that are set aside, relative to the project."""
        aside = self.folder / _ASIDE
        files = (path for path in aside.rglob("*") if not path.is_dir() or path.is_symlink())
        found = sorted(path.relative_to(aside) for path in files)
        return [path for path in found if _MOVING not in path.parts]


def _bases(check: Check) -> Iterator[Path]:
    """The folders that a check's outputs are looked for in."""
    for text in check.outputs:
        path = check.root / text
        pattern = PathPattern(text)
        if path.is_dir() or (pattern.is_literal and not path.suffix):
            yield path
        else:
            yield check.root / pattern.fixed_folder


def _folders_in(base: Path, root: Path) -> set[Path]:
    """The folders below one that outputs are looked for in; none in the project's own folder, which
    has others, too, and none that is hidden.
    """
    if base.absolute() == root.absolute() or not base.is_dir():
        return set()
    inside = (path for path in base.rglob("*") if path.is_dir() and not path.is_symlink())
    return {
        path
        for path in inside
        if not any(part.startswith(".") for part in path.relative_to(base).parts)
    }


def _is_removed(folder: Path) -> bool:
    """Removes a folder if it is empty; whether it was."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _files_of(check: Check) -> Iterable[Path]:
    """All that a check's outputs are, as far as they are there; what is missing is told of later.

    Stores of many files are folders. Files that no reader knows are among them: they are told of.
    """
    try:
        found = outputs_of(check)
    except NotComparableError:
        return []
    beside = [one for file in found.files for one in file.reader.companions(file.path)]
    return dict.fromkeys([*(file.path for file in found.files), *found.unmatched, *beside])


def _move(path: Path, target: Path, *, follows_links: bool = False) -> None:
    """Moves a file or a store. follows_links: of a link, what it points to; else the link itself,
    which is to come back as it was.
    """
    if not (path.exists() if follows_links else os.path.lexists(path)):
        return
    is_linked = follows_links and path.is_symlink()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_linked or not _is_renamed(path, target):
            _copy(path, target, follows_links=is_linked)
            _remove(path)
    except OSError as error:
        raise WriteFailedError(
            f"could not be moved to {target.parent}: {error.strerror or error}", file=path
        ) from error


def _is_renamed(path: Path, target: Path) -> bool:
    """Whether a name was all that had to change. Raises OSError."""
    try:
        path.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _copy(path: Path, target: Path, *, follows_links: bool) -> None:
    """Nothing has the target's name before it is all there. Raises OSError."""
    part = target.with_name(_MOVING)
    try:
        _remove(part)
        if path.is_dir() and (follows_links or not path.is_symlink()):
            shutil.copytree(path, part, symlinks=not follows_links)
        else:
            shutil.copy2(path, part, follow_symlinks=follows_links)
        part.rename(target)
    except BaseException:
        with suppress(OSError):
            _remove(part)
        raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
