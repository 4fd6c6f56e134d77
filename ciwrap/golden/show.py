"""A golden as stable text for `git diff`; all goldens below a folder; and which no test uses.

The same golden gives the same lines on any machine, and a number that changes changes only its own
lines. Only a test run knows which goldens are unused; it leaves a list for `ciwrap prune`.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ciwrap.arrays.values import element_texts, is_bfloat16, storage_dtype, widen_bfloat16
from ciwrap.base.documents import DocumentError, load_json, to_versioned_record
from ciwrap.base.errors import CiwrapError, CorruptFileError, FileLimitError, UnreadableFileError
from ciwrap.base.files import (
    WORK_DIR,
    flush_folder,
    keep_out_of_git,
    read_regular,
    remove,
    write_atomically,
    writing,
)
from ciwrap.base.late import json
from ciwrap.base.late import numpy as np
from ciwrap.golden.goldens_of_tests import ModuleStore
from ciwrap.golden.manifest import Count, Root, VariableRow, describe_evidence
from ciwrap.golden.places import (
    MANIFEST_SUFFIX,
    SHARED_SUFFIX,
    STAGED_SUFFIX,
    Place,
    name_of_stem,
    stored_stems,
)
from ciwrap.golden.store import GoldenStores
from ciwrap.golden.trees import bound_of, describe_bound
from ciwrap.model import Evidence, VariableId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.golden.manifest import Acceptance

# Data of up to so many elements are printed one by one.
_MOST_ELEMENTS = 4096
# Of larger trees the last level with at most so many nodes is printed.
_MOST_NODES = 256
_PER_LINE = 4
_DIGEST_DIGITS = 16


class ShownVariable(msgspec.Struct, frozen=True):
    """One variable of a golden, without its tree and its data."""

    name: str
    iteration: int | None
    rank: int | None
    dtype: str
    shape: tuple[int, ...]
    atol: float
    rtol: float
    ulps: Count
    equal_nan: bool
    evidence: Evidence
    residue_levels: Count
    chunk_bytes: Count
    leaf_count: Count
    root: Root


def shown_variables(variables: Sequence[_core.GoldenVariable]) -> tuple[ShownVariable, ...]:
    """The golden's table."""
    return tuple(_shown(variable) for variable in variables)


def _shown(variable: _core.GoldenVariable) -> ShownVariable:
    row = VariableRow.of(variable)
    parameters = variable.tree.parameters
    bound = bound_of(parameters)
    return ShownVariable(
        name=row.name,
        iteration=row.iteration,
        rank=row.rank,
        dtype=row.dtype,
        shape=row.shape,
        atol=bound.atol,
        rtol=bound.rtol,
        ulps=bound.ulps,
        equal_nan=parameters.equal_nan,
        evidence=Evidence(variable.evidence),
        residue_levels=parameters.residue_levels,
        chunk_bytes=parameters.chunk_bytes,
        leaf_count=variable.tree.leaf_count,
        root=row.root,
    )


def golden_lines(
    variables: Sequence[_core.GoldenVariable], root: str, *, full: bool = False
) -> Iterator[str]:
    """The text, line by line. full: every element and every leaf, however many."""
    yield f"golden with {len(variables)} variable{'s' if len(variables) > 1 else ''}, root {root}"
    for variable in variables:
        yield ""
        yield from _variable_lines(variable, full)


def acceptance_line(entry: Acceptance) -> str:
    """Who made or replaced a golden, when and why."""
    actor = "" if entry.actor is None else f" for {entry.actor}"
    commit = "" if entry.commit is None else f", commit {entry.commit}"
    return f"accepted {entry.when} by {entry.who}{actor}: {entry.why}{commit}"


def first_elements(variable: _core.GoldenVariable, most: int) -> str:
    """`0.5, 0.25, ... of 100 elements`: the first elements of a variable; '' without its data."""
    elements = _elements(variable)
    if elements is None or not elements.size:
        return ""
    texts = ", ".join(element_texts(elements[:most]))
    return texts if elements.size <= most else f"{texts}, ... of {elements.size:,} elements"


def _variable_lines(variable: _core.GoldenVariable, full: bool) -> Iterator[str]:
    tree, parameters = variable.tree, variable.tree.parameters
    identity = VariableId(variable.name, variable.iteration, variable.rank)
    shape = "x".join(map(str, variable.shape)) if variable.shape else "()"
    # Golden files hold no names with control characters, so this prints as it is.
    yield f"variable {identity.text}"
    yield f"  {parameters.dtype} {shape}, {describe_bound(parameters)}"
    yield f"  evidence {describe_evidence(variable)}"
    yield f"  root {tree.root.hex()}"
    yield (
        f"  blocks of {parameters.chunk_bytes} bytes: {tree.leaf_count};"
        f" nodes by level: {' '.join(map(str, tree.level_counts))}"
    )
    elements = _elements(variable)
    if elements is not None and (full or elements.size <= _MOST_ELEMENTS):
        yield from _element_lines(elements, variable.shape)
    else:
        yield from _chunk_lines(variable, elements, full)


def _elements(variable: _core.GoldenVariable) -> NDArray[Any] | None:
    if variable.data is None:
        return None
    dtype = variable.tree.parameters.dtype
    elements = np.frombuffer(variable.data, dtype=storage_dtype(dtype))
    return widen_bfloat16(elements) if is_bfloat16(dtype) else elements


def _element_lines(elements: NDArray[Any], shape: tuple[int, ...]) -> Iterator[str]:
    """A few elements on each line, beginning with the index of the first; rows begin new lines."""
    row = shape[-1] if shape else 1
    for start in range(0, elements.size, max(1, row)):
        for first in range(start, start + row, _PER_LINE):
            last = min(first + _PER_LINE, start + row)
            values = "  ".join(element_texts(elements[first:last]))
            yield f"  {_index(first, shape)}  {values}"


def _index(flat: int, shape: tuple[int, ...]) -> str:
    if not shape:
        return "[]"
    return f"[{', '.join(str(int(position)) for position in np.unravel_index(flat, shape))}]"


def _chunk_lines(
    variable: _core.GoldenVariable, elements: NDArray[Any] | None, full: bool
) -> Iterator[str]:
    """One line for each node of the last level that is small enough: where, digest, and range."""
    tree, parameters = variable.tree, variable.tree.parameters
    levels = tree.level_counts
    level = len(levels) - 1
    while not full and level > 0 and levels[level] > _MOST_NODES:
        level -= 1
    leaves_per_node = parameters.arity ** (len(levels) - 1 - level)
    per_node = leaves_per_node * max(1, parameters.chunk_scalars // parameters.scalars_per_element)
    count = tree.scalar_count // parameters.scalars_per_element
    first_node = sum(levels[:level])
    for node in range(levels[level]):
        first = node * per_node
        last = min(first + per_node, count) - 1
        digest = tree.digests[first_node + node].tobytes().hex()[:_DIGEST_DIGITS]
        where = (
            f"{_index(first, variable.shape)} to {_index(last, variable.shape)}"
            if last >= first
            else "no values"
        )
        yield f"  {where}  {digest}{_range_text(elements, first, last)}"


def _range_text(elements: NDArray[Any] | None, first: int, last: int) -> str:
    if elements is None or last < first or elements.dtype.kind not in "iuf":
        return ""
    part = elements[first : last + 1]
    finite = part[np.isfinite(part)] if part.dtype.kind == "f" else part
    if finite.size == 0:
        return "  no finite value"
    odd = part.size - finite.size
    note = f", {odd} not finite" if odd else ""
    return f"  from {finite.min()!s} to {finite.max()!s}{note}"


def stored_places(golden_dir: Path, faults: list[CiwrapError] | None = None) -> list[Place]:
    """The places of all goldens of checks, whole or not, in the folder and below it; sorted.

    A golden without a manifest belongs to no check: a program of the user's wrote it. Folders whose
    names begin with a dot, and links to folders, are passed over. faults: takes the errors of
    damaged shared files, whose goldens nobody knows; without it they are raised.
    """
    found: set[Place] = set()
    for here, folder in _folders(golden_dir):
        found |= {
            Place(folder, name_of_stem(here, stem))
            for stem in stored_stems(here, (MANIFEST_SUFFIX,))
        }
    for folder, store in shared_stores(golden_dir):
        found |= {Place(folder, name) for name in _names_in(store, faults)}
    return sorted(found)


def _names_in(store: ModuleStore, faults: list[CiwrapError] | None) -> list[str]:
    try:
        return store.shared_names()
    except CiwrapError as error:
        if faults is None:
            raise
        faults.append(error)
        return []


def _folders(golden_dir: Path) -> Iterator[tuple[Path, str]]:
    """All folders, with their paths below the first."""
    for here, folders, _ in os.walk(golden_dir):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        relative = Path(here).relative_to(golden_dir).as_posix()
        yield Path(here), "" if relative == "." else relative


def linked_folders(golden_dir: Path) -> Iterator[Path]:
    """Links to folders, which `stored_places` passes over."""
    for here, _ in _folders(golden_dir):
        with contextlib.suppress(FileNotFoundError), os.scandir(here) as entries:
            yield from sorted(Path(one) for one in entries if one.is_symlink() and one.is_dir())


def shared_stores(golden_dir: Path) -> Iterator[tuple[str, ModuleStore]]:
    """The stores of all test files that have a shared file, or the journal of one, in order."""
    for here, folder in _folders(golden_dir):
        with contextlib.suppress(FileNotFoundError):
            names = {entry.name.removesuffix(STAGED_SUFFIX) for entry in os.scandir(here)}
            for name in sorted(names):
                if name.endswith(SHARED_SUFFIX) and name != SHARED_SUFFIX:
                    inner = "/".join(part for part in (folder, name) if part)
                    stem = inner.removesuffix(SHARED_SUFFIX)
                    yield stem, ModuleStore(golden_dir / stem)


def delete_goldens(
    golden_dir: Path, unused: Iterable[UnusedGolden], deleted: list[str] | None = None
) -> list[str]:
    """Deletes goldens, and the folders that are empty then; returns where they lay, in words.

    deleted: takes these words one by one, for whoever has to tell of them if an error is raised.
    One that has another root by now stays: somebody has written it since it was looked at. Raises
    LockBusyError, WriteFailedError.
    """
    deleted = [] if deleted is None else deleted
    folders = set()
    stores = GoldenStores(golden_dir)
    with stores.kept():
        for one in unused:
            store = stores.at(one.place)
            if not store.contains(one.name):
                continue
            with store.locked():
                if store.root_of(one.name) != one.root:
                    continue
                where = store.shown(one.name)
                store.remove(one.name)
            deleted.append(where)
            folders.add(store.folder)
    for folder in sorted(folders, reverse=True):
        while folder != golden_dir:
            with contextlib.suppress(OSError):  # not empty, or gone already
                folder.rmdir()
            folder = folder.parent
    return deleted


def delete_ensemble(path: Path) -> Path:
    """Deletes an ensemble, and returns its path. Raises WriteFailedError."""
    with writing(path, "could not be deleted"):
        remove(path)
        flush_folder(path.parent)
    return path


LIST_NAME = "unused.json"
LIST_VERSION = 2
_MOST_BYTES = 16 << 20


class UnusedGolden(msgspec.Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """folder, name: its place. root: of the golden when it was found to be unused; None: it could
    not be read.
    """

    folder: str
    name: str
    root: Root | None

    @property
    def place(self) -> Place:
        return Place(self.folder, self.name)


class ProjectState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tests were like: two of one project are equal only if its tests use the same goldens.

    folder: the project's. golden_dir: relative to it. commit: None without git. digest: of the
    files that decide which tests there are and what they check.
    """

    folder: str
    golden_dir: str
    commit: str | None
    digest: str


class UnusedList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """state: of the project when its tests ran; of any other nothing is known."""

    format: int = LIST_VERSION
    state: ProjectState
    unused: tuple[UnusedGolden, ...]


def list_path(root: Path) -> Path:
    return root / WORK_DIR / LIST_NAME


def read_unused(root: Path) -> UnusedList | None:
    """The list; None without one. Raises CorruptFileError."""
    path = list_path(root)
    try:
        data = read_regular(path, _MOST_BYTES)
        return to_versioned_record(load_json(data), UnusedList, LIST_VERSION)
    except FileNotFoundError:
        return None
    except (DocumentError, FileLimitError, UnreadableFileError) as error:
        raise CorruptFileError(
            f"is not a list of unused goldens: {error}",
            file=path,
            remedy="delete it, run the tests",
        ) from None


def write_unused(root: Path, found: UnusedList) -> None:
    """Replaces the list. Raises WriteFailedError."""
    path = list_path(root)
    document = msgspec.to_builtins(found)
    with writing(path):
        keep_out_of_git(path.parent)
        write_atomically(path, json.dumps(document, indent=1) + "\n")
