"""Copies of input files whose numbers are changed by a hair, for programs that take no seed.

Each floating-point number x becomes x (1 + a u), with u even between -1 and 1, so zeros stay. So do
fill values, which HDF5 and NetCDF-4 files name, and what would become infinite. The
files themselves are never touched: a run reads copies, in a folder of its own.
"""

from __future__ import annotations

import shutil
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ciwrap.errors import NotComparableError, OutputMissingError, UsageError
from ciwrap.late import numpy as np
from ciwrap.readers.optional import library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from ciwrap.config.settings import PerturbSettings

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
    h5py = library("h5py", "hdf5", file=path)
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
