"""Runs the configured command several times, each time on its own, and measures what varies.

Before the first run the outputs that are there are set aside; after each run what it wrote is moved
to a folder of its own, so no run is compared with itself. At the end what was set aside is put
back, by the next call if this one was killed. Whatever has come in its place by then is moved away,
not deleted: it may be newer. A file is whole in one of both places at any time, also between file
systems and on a full disk.

For programs that take no seed, numbers of input files are changed in copies: each x becomes
x (1 + a u), with u even between -1 and 1. Zeros, fill values that HDF5 and NetCDF-4 files name, and
what would become infinite stay as they are.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from functools import partial
from itertools import chain, count
from pathlib import Path, PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.base.errors import NotComparableError, OutputMissingError, UsageError, WriteFailedError
from ciwrap.base.files import WORK_DIR, keep_out_of_git
from ciwrap.base.late import numpy as np
from ciwrap.base.patterns import PathPattern
from ciwrap.base.processes import ends_are_interrupts, later_interrupts
from ciwrap.base.words import nearest
from ciwrap.check.check import check_catalog
from ciwrap.check.two_sides import Work
from ciwrap.explain.across import explainer
from ciwrap.formats.catalog import Catalog, Rules
from ciwrap.formats.find_outputs import FoundOutputs, find_in, outputs_within
from ciwrap.formats.reader import library
from ciwrap.golden.places import writer_lock
from ciwrap.golden.store import GoldenStore
from ciwrap.golden.trees import DEFAULT_RESOURCES, Resources
from ciwrap.model import CheckResult, CommandOutcome, VariableSettings
from ciwrap.model.repeat_result import RepeatedRun
from ciwrap.project.outputs import arrangement_of, each_run, files_of, natural, outputs_of
from ciwrap.project.run_command import (
    all_cores_but_one,
    ending_of,
    failure_of,
    last_words,
    run_command,
    together,
)
from ciwrap.project.settings import (
    Check,
    CommandSettings,
    Config,
    FactorSettings,
    LevelSettings,
    PerturbSettings,
    RunPlace,
)
from ciwrap.report.text import plural
from ciwrap.snapshot.difference import environment_of_program, note_outputs
from ciwrap.snapshot.take import ProgramWatcher, usable_cpus
from ciwrap.statistics.factors import LEAST_RUNS_PER_CELL, Cell, Design, cells_of
from ciwrap.studies.repeat.costs import used_by_all
from ciwrap.studies.repeat.measure import Measurer, RunOutputs
from ciwrap.studies.repeat.summary import names_that_vary

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    """All that a check's outputs are, as far as they are there; what is missing is reported later.

    Stores of many files are folders. Files that no reader knows are among them: they are reported.
    """
    try:
        found = outputs_of(check)
    except NotComparableError:
        return []
    beside = [one for file in found.files for one in file.companions]
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


# As large as rounding at most, and large enough to be seen by it.
_DOUBLE, _SINGLE = 1e-14, 1e-6
_BLOCK = 1 << 20
_HDF5_SUFFIXES = (".h5", ".hdf5", ".nc", ".nc4")
_FILL_NAMES = ("_FillValue", "missing_value")
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def write_inputs(root: Path, settings: PerturbSettings, target: Path, seed: int | None) -> None:
    """Copies the files that the settings name into a folder, at the same places below it.

    root: the configuration's folder. seed: None for copies as they are. Raises OutputMissingError
    where there are no files, UsageError for one that cannot be perturbed, and if none of its
    numbers changes.
    """
    generator = None if seed is None else np.random.default_rng(seed)
    for path in _files(root, settings.files):
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        if generator is not None and not _perturb(copy, path, settings.relative, generator):
            raise UsageError(
                "no number in it is changed by the perturbation",
                file=path,
                remedy="leave it out of 'perturb', or give a larger 'relative'",
            )


def _files(root: Path, patterns: Sequence[str]) -> list[Path]:
    found = []
    for pattern in patterns:
        if pattern.startswith("/") or ".." in PurePath(pattern).parts:
            # Its copy would lie outside of the run's folder, perhaps over a file of somebody's.
            raise UsageError(
                f"'perturb' names {pattern!r}, which lies outside the configuration's folder",
                file=root,
                remedy="put the files below it, or link them there",
            )
        matches = sorted(path for path in root.glob(pattern) if path.is_file())
        if not matches:
            raise OutputMissingError(
                f"there is no file {pattern!r} to perturb", file=root, remedy="fix 'perturb'"
            )
        found += matches
    return list(dict.fromkeys(found))


def _perturb(copy: Path, path: Path, relative: float | None, noise: np.random.Generator) -> bool:
    """Whether a number of the copy has changed."""
    if copy.suffix == ".npy":
        try:
            array = np.load(copy, mmap_mode="r+", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise NotComparableError(f"is not a .npy file: {error}", file=path) from None
        flat = array.reshape(-1, order="A") if array.flags.forc else array.reshape(-1)
        changed = _change(flat, relative, noise)
        array.flush()
        return changed
    if copy.suffix in _HDF5_SUFFIXES:
        with copy.open("rb") as stream:
            is_hdf5 = stream.read(len(_HDF5_MAGIC)) == _HDF5_MAGIC
        if is_hdf5:
            return _perturb_hdf5(copy, path, relative, noise)
    raise UsageError(
        "cannot be perturbed",
        file=path,
        remedy="only .npy, HDF5 and NetCDF-4 files can; let the program perturb, by {seed}",
    )


def _perturb_hdf5(
    copy: Path, path: Path, relative: float | None, noise: np.random.Generator
) -> bool:
    h5py = library("h5py", file=path)
    changed = False
    try:
        with h5py.File(copy, "r+") as file:
            for dataset in _datasets(h5py, file):
                fills = _fills(dataset)
                for rows in _rows(dataset.shape):
                    values = np.asarray(dataset[rows])
                    changed |= _change(values.reshape(-1), relative, noise, fills)
                    dataset[rows] = values
    except OSError as error:
        raise NotComparableError(f"cannot be read: {error}", file=path) from error
    return changed


def _datasets(h5py: Any, file: Any) -> list[Any]:
    found: list[Any] = []

    def visit(_: str, item: Any) -> None:
        # Coordinates of dimensions say where values are, and are none themselves.
        if isinstance(item, h5py.Dataset) and item.size and not item.is_scale:
            found.append(item)

    file.visititems(visit)
    return found


def _fills(dataset: Any) -> list[Any]:
    """The values that stand for missing ones."""
    named = [dataset.attrs[name] for name in _FILL_NAMES if name in dataset.attrs]
    return [fill for one in named for fill in np.ravel(one) if np.asarray(fill).dtype.kind in "fc"]


def _rows(shape: tuple[int, ...]) -> Iterator[Any]:
    """Selections of so many rows that each is of a bounded size, if a single row is."""
    if not shape:
        yield ()
        return
    step = max(1, _BLOCK // max(1, int(np.prod(shape[1:]))))
    for first in range(0, shape[0], step):
        yield slice(first, min(first + step, shape[0]))


def _change(
    flat: NDArray[Any],
    relative: float | None,
    noise: np.random.Generator,
    fills: Sequence[Any] = (),
) -> bool:
    """Perturbs in place, block by block; whether anything is different afterwards."""
    if flat.dtype.kind not in "fc":
        return False
    single = flat.dtype.itemsize <= (4 if flat.dtype.kind == "f" else 8)
    size = relative if relative is not None else _SINGLE if single else _DOUBLE
    changed = False
    for first in range(0, flat.size, _BLOCK):
        before = flat[first : first + _BLOCK].copy()
        with np.errstate(invalid="ignore", over="ignore"):
            after = before * (1 + size * noise.uniform(-1, 1, before.size))
            after = after.astype(flat.dtype)
        stays = ~np.isfinite(after) | np.isin(before, fills)
        after[stays] = before[stays]
        flat[first : first + _BLOCK] = after
        changed |= bool(np.any(after[~stays] != before[~stays]))
    return changed


# A run that takes so many times the longest one before it, and at least a minute, never ends.
_PATIENCE = 20.0
_LEAST_SECONDS = 60.0


class Repetition(Struct):
    """All runs, and what was measured of each check. notes: what to tell besides. environment:
    what the first run ran with, where it was looked at.
    """

    runs: list[RepeatedRun] = field(default_factory=list)
    measurers: list[Measurer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    environment: Mapping[str, str] | None = None


class HowToRepeat(Struct, frozen=True):
    """names: of the checks, in order. perturb: the inputs to perturb for all runs but the first.
    keeps: whether outputs of all runs stay. is_shown: whether
    the command's output goes to stderr. concurrent: how many runs at a time. keeps_host: whether it
    is noted when each run began. golden: where goldens are, if these are the reference. on_run: is
    called with every run that is over. watchers: that look at runs of these numbers, instead of one
    of their own. root: the project's folder, if runs are made in others, too.
    """

    names: tuple[str, ...]
    perturb: PerturbSettings | None = None
    keeps: bool = False
    is_shown: bool = False
    concurrent: int = 1
    keeps_host: bool = False
    golden: GoldenStore | None = None
    resources: Resources = DEFAULT_RESOURCES
    on_run: Callable[[RepeatedRun], None] = lambda run: None  # noqa: ARG005
    watchers: Mapping[int, ProgramWatcher] = field(default_factory=dict)
    root: Path | None = None


def repeat_command(
    config_of: Callable[[RunPlace], Config], plan: Plan, how: HowToRepeat
) -> Repetition:
    """Makes all runs of a plan, one after the other or several at a time.

    config_of: what the configuration says of a run. Raises CommandFailedError or another
    NotComparableError if already the first run gives nothing to compare with, UsageError; a later
    run that fails is reported in its record, and the others are made all the same.
    """
    first = config_of(RunPlace(1, plan.runs[0].seed))
    _refuse_idle(first, how)
    with ends_are_interrupts(), ExitStack() as stack:
        return _Repeater(config_of, plan, how, stack, how.root or first.root).run_all()


class _Ready(Struct, frozen=True):
    """A run that can begin: what the configuration says of it."""

    run: PlannedRun
    commands: tuple[CommandSettings, ...]
    checks: tuple[Check, ...]
    watcher: ProgramWatcher | None
    folders: RunFolders
    began_at: str | None


class _Repeater:
    """Makes the runs of one plan."""

    def __init__(
        self,
        config_of: Callable[[RunPlace], Config],
        plan: Plan,
        how: HowToRepeat,
        stack: ExitStack,
        root: Path,
    ) -> None:
        self._root = root
        self._config_of = config_of
        self._plan = plan
        self._how = how
        self._stack = stack
        self._folders: dict[Path, RunFolders] = {}  # by the folder that runs are made in
        self._found = Repetition()

    def run_all(self) -> Repetition:
        runs, step = self._plan.runs, self._how.concurrent
        for first in range(0, len(runs), step):
            batch = [self._prepared(run) for run in runs[first : first + step]]
            for ready, outcomes in zip(batch, self._run(batch), strict=True):
                record = self._taken(ready, outcomes)
                self._found.runs.append(record)
                self._how.on_run(record)
        for measurer in self._found.measurers:
            measurer.look_for_zeros(names_that_vary(measurer.measured))
        return self._found

    def _folders_at(self, root: Path) -> RunFolders:
        if root not in self._folders:
            folders = self._stack.enter_context(RunFolders(root, keeps=self._how.keeps))
            self._found.notes += folders.notes
            self._folders[root] = folders
        return self._folders[root]

    def _prepared(self, run: PlannedRun) -> _Ready:
        config = self._config_of(RunPlace(run.number, run.seed, self._inputs_of(run)))
        folders = self._folders_at(config.root)
        checks = tuple(config.check(name) for name in self._how.names)
        if not self._found.measurers:
            self._found.measurers = [measurer_of(one, self._how) for one in checks]
        folders.set_aside(checks)
        known = [one.seconds for one in self._found.runs if one.seconds is not None]
        limit = max(_LEAST_SECONDS, _PATIENCE * max(known)) if known else None
        commands = tuple(
            _limited(self._plan.command(settings, run), limit)
            for settings in (config.command, *(check.command for check in checks))
            if settings is not None
        )
        watcher = self._how.watchers.get(run.number)
        if watcher is None and config.snapshot.objects:
            watcher = ProgramWatcher()
        began_at = None
        if self._how.keeps_host:
            began_at = datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")
        return _Ready(run, commands, checks, watcher, folders, began_at)

    def _inputs_of(self, run: PlannedRun) -> str:
        """The folder that a run takes its inputs from."""
        if self._how.perturb is None:
            return "."
        target = self._folders_at(self._root).inputs_folder(run.number).absolute()
        seed = None if run.number == self._plan.runs[0].number else run.seed
        write_inputs(self._root, self._how.perturb, target, seed)
        return str(target)

    def _run(self, batch: Sequence[_Ready]) -> list[list[CommandOutcome]]:
        """What became of the commands of these runs, which run at the same time."""
        return together([partial(self._run_one, ready) for ready in batch])

    def _run_one(self, ready: _Ready, stop: threading.Event | None) -> list[CommandOutcome]:
        """Runs the overall command and those of the checks; the first that fails is the last."""
        outcomes = []
        is_shown, watcher = self._how.is_shown, ready.watcher
        for settings in ready.commands:
            outcomes.append(run_command(settings, is_shown=is_shown, stop=stop, watcher=watcher))
            if outcomes[-1].exit_code != 0:
                break
        return outcomes

    def _kept(self, ready: _Ready) -> str | None:
        """Keeps the snapshot of a run, and returns its identity."""
        if ready.watcher is None:
            return None
        command = "; ".join(one.text for one in ready.commands)
        found = environment_of_program(self._root, ready.watcher, command)
        if self._found.environment is None:
            self._found.environment = found
        return found.get("snapshot")

    def _taken(self, ready: _Ready, outcomes: Sequence[CommandOutcome]) -> RepeatedRun:
        """Measures what a run has written, and puts it away."""
        number, last = ready.run.number, outcomes[-1]
        folders = ready.folders
        shutil.rmtree(folders.inputs_folder(number), ignore_errors=True)
        record = RepeatedRun(
            number,
            ready.run.seed,
            self._plan.states(ready.run),
            sum(one.seconds for one in outcomes),
            last.exit_code,
            last.timed_out,
            output_tail=last.output_tail,
            used=used_by_all([one.used for one in outcomes]),
            began_at=ready.began_at,
        )
        is_first = not self._found.runs
        if is_first and last.exit_code is None and not last.timed_out:
            raise failure_of(last)  # it never began, so what earlier calls have kept stays
        record = replace(record, snapshot=self._kept(ready))
        places = folders.take(number, ready.checks)
        if last.exit_code != 0:
            if is_first:
                raise failure_of(last, was_shown=self._how.is_shown)
            problems = [f"the command {ending_of(last)}{last_words(last)}"]
        else:
            measured = zip(self._found.measurers, places, strict=True)
            told = [_measure_runs(measurer, number, place) for measurer, place in measured]
            problems = [problem for problem in told if problem is not None]
        if problems and is_first:
            raise NotComparableError(f"the first run gives nothing to compare with: {problems[0]}")
        folder = None
        if self._how.keeps:
            folder = str(folders.run_folder(number))
            kept = {} if record.snapshot is None else {"snapshot": record.snapshot}
            outputs = {f"{one.name}, run {number} of repeat": files_of(one) for one in places}
            note_outputs(self._root, kept, outputs)
        elif not is_first or self._how.golden is not None:
            folders.drop(number)
        return replace(record, problem=next(iter(problems), None), folder=folder)


def _refuse_idle(config: Config, how: HowToRepeat) -> None:
    """Raises UsageError if there is nothing to run, or runs would write to one place."""
    commands = [config.command, *(config.check(name).command for name in how.names)]
    if not any(commands):
        raise UsageError(
            "the configuration has no command to run",
            file=config.path,
            remedy="give one under 'run', or give runs that are there with --runs",
        )
    for name in sorted(config.output_placeholders - config.placeholders):
        raise UsageError(
            f"{{{name}}} is in the outputs, but in no command: every run would write to one place",
            file=config.path,
            remedy=f"hand {{{name}}} to the command, too",
        )
    if how.perturb is not None and "inputs" not in config.placeholders:
        raise UsageError(
            "no command has {inputs}, the folder that perturbed files are below",
            file=config.path,
            remedy="write {inputs}/FILE where the command names the file",
        )
    if how.concurrent > 1 and not config.output_placeholders:
        raise UsageError(
            "runs at the same time would write to one place",
            file=config.path,
            remedy="put {run} into the command and into 'outputs'",
        )


def measurer_of(check: Check, how: HowToRepeat) -> Measurer:
    """What measures the runs of a configured check. Raises GoldenMissingError and the other errors
    of reading a golden, where that is the reference.
    """
    against = None
    if how.golden is not None:
        golden = how.golden.read(check.name)

        def against_golden(outputs: RunOutputs) -> CheckResult:
            with Catalog(outputs.found, arrangement_of(check)) as catalog:
                return check_catalog(check, golden, catalog, Work(how.resources, explain=explainer))

        against = against_golden
    rules = Rules(
        check.settings_for, check.is_ignored, check.strict.variables, arrangement_of(check)
    )
    return Measurer(check.name, rules, against_golden=against, resources=how.resources)


def _measure_runs(measurer: Measurer, number: int, place: Check) -> str | None:
    """Why a run could not be compared; None if it was. Its folder is the project's, as it says."""
    try:
        outputs = RunOutputs(place.root, outputs_of(place))
    except OutputMissingError:
        named = ", ".join(place.outputs)
        return f"{place.name}: the command wrote nothing that 'outputs' names ({named})"
    except NotComparableError as error:
        return _as_seen(str(error), place.root)
    problem = measurer.add(number, outputs)
    return None if problem is None else _as_seen(problem, place.root)


def _as_seen(text: str, folder: Path) -> str:
    """A message, as if the outputs were where the command wrote them."""
    return text.replace(f"{folder}/", "").replace(f"{folder}: ", "")


def _limited(settings: CommandSettings, limit: float | None) -> CommandSettings:
    """With a time limit, where the configuration has none."""
    if settings.timeout_seconds is not None:
        return settings
    return replace(settings, timeout_seconds=limit)


_THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
_SEED_STEP = 1_000_003  # seeds of runs lie apart, for programs that add a rank to theirs


class PlannedRun(Struct, frozen=True):
    """A run to make. number: from 1, in the order of running. cell: which factors are on."""

    number: int
    seed: int
    cell: Cell = ()


class Plan(Struct, frozen=True):
    """All runs. seed: of their order, and of their seeds."""

    runs: tuple[PlannedRun, ...]
    factors: tuple[FactorSettings, ...]
    design: Design
    seed: int

    def states(self, run: PlannedRun) -> dict[str, str]:
        """ "on" or "off" by factor."""
        return {
            factor.name: "on" if is_on else "off"
            for factor, is_on in zip(self.factors, run.cell, strict=True)
        }

    def command(self, settings: CommandSettings, run: PlannedRun) -> CommandSettings:
        """The command of one run, as its factors have it."""
        for factor, is_on in zip(self.factors, run.cell, strict=True):
            level = factor.on if is_on else factor.off
            settings = replace(
                settings,
                words=settings.words if level.words is None else level.words,
                env={**settings.env, **level.env},
                cores=all_cores_but_one() if level.reserves_core else settings.cores,
            )
        return settings


def make_plan(count: int, factors: Sequence[FactorSettings], design: Design, seed: int) -> Plan:
    """A plan of at least `count` runs: every cell of the design equally often, at least twice.

    The order is random within blocks that hold each cell once, so that what drifts over time is
    spread over all cells. The first run has all factors off: others are compared with it. Raises
    UsageError.
    """
    if count < LEAST_RUNS_PER_CELL:
        raise UsageError(f"{count} runs: at least {LEAST_RUNS_PER_CELL} are needed")
    try:
        cells = cells_of(design, len(factors)) if factors else [()]
    except ValueError as error:
        raise UsageError(str(error), remedy="choose another 'design'") from None
    blocks = max(LEAST_RUNS_PER_CELL, -(-count // len(cells)))
    order = random.Random(seed)
    chosen: list[Cell] = []
    for block in range(blocks):
        mixed = cells[1:] if block == 0 else list(cells)
        order.shuffle(mixed)
        chosen += [cells[0], *mixed] if block == 0 else mixed
    runs = tuple(
        PlannedRun(number, (seed + _SEED_STEP * number) % (1 << 31), cell)
        for number, cell in enumerate(chosen, 1)
    )
    return Plan(runs, tuple(factors), design, seed)


def find_factors(
    names: Sequence[str], configured: Sequence[FactorSettings]
) -> tuple[FactorSettings, ...]:
    """The factors that `--vary` names: of the configuration, built in (`threads`, `hash-seed`,
    `reserve-core`), or a variable with both of its values (`OMP_NUM_THREADS=1,8`).

    Raises UsageError.
    """
    known = {factor.name: factor for factor in (*_built_in(), *configured)}
    found: dict[str, FactorSettings] = {}
    for name in names:
        factor = known.get(name) or _variable(name)
        if factor is None:
            near = nearest(name, list(known))
            raise UsageError(
                f"there is no factor {name!r} (known: {', '.join(known)})",
                remedy=f"did you mean {near!r}?" if near else "or write VARIABLE=OFF,ON",
            )
        if factor.off == factor.on:
            raise UsageError(f"the factor {name!r} is the same off and on")
        if found.setdefault(factor.name, factor) != factor:
            raise UsageError(f"the factor {factor.name!r} is given twice, with other values")
    return tuple(found.values())


def _variable(text: str) -> FactorSettings | None:
    name, sign, values = text.partition("=")
    off, comma, on = values.partition(",")
    if not (name and sign and comma):
        return None
    if "," in on:
        raise UsageError(
            f"the factor {text!r} has {values.count(',') + 1} values, and a factor has two",
            remedy=f"--vary {name}=OFF,ON; a value that has a comma is given under 'factors' in"
            " ciwrap.yaml",
        )
    return FactorSettings(name, LevelSettings({name: off}), LevelSettings({name: on}))


def _built_in() -> tuple[FactorSettings, ...]:
    threads = str(max(2, usable_cpus()))
    return (
        FactorSettings(
            "threads",
            LevelSettings(dict.fromkeys(_THREAD_VARIABLES, "1")),
            LevelSettings(dict.fromkeys(_THREAD_VARIABLES, threads)),
        ),
        FactorSettings(
            "hash-seed",
            LevelSettings({"PYTHONHASHSEED": "0"}),
            LevelSettings({"PYTHONHASHSEED": "1"}),
        ),
        FactorSettings("reserve-core", LevelSettings(), LevelSettings(reserves_core=True)),
    )


_LEAST_RUNS = 2
NO_CHECK = "runs"


def existing_runs(patterns: Sequence[str]) -> list[Path]:
    """The files or folders that the globs mean, run_2 before run_10. Raises UsageError for fewer
    than two.
    """
    found = dict.fromkeys(
        path for pattern in patterns for path in sorted(_matches(pattern), key=natural)
    )
    if len(found) < _LEAST_RUNS:
        said = " ".join(patterns)
        remedy = "name at least two: --runs 'run_*'"
        if said.isdecimal():
            remedy += f"; to run the program that many times: -n {said}"
        raise UsageError(f"--runs {said} names {plural(len(found), 'run')}", remedy=remedy)
    return list(found)


def _matches(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.exists():
        return [path]
    root = Path(path.anchor) if path.is_absolute() else Path()
    relative = str(path.relative_to(path.anchor)) if path.is_absolute() else pattern
    return list(root.glob(relative))


def measure_existing(
    paths: Sequence[Path], checks: Sequence[Check], how: HowToRepeat
) -> Repetition:
    """Measures these runs. checks: none where there is no configuration; then numbers have to be
    equal.

    A run is found as the check's outputs in it, or as all of its files. Raises UsageError, and
    NotComparableError if the first run gives nothing to compare with.
    """
    sources: list[Check | None] = [*checks] or [None]
    usual = VariableSettings()
    plain_rules = Rules(lambda *_: usual, lambda _: False)
    found = Repetition(
        measurers=[
            Measurer(NO_CHECK, plain_rules, resources=how.resources)
            if check is None
            else measurer_of(check, how)
            for check in sources
        ]
    )
    for number, path in enumerate(paths, 1):
        problem = None
        for check, measurer in zip(sources, found.measurers, strict=True):
            problem = problem or _measure_existing(measurer, number, path, check)
        if problem is not None and number == 1:
            raise NotComparableError(
                f"the first run gives nothing to compare with: {problem}", file=path
            )
        record = RepeatedRun(number, 0, problem=problem, folder=str(path))
        found.runs.append(record)
        how.on_run(record)
    for measurer in found.measurers:
        measurer.look_for_zeros(names_that_vary(measurer.measured))
    return found


def _measure_existing(
    measurer: Measurer, number: int, path: Path, check: Check | None
) -> str | None:
    try:
        return measurer.add(number, RunOutputs(path, _outputs(path, check)))
    except NotComparableError as error:
        return str(error)


def _outputs(path: Path, check: Check | None) -> FoundOutputs:
    if check is None:
        return find_in(path, name=NO_CHECK)
    outputs, exclude = outputs_within((path,), check.outputs, check.exclude)
    return find_in(
        path,
        outputs=outputs,
        layout=check.layout,
        format_name=check.format,
        options=check.options,
        exclude=exclude,
        formats=check.formats,
        name=check.name,
    )
