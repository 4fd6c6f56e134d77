"""What a repository checks at one moment: its configuration and the manifests of its goldens."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from ciwrap.changes.pytest_folder import golden_dir_of_tests
from ciwrap.config import CONFIG_NAME
from ciwrap.config.loading import load_text
from ciwrap.config.nodes import MAX_BYTES, parse_document
from ciwrap.config.settings import DEFAULT_GOLDEN_DIR
from ciwrap.documents import DocumentError
from ciwrap.errors import CiwrapError, ConfigError, CorruptGoldenError, UsageError
from ciwrap.golden.manifest import MOST_MANIFEST_BYTES, load_manifest
from ciwrap.golden.paths import (
    ENSEMBLE_SUFFIX,
    MANIFEST_SUFFIX,
    SHARED_SUFFIX,
    STAGED_SUFFIX,
    escape_name,
    unescape_name,
)
from ciwrap.golden.places import Place
from ciwrap.golden.shared_state import MOST_FILE_BYTES, read_with_journal
from ciwrap.report.document import MOST_BYTES
from ciwrap.repository import place_below
from ciwrap.structs import Struct, field, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ciwrap.changes.file_trees import FileTree
    from ciwrap.config import Check, Config
    from ciwrap.config.nodes import Document
    from ciwrap.ensemble.golden import EnsembleGolden
    from ciwrap.golden.manifest import Manifest

    _Golden = TypeVar("_Golden", Manifest, EnsembleGolden)


class State(Struct, frozen=True):
    """config: None where there is none, or it cannot be read (problem says why). config_name,
    golden_dir: from the top of the repository. test_golden_dir: likewise, where the goldens of
    tests lie elsewhere. manifests: of all goldens, None for one that cannot be read. ensembles:
    likewise.
    """

    config: Config | None
    config_name: str | None
    golden_dir: str
    test_golden_dir: str | None = None
    document: Document | None = None
    problem: str | None = None
    manifests: Mapping[Place, Manifest | None] = field(default_factory=dict)
    ensembles: Mapping[Place, EnsembleGolden | None] = field(default_factory=dict)

    @property
    def checks(self) -> dict[str, Check]:
        return {} if self.config is None else {check.name: check for check in self.config.checks}


class Where(Struct, frozen=True):
    """Where a state is looked for.

    top: of the repository. start: the folder whose nearest configuration counts. config_name,
    golden_dir: what somebody asked for instead, from the top; None for neither.
    """

    top: Path
    start: str
    config_name: str | None = None
    golden_dir: str | None = None


def state_of(tree: FileTree, where: Where, assumed: str | None = None) -> State:
    """The state that files show. Raises UsageError for goldens outside of the repository.

    assumed: where goldens lie if the configuration cannot be read, which would say it.
    """
    state = _state_of(tree, where, assumed)
    if where.golden_dir is not None:
        return state
    folder = golden_dir_of_tests(tree, where.start)
    return state if folder in (None, state.golden_dir) else _with_tests(state, tree, folder)


def _with_tests(state: State, tree: FileTree, folder: str) -> State:
    """With goldens of tests that lie in a folder of their own."""
    if folder.startswith(("/", "../")):
        raise UsageError("lies outside the repository, so nothing tells what it was", file=folder)
    tests = _manifests(tree, folder)
    # One of the folders may lie in the other one.
    own = _outside_of(state.manifests, state.golden_dir, folder)
    if _is_below(state.golden_dir, folder):
        own, tests = dict(state.manifests), _outside_of(tests, folder, state.golden_dir)
    return replace(state, test_golden_dir=folder, manifests={**tests, **own})


def _outside_of(
    manifests: Mapping[Place, Manifest | None], golden_dir: str, folder: str
) -> dict[Place, Manifest | None]:
    return {
        place: one
        for place, one in manifests.items()
        if not _is_below((PurePosixPath(golden_dir) / place.folder).as_posix(), folder)
    }


def _is_below(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


def _state_of(tree: FileTree, where: Where, assumed: str | None) -> State:
    name = where.config_name or _nearest_config(tree, where.start)
    found = {} if name is None else tree.read([name], MAX_BYTES)
    if name is None or name not in found:
        return _without_config(tree, where)
    path = where.top / name
    try:
        text = found[name].decode("utf-8-sig")
        config = load_text(text, path, partial(_text_beside, tree, where.top))
        document = parse_document(text, path)
    except (ConfigError, UnicodeDecodeError) as error:
        problem = error.message if isinstance(error, ConfigError) else "is not UTF-8 text"
        kept = assumed if where.golden_dir is None else where.golden_dir
        state = State(None, name, kept or "", problem=problem)
        return state if kept is None else _with_goldens(state, tree)
    folder = where.golden_dir or below(config.golden_dir, where.top)
    return _with_goldens(State(config, name, folder, document=document), tree)


def _with_goldens(state: State, tree: FileTree) -> State:
    folder = state.golden_dir
    return replace(state, manifests=_manifests(tree, folder), ensembles=_ensembles(tree, folder))


def _text_beside(tree: FileTree, top: Path, path: Path) -> str | None:
    """A file that the configuration includes, as the tree has it; None if there is none. Raises
    UsageError for one outside of the repository, UnicodeDecodeError.
    """
    name = below(Path(os.path.normpath(path)), top)
    data = tree.read([name], MAX_BYTES).get(name)
    return None if data is None else data.decode("utf-8-sig")


def below(path: Path, top: Path) -> str:
    """A path from the top of the repository, with '/'. Raises UsageError for one outside of it."""
    place = place_below(path, top)
    if place is None:
        raise UsageError("lies outside the repository, so nothing tells what it was", file=path)
    return "" if place == "." else place


def _nearest_config(tree: FileTree, start: str) -> str | None:
    folder = PurePosixPath(start)
    names = [(one / CONFIG_NAME).as_posix() for one in (folder, *folder.parents)]
    found = tree.read(names, MAX_BYTES)
    return next((name for name in names if name in found), None)


def _without_config(tree: FileTree, where: Where) -> State:
    """Tests have goldens without a configuration, too."""
    folder = where.golden_dir
    if folder is None:
        folder = (PurePosixPath(where.start) / DEFAULT_GOLDEN_DIR).as_posix()
    return State(None, None, folder, manifests=_manifests(tree, folder))


def _manifests(tree: FileTree, folder: str) -> dict[Place, Manifest | None]:
    listed = tree.names_below(folder)
    names = [name for name in listed if name.endswith(MANIFEST_SUFFIX)]
    read = tree.read(names, MOST_MANIFEST_BYTES)
    pairs = _by_place(read, folder, MANIFEST_SUFFIX, lambda data, _: load_manifest(data))
    return pairs | _shared_manifests(tree, folder, listed, pairs)


def _ensembles(tree: FileTree, folder: str) -> dict[Place, EnsembleGolden | None]:
    from ciwrap.ensemble.golden import parse_ensemble

    names = [name for name in tree.names_below(folder) if name.endswith(ENSEMBLE_SUFFIX)]
    return _by_place(tree.read(names, MOST_BYTES), folder, ENSEMBLE_SUFFIX, parse_ensemble)


def _by_place(
    read: Mapping[str, bytes], folder: str, suffix: str, load: Callable[[bytes, Path], _Golden]
) -> dict[Place, _Golden | None]:
    """What files hold, each where its file lies; one of another check's name is not read for
    either.
    """
    found: dict[Place, _Golden | None] = {}
    for name, data in read.items():
        stem = PurePosixPath(name).name.removesuffix(suffix)
        try:
            golden = load(data, Path(name))
        except (DocumentError, CorruptGoldenError):
            golden = None
        if golden is not None and escape_name(golden.check) == stem:
            found[_place(name, folder, golden.check)] = golden
        else:
            found[_place(name, folder, unescape_name(stem))] = None
    return found


def _place(file: str, folder: str, check: str) -> Place:
    inner = PurePosixPath(file).parent.relative_to(folder or ".").as_posix()
    return Place("" if inner == "." else inner, check)


def _shared_manifests(
    tree: FileTree,
    folder: str,
    listed: Sequence[str],
    pairs: Mapping[Place, Manifest | None],
) -> dict[Place, Manifest | None]:
    """Of the goldens that share files, as far as these count. A damaged file counts as one golden
    that cannot be read.
    """
    suffixes = (SHARED_SUFFIX, SHARED_SUFFIX + STAGED_SUFFIX)
    read = tree.read([name for name in listed if name.endswith(suffixes)], MOST_FILE_BYTES)
    found: dict[Place, Manifest | None] = {}
    for name in sorted({one.removesuffix(STAGED_SUFFIX) for one in read}):
        inner = PurePosixPath(name.removesuffix(SHARED_SUFFIX)).relative_to(folder or ".")
        data, journal = (read.get(one, b"") for one in (name, name + STAGED_SUFFIX))
        try:
            shared = read_with_journal(data, journal, Path(name))
        except CiwrapError:
            found[Place(inner.as_posix(), inner.name + SHARED_SUFFIX)] = None
            continue
        for one in shared.goldens:
            place = Place(inner.as_posix(), one.manifest.check)
            if place in pairs and place.name not in shared.put:
                # As the store decides: by the journal, and without a word in it by neither.
                pair, moved_to = pairs[place], shared.moved.get(place.name)
                if pair is not None and moved_to == pair.binary.root:
                    continue
                found[place] = None if moved_to is None else one.manifest
            else:
                found[place] = one.manifest
    return found
