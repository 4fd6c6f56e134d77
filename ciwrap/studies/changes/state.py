"""What a repository checks at one moment: its configuration and the manifests of its goldens.

Files are read as a commit holds them or as they lie in the working tree, which is never touched.
`ciwrap changes --json` writes records of this module; the action reads them back.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ciwrap.arrays.values import TEXT_LABEL, Signature
from ciwrap.base.documents import DocumentError, DocumentHead
from ciwrap.base.errors import CiwrapError, ConfigError, CorruptGoldenError, UsageError
from ciwrap.base.files import read_regular
from ciwrap.base.repository import Entry, Repository, place_below
from ciwrap.golden.manifest import (
    MOST_MANIFEST_BYTES,
    Count,
    Manifest,
    VariableRow,
    evidence_rank,
    load_manifest,
)
from ciwrap.golden.places import (
    ENSEMBLE_SUFFIX,
    MANIFEST_SUFFIX,
    SHARED_SUFFIX,
    STAGED_SUFFIX,
    Place,
    TestPlace,
    escape_name,
    unescape_name,
)
from ciwrap.golden.shared_file import MOST_FILE_BYTES, read_with_journal
from ciwrap.golden.trees import EXACT, describe_bound, is_wider, settings_text, tree_parameters
from ciwrap.model import EvidencePolicy, VariableId, VariableSettings
from ciwrap.model.variable_result import Number
from ciwrap.project.config import load_text
from ciwrap.project.schema import MAX_BYTES, Document, Location, parse_document
from ciwrap.project.settings import CONFIG_NAME, DEFAULT_GOLDEN_DIR, Check, Config, name_matches
from ciwrap.report.document import MOST_BYTES
from ciwrap.studies.changes.pytest_files import PytestFile, file_that_counts, files_within
from ciwrap.studies.ensemble import EnsembleGolden, parse_ensemble

_OUTSIDE = "lies outside the repository, so nothing tells what it was"
_Golden = TypeVar("_Golden", Manifest, EnsembleGolden)


class State(Struct, frozen=True):
    """config: None where there is none, or it cannot be read (problem says why). config_name,
    golden_dir: from the top of the repository. test_golden_dir: likewise, where the goldens of
    tests lie elsewhere. manifests: of all goldens, None for one that cannot be read. ensembles:
    likewise. pytest: what its configuration says. inner: that of folders of tests, which counts
    where pytest is started for these alone.
    """

    config: Config | None
    config_name: str | None
    golden_dir: str
    test_golden_dir: str | None = None
    document: Document | None = None
    problem: str | None = None
    manifests: Mapping[Place, Manifest | None] = field(default_factory=dict)
    ensembles: Mapping[Place, EnsembleGolden | None] = field(default_factory=dict)
    pytest: PytestFile = PytestFile()
    inner: tuple[PytestFile, ...] = ()

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
    found = file_that_counts(tree, where.start)
    state = replace(state, pytest=found)
    if found.golden_dir not in (None, state.golden_dir):
        state = _with_tests(state, tree, found.golden_dir)
    inner = files_within(tree, _folders_of_tests(state, where), found.folder)
    return replace(state, inner=tuple(inner))


def _folders_of_tests(state: State, where: Where) -> set[str]:
    """Folders of tests that have goldens, from the top of the repository."""
    name = state.config_name or state.pytest.name
    root = where.start if name is None else posixpath.dirname(name)
    tests = [TestPlace.of(place) for place in state.manifests]
    modules = {PurePosixPath(root) / one.module for one in tests if one is not None}
    return {one.parent.as_posix() for one in modules}


def _with_tests(state: State, tree: FileTree, folder: str) -> State:
    """With goldens of tests that lie in a folder of their own; those that lie where tests do not
    look for them count no more.
    """
    if folder.startswith(("/", "../")):
        raise UsageError(_OUTSIDE, file=folder)
    tests = _manifests(tree, folder)
    # One of the folders may lie in the other one.
    own = _outside_of(state.manifests, state.golden_dir, folder)
    if _is_below(state.golden_dir, folder):
        own, tests = dict(state.manifests), _outside_of(tests, folder, state.golden_dir)
    of_checks = {place: one for place, one in own.items() if TestPlace.of(place) is None}
    return replace(state, test_golden_dir=folder, manifests={**of_checks, **tests})


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
    if name is None or name not in found:  # tests have goldens without a configuration, too
        counted = file_that_counts(tree, where.start)
        root = where.start if counted.name is None else counted.folder
        usual = (PurePosixPath(root) / DEFAULT_GOLDEN_DIR).as_posix()
        folder = usual if where.golden_dir is None else where.golden_dir
        return State(None, None, folder, manifests=_manifests(tree, folder))
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
    names = [name for name in tree.names_below(folder) if name.endswith(ENSEMBLE_SUFFIX)]
    read = tree.read(names, MOST_BYTES)
    ensembles = _by_place(read, folder, ENSEMBLE_SUFFIX, parse_ensemble)
    return replace(state, manifests=_manifests(tree, folder), ensembles=ensembles)


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
        raise UsageError(_OUTSIDE, file=path)
    return "" if place == "." else place


def _nearest_config(tree: FileTree, start: str) -> str | None:
    folder = PurePosixPath(start)
    names = [(one / CONFIG_NAME).as_posix() for one in (folder, *folder.parents)]
    found = tree.read(names, MAX_BYTES)
    return next((name for name in names if name in found), None)


def _manifests(tree: FileTree, folder: str) -> dict[Place, Manifest | None]:
    listed = tree.names_below(folder)
    names = [name for name in listed if name.endswith(MANIFEST_SUFFIX)]
    read = tree.read(names, MOST_MANIFEST_BYTES)
    pairs = _by_place(read, folder, MANIFEST_SUFFIX, lambda data, _: load_manifest(data))
    return pairs | _shared_manifests(tree, folder, listed, pairs)


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


class FileTree(Protocol):
    """Files by their names from the top of the repository, with '/'."""

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The files that are there. Raises FileLimitError, UnreadableFileError."""

    def names_below(self, folder: str) -> list[str]:
        """The names of all files in a folder ('' for the top) and below it."""


class WorkingTree(Struct, frozen=True):
    """Files as they lie in a folder now, committed or not. Links to folders within are not
    followed, so what a commit had there is reported to be gone.
    """

    top: Path

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        paths = {name: self.top / name for name in names}
        return {
            name: read_regular(path, most_bytes) for name, path in paths.items() if path.is_file()
        }

    def names_below(self, folder: str) -> list[str]:
        inside = (self.top / folder).rglob("*")
        return sorted(one.relative_to(self.top).as_posix() for one in inside if one.is_file())


_OF_GOLDENS = (MANIFEST_SUFFIX, SHARED_SUFFIX, ENSEMBLE_SUFFIX)


class CommitTree:
    """A FileTree. What only a link or a submodule tells of is refused: nothing says what it was."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository, self._commit = repository, commit

    def read(self, names: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """Raises UsageError for a link, and for what lies behind one or in a submodule."""
        for name in names:
            self._refuse_on_the_way(name)
        objects = {
            name: self._entries[name].object
            for name in names
            if name in self._entries and not self._entries[name].is_tree
        }
        found = self._repository.contents(list(objects.values()))
        return {name: found[one] for name, one in objects.items() if len(found[one]) <= most_bytes}

    def names_below(self, folder: str) -> list[str]:
        """Raises UsageError for a link in the folder, and for goldens that a submodule has now."""
        self._refuse_on_the_way(folder)
        inside = {
            name: entry
            for name, entry in self._entries.items()
            if not folder or name.startswith(f"{folder}/")
        }
        for name, entry in inside.items():
            if entry.is_link:
                raise _behind_a_link(name)
            if entry.is_submodule:
                goldens = WorkingTree(self._repository.top).names_below(name)
                if any(one.endswith(_OF_GOLDENS) for one in goldens):
                    raise _in_submodule(name)
        return [name for name, one in inside.items() if not (one.is_tree or one.is_submodule)]

    def _refuse_on_the_way(self, name: str) -> None:
        """Raises UsageError for a name that is a link or a submodule, or lies behind one."""
        for place in (name, *map(str, PurePosixPath(name).parents)):
            entry = self._entries.get(place)
            if entry is not None and entry.is_link:
                raise _behind_a_link(place)
            if entry is not None and entry.is_submodule:
                raise _in_submodule(place)

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        return self._repository.entries_at(self._commit)


def _behind_a_link(name: str) -> UsageError:
    return UsageError(
        "the commit has a link here, and nothing tells what it led to",
        file=name,
        remedy="keep configuration and goldens in the repository without links",
    )


def _in_submodule(name: str) -> UsageError:
    return UsageError(
        "what lies in a submodule is not part of the commit, so nothing tells what it was",
        file=name,
        remedy="keep configuration and goldens in the repository itself",
    )


class Lines(Struct, frozen=True):
    """Finds lines in the configuration of a state."""

    state: State

    def of_check(self, name: str | None, *keys: str) -> int | None:
        """The line of one of a check's keys, else where the check begins; None for neither."""
        return self._first([*((*self._check(name), key) for key in keys), self._check(name)])

    def of_variable(self, name: str, variable: VariableId, keys: tuple[str, ...]) -> int | None:
        """The line of the last layer that says one of the keys for a variable, else its check's."""
        check = self._check(name)
        section = self.state.checks.get(name)
        rules = [
            rule.pattern
            for rule in (() if section is None else section.rules)
            if name_matches(rule.pattern, variable)
        ]
        layers: list[Location] = [(*check, "variables", one) for one in reversed(rules)]
        layers += [check, ("defaults",)]
        return self._first([*((*layer, key) for layer in layers for key in keys), check])

    def _check(self, name: str | None) -> Location:
        document = self.state.document
        checks = None if document is None else document.value.get("checks")
        if isinstance(checks, list):
            named = (number for number, one in enumerate(checks) if one.get("name") == name)
            return ("checks", next(named, 0))
        return ("checks",) if name is None else ("checks", name)

    def _first(self, locations: list[Location]) -> int | None:
        document = self.state.document
        if document is None:
            return None
        found = (document.line_of(one) for one in locations)
        return next((line for line in found if line is not None), None)


class Renames(Struct, frozen=True):
    """goldens: where they lie now -> where they lay. checks: of the configuration, new name -> old.

    Goldens of one root hold the same variables, made with the same bounds. Two that share a root
    are told apart by nothing, so neither is taken for the other one under a new name.
    """

    goldens: Mapping[Place, Place]
    checks: Mapping[str, str]

    @classmethod
    def between(cls, old: State, new: State) -> Renames:
        gone, fresh = _only_in(old, new), _only_in(new, old)
        pairs = {
            place: gone[key]
            for key, place in fresh.items()
            if key in gone and (place.name in new.checks) == (gone[key].name in old.checks)
        }
        checks = {
            place.name: before.name
            for place, before in pairs.items()
            if place.name in new.checks and _is_whole(place.name, before.name, pairs, old, new)
        }
        goldens = {
            place: before
            for place, before in pairs.items()
            if place.name not in new.checks or checks.get(place.name) == before.name
        }
        return cls(goldens, checks)


def _only_in(state: State, other: State) -> dict[tuple[str, str | None, str], Place]:
    """Goldens that the other state does not have, by root, kind of machine, and, for checks of the
    configuration, folder; only those that are alone with it.
    """
    found = []
    for place, manifest in state.manifests.items():
        is_gone = place not in other.manifests and place.name not in other.checks
        if is_gone and manifest is not None:
            folder = place.folder if place.name in state.checks else ""
            found.append(((manifest.binary.root, place.variant, folder), place))
    counts = Counter(key for key, _ in found)
    return {key: place for key, place in found if counts[key] == 1}


def _is_whole(name: str, before: str, pairs: Mapping[Place, Place], old: State, new: State) -> bool:
    """Whether all goldens of a check, of every platform, went from the old name to the new one."""
    went = {one for one in pairs.items() if one[0].name == name or one[1].name == before}
    return (
        all((place.name, past.name) == (name, before) for place, past in went)
        and {place for place, _ in went} == {one for one in new.manifests if one.name == name}
        and {past for _, past in went} == {one for one in old.manifests if one.name == before}
    )


What = Literal["bound", "evidence", "ignore", "strict", "variable", "check", "values"]


class Change(msgspec.Struct, frozen=True):
    """One difference in what is checked.

    check, variable: what it concerns; None for all. text: the change in words. wider: whether less
    is checked than before; None where nothing tells. count: of checkpoints of the variable that it
    concerns. replaced: whether a golden or an ensemble took another one's place, so that numbers
    may have moved. moved: the variables of such a golden that hold other numbers. file, line: where
    the configuration says so, from the top of the repository. who, why: of the acceptance. share:
    of the old bounds that the numbers moved by at most, as the manifest says; None where it does
    not.
    """

    check: str | None
    variable: str | None
    what: What
    text: str
    wider: bool | None
    count: Count = 1
    replaced: bool = False
    moved: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    who: str | None = None
    why: str | None = None
    share: Number | None = None


class ChangesDocument(DocumentHead, frozen=True, kw_only=True):
    """What differs in what is checked. base: the commit that the files here are compared with."""

    kind: Literal["changes"]
    base: str
    changes: tuple[Change, ...]


_NUMBERS = "<f8"
# The smaller one of atol and rtol |golden|, the larger one, their sum.
_COMBINED = ("both", "either", "sum")


class Judged(Struct, frozen=True):
    """stored: the bound that the golden was made with, in words. asked: the one that the
    configuration asks for, where one does. evidence: what the golden keeps. settings: None without
    a configuration. aligns: whether the check puts any rows in order.
    """

    stored: str
    asked: str | None
    evidence: str
    settings: VariableSettings | None
    aligns: bool = False


def judged(row: VariableRow, check: Check | None, identity: VariableId) -> Judged:
    if check is None:
        return Judged(row.bound, None, row.evidence, None)
    labels = tuple(row.labels.items())
    settings = check.settings_for(identity, Signature(row.dtype, tuple(row.shape), labels))
    # A golden holds the bytes of a text, which have no bound; its numbers have.
    is_text = TEXT_LABEL in row.labels.items()
    asked = settings_text(settings) if is_text else _bound_text(row.dtype, settings)
    return Judged(row.bound, asked, row.evidence, settings, check.aligns)


def _bound_text(dtype: str, settings: VariableSettings) -> str | None:
    if settings.scale is not None:
        return settings_text(settings)
    try:
        return describe_bound(tree_parameters(dtype, settings))
    except UsageError:  # a bound that the type cannot have, which a check tells better
        return None


def judged_by_configuration(check: Check, name: str) -> Judged:
    """How numbers are judged that the configuration itself states."""
    settings = check.settings_for(VariableId(name), Signature(_NUMBERS, ()))
    asked = _bound_text(_NUMBERS, settings)
    # No golden keeps anything of them.
    return Judged(EXACT, asked, "data", replace(settings, evidence=EvidencePolicy.DATA))


def judgement_changes(old: Judged, new: Judged) -> Iterator[tuple[What, str, bool]]:
    """What differs, in words, and whether less is checked."""
    yield from _bounds(old, new)
    yield from _evidence(old, new)
    if old.settings is None or new.settings is None:
        return
    was, now = old.settings, new.settings
    if was.combine != now.combine:
        wider = _COMBINED.index(now.combine) > _COMBINED.index(was.combine)
        yield "bound", f"combine: {was.combine} -> {now.combine}", wider
    if was.up_to_sign != now.up_to_sign:
        text = f"up_to_sign: {was.up_to_sign} -> {now.up_to_sign}"
        yield "bound", text, was.up_to_sign == "none" or now.up_to_sign in ("rows", "columns")
    if was.mask != now.mask:
        text = f"mask: {was.mask or 'none'} -> {now.mask or 'none'}"
        yield "variable", text, now.mask is not None
    if was.period != now.period:
        yield "bound", f"period: {_numbers(was.period)} -> {_numbers(now.period)}", bool(now.period)
    if was.mixed_precision != now.mixed_precision:
        word = "allowed" if now.mixed_precision else "refused"
        yield "bound", f"float32 against float64 is {word} now", now.mixed_precision
    if was.across_ranks != now.across_ranks:
        text = f"rows of all ranks are aligned {'together' if now.across_ranks else 'by rank'} now"
        yield "variable", text, now.across_ranks
    if was.align_by != now.align_by:
        text = f"rows aligned by: {was.align_by or 'none'} -> {now.align_by or 'none'}"
        # Rows may come in any order now; or the ids alone may, and these have lost them.
        yield "variable", text, now.align_by is not None or new.aligns


def _bounds(old: Judged, new: Judged) -> Iterator[tuple[What, str, bool]]:
    """The bounds asked for, or those that the goldens were made with where these alone are others,
    or alone are wider.
    """
    pairs = [(old.stored, new.stored)]
    if old.asked is not None and new.asked is not None:
        pairs.insert(0, (old.asked, new.asked))
    found = [(was, now, is_wider(was, now)) for was, now in pairs if was != now]
    if found:
        was, now, wider = next((one for one in found if one[2]), found[0])
        yield "bound", f"{was} -> {now}", wider


def _evidence(old: Judged, new: Judged) -> Iterator[tuple[What, str, bool]]:
    if old.evidence != new.evidence:
        is_lower = evidence_rank(new.evidence) < evidence_rank(old.evidence)
        yield "evidence", f"{old.evidence} -> {new.evidence}", is_lower
    elif old.settings is not None and new.settings is not None:
        was, now = old.settings.evidence, new.settings.evidence
        if was is not now:
            text = f"asked for: {was} -> {now} (the golden keeps {new.evidence})"
            yield "evidence", text, False


def _numbers(period: tuple[float, ...]) -> str:
    return ", ".join(f"{one:g}" for one in period) or "none"
