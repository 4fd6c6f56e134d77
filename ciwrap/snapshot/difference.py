"""What differs between two environments, in the order of how often it changes numbers.

A difference is a fact, and no cause: `ciwrap repeat --vary` proves causes, and where there is a
command for that, it stands beside the difference.

The summary of a snapshot: plain facts for manifests, results and reports.

Snapshots of runs: which one made which outputs, so that a later `accept` or `check` knows it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ciwrap.base.documents import DocumentError, load_json, to_versioned_record
from ciwrap.base.errors import (
    CorruptFileError,
    FileLimitError,
    NotAvailableError,
    UnreadableFileError,
    UsageError,
    WriteFailedError,
)
from ciwrap.base.files import RUN_NOTES, read_regular, write_atomically
from ciwrap.base.repository import DIRTY
from ciwrap.model import EnvironmentDifference
from ciwrap.snapshot.records import (
    EXPECTED_TO_DIFFER,
    KINDS,
    PATH_LISTS,
    RANKS,
    LoadedObject,
    Snapshot,
    kind_of_fact,
    kind_of_variable,
)
from ciwrap.snapshot.store import IDENTITY_DIGITS, SnapshotStore
from ciwrap.snapshot.take import (
    ProgramWatcher,
    package_version,
    snapshot_of_machine,
    snapshot_of_process,
    snapshot_of_program,
)

NOT_SET = "not set"
_NOT_LOADED = "not loaded"
_SEPARATOR = "; "
_MORE = re.compile(r"; and \d+ more$")
_MOST_WORDS = 200
# The hash and the version that tell builds of one library apart by name.
_STEM = re.compile(r"^(?P<stem>(?:lib)?[A-Za-z_+]+[A-Za-z_+\d]*?)(?:[-.]|$)")
_SIMPLE = re.compile(r"[\w.+/-]{1,60}")
# Libraries of which a program has one: another one in its place differs, whatever its name.
_FAMILY = re.compile(
    r"(?:lib)?(?:scipy_)?(?:(?P<blas>openblas|mkl|blis|flexiblas|atlas|nvpl_blas|armpl|libsci)"
    r"|(?P<mpi>mpi|mpich))(?![a-z])"
)


def compare_summaries(
    reference: Mapping[str, str], new: Mapping[str, str]
) -> tuple[EnvironmentDifference, ...]:
    """What differs between the facts of two environments, the likeliest first.

    Nothing where one side is not known.
    """
    if not reference or not new:
        return ()
    found = []
    knows_variables = _knows_program(reference) and _knows_program(new)
    # A program sets variables that the shell does not have, and only a watched one was seen to.
    knows_variables &= _has_libraries(reference) is _has_libraries(new)
    for key in dict.fromkeys((*reference, *new)):
        before, after = reference.get(key), new.get(key)
        # ciwrap's own libraries take no part in the program.
        is_own = kind_of_fact(key) == "source"
        if before == after or key in EXPECTED_TO_DIFFER or is_own:
            continue
        if key == "python" and _is_part(before, after):
            continue
        if _is_seen_less(before, after):
            continue
        if None in (before, after) and not (kind_of_variable(key) and knows_variables):
            continue  # what was not looked for, or not seen, is no difference
        found.append(_difference(kind_of_fact(key), key, before, after))
    return ranked(found)


def _knows_program(facts: Mapping[str, str]) -> bool:
    """Whether anything of a program is known: one that ended before it was looked at has neither
    libraries nor variables, and nobody knows which it had.
    """
    return _has_libraries(facts) or any(map(kind_of_variable, facts))


def _has_libraries(facts: Mapping[str, str]) -> bool:
    """Whether a program or a process was looked at, and not the machine alone."""
    return not facts.keys().isdisjoint(("blas", "libm", "compiler_runtime"))


def compare_snapshots(reference: Snapshot, new: Snapshot) -> tuple[EnvironmentDifference, ...]:
    """What differs between two snapshots, object by object; the likeliest to change numbers first.

    Objects are compared where both sides were looked at: those of no program against those of one
    say nothing. So it is with packages and the version of Python, which are a program's own, or
    those that ciwrap runs with.
    """
    found: list[EnvironmentDifference] = []
    are_alike = (reference.seen == "program") is (new.seen == "program")
    packages: list[EnvironmentDifference] = []
    if are_alike and reference.packages and new.packages:
        packages += _mapping("package", reference.packages, new.packages)
    if "nothing" not in (reference.seen, new.seen) and reference.objects and new.objects:
        found += _objects(reference, new, packages)
    found += packages
    # Of a program that ended before it was looked at neither objects nor variables are known.
    are_known = all(one.objects or one.variables for one in (reference, new))
    are_both_seen = (reference.seen == "nothing") is (new.seen == "nothing")
    for name in dict.fromkeys((*reference.variables, *new.variables)) if are_known else ():
        before, after = reference.variables.get(name), new.variables.get(name)
        if before != after and (are_both_seen or None not in (before, after)):
            found.append(_difference(kind_of_variable(name) or "settings", name, before, after))
    for key, before in reference.machine.items():
        after = new.machine.get(key)
        if after is not None and before != after:
            found.append(_difference(kind_of_fact(key), key, before, after))
    for key in ("python", "mpi", "cuda") if are_alike else ("mpi", "cuda"):
        pair = reference.versions.get(key), new.versions.get(key)
        if None not in pair and pair[0] != pair[1] and not _is_part(*pair):
            found.append(_difference(kind_of_fact(key), key, *pair))
    found += _blas(reference, new)
    if reference.container != new.container:
        found.append(_difference("object", "container", reference.container, new.container))
    if reference.modules != new.modules:
        texts = (", ".join(reference.modules) or None, ", ".join(new.modules) or None)
        found.append(_difference("object", "modules", *texts))
    found += _mapping("package", reference.lock_files, new.lock_files, prefix="lock file ")
    return ranked(found)


def ranked(found: Iterable[EnvironmentDifference]) -> tuple[EnvironmentDifference, ...]:
    """The differences in the order of `KINDS`."""
    return tuple(sorted(found, key=lambda one: (RANKS.get(one.kind, len(RANKS)), one.name)))


def _objects(
    reference: Snapshot, new: Snapshot, packages: list[EnvironmentDifference]
) -> Iterator[EnvironmentDifference]:
    """Objects that are not one build on both sides. Those of a package that has another version
    are counted beside it, in `packages`, but for libraries of mathematics and the like.

    A program is looked at now and then, so it may have loaded what was not seen: that is no
    difference. Of a process that reports its own objects all are known.
    """
    places = {one.name.lower().replace("-", "_"): at for at, one in enumerate(packages)}
    counts = [0] * len(packages)
    for before, after in pair_objects(reference.objects, new.objects):
        if before is not None and after is not None and before.same_bits(after):
            continue
        one = after or before
        assert one is not None
        if (before is None and reference.seen == "program") or (
            after is None and new.seen == "program"
        ):
            continue
        place = places.get(_package_folder(one)) if one.kind == "object" else None
        if place is not None:
            counts[place] += 1
            continue
        yield EnvironmentDifference(
            one.kind,
            (before or one).name,
            _NOT_LOADED if before is None else _object_words(before, after),
            _NOT_LOADED if after is None else _object_words(after, before),
            prove=_prove_object(one),
        )
    for place, count in enumerate(counts):
        if count:
            package = packages[place]
            text = f"{package.name} with {count} object{'s' * (count > 1)}"
            packages[place] = replace(package, name=text)


def _package_folder(one: LoadedObject) -> str:
    """`scipy` of `{packages}/scipy/linalg/_flapack.so`."""
    top, _, rest = one.path.removeprefix("{packages}/").partition("/")
    return top.lower() if one.path.startswith("{packages}/") and rest else ""


def pair_objects(
    reference: Sequence[LoadedObject], new: Sequence[LoadedObject]
) -> list[tuple[LoadedObject | None, LoadedObject | None]]:
    """Each object of either side once, beside what it corresponds to on the other."""
    pairs: list[tuple[LoadedObject | None, LoadedObject | None]] = []
    left, right = list(reference), list(new)
    for key in (_bits, attrgetter("path"), attrgetter("name"), _stem, _family):
        by_key: dict[str, list[LoadedObject]] = {}
        for one in right:
            by_key.setdefault(key(one), []).append(one)
        rest = []
        for one in left:
            others = by_key.get(key(one))
            if others:
                pairs.append((one, others.pop(0)))
            else:
                rest.append(one)
        left, right = rest, [one for others in by_key.values() for one in others]
    return [*pairs, *((one, None) for one in left), *((None, one) for one in right)]


def _bits(one: LoadedObject) -> str:
    return f"{one.sha256 or one.build_id} {one.name}"


def _stem(one: LoadedObject) -> str:
    """`libopenblas` of `libopenblas64_-fdde5778.so`, with the kind, so that no two are mixed up."""
    found = _STEM.match(one.name)
    return f"{one.kind} {found['stem'] if found else one.name}"


def _family(one: LoadedObject) -> str:
    """`blas` or `mpi`; the path of anything else, which is like no other."""
    found = _FAMILY.match(one.name)
    return one.path if found is None or found.lastgroup is None else found.lastgroup


def _object_words(one: LoadedObject, other: LoadedObject | None) -> str:
    if other is None:
        return one.identity
    words = one.identity_beside(other)
    return f"{words} ({one.path})" if one.path != other.path else words


def _mapping(
    kind: str, reference: Mapping[str, str], new: Mapping[str, str], *, prefix: str = ""
) -> Iterator[EnvironmentDifference]:
    for name in dict.fromkeys((*reference, *new)):
        before, after = reference.get(name), new.get(name)
        if before != after:
            yield EnvironmentDifference(
                kind, f"{prefix}{name}", (before or "not there")[:40], (after or "not there")[:40]
            )


def _blas(reference: Snapshot, new: Snapshot) -> Iterator[EnvironmentDifference]:
    """What threadpoolctl saw, by library: which kernels were chosen, and how many threads."""
    theirs = {(one.api, one.name): one for one in new.blas}
    for one in reference.blas:
        other = theirs.get((one.api, one.name))
        if other is None:
            continue
        for kind, what in (("cpu", "architecture"), ("threads", "threads"), ("maths", "version")):
            before, after = getattr(one, what), getattr(other, what)
            if before != after:
                yield _difference(kind, f"{one.name} {what}", _text(before), _text(after))


def _is_part(before: str | None, after: str | None) -> bool:
    """Whether one version is what the other begins with, as 3.11 of 3.11.7."""
    if before is None or after is None:
        return False
    short, long = sorted((before, after), key=len)
    return long.startswith(f"{short}.")


def _is_seen_less(before: str | None, after: str | None) -> bool:
    """Whether one side lists some of the objects of the other one: the rest was not seen."""
    if before is None or after is None:
        return False
    theirs, ours = (set(_MORE.sub("", one).split(_SEPARATOR)) for one in (before, after))
    return theirs <= ours or ours <= theirs


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _difference(
    kind: str, name: str, before: str | None, after: str | None
) -> EnvironmentDifference:
    return EnvironmentDifference(
        kind,
        name,
        (NOT_SET if before is None else before)[:_MOST_WORDS],
        (NOT_SET if after is None else after)[:_MOST_WORDS],
        prove=_prove(kind, name, before, after),
    )


def _prove(kind: str, name: str, before: str | None, after: str | None) -> str | None:
    """The command that shows whether a difference of a setting changes the numbers."""
    if kind_of_variable(name) is not None and name not in PATH_LISTS:
        if before and after and _SIMPLE.fullmatch(before) and _SIMPLE.fullmatch(after):
            return f"ciwrap repeat --vary {shlex.quote(f'{name}={before},{after}')}"
        return f"ciwrap repeat --vary FACTOR, with {name} set in one level of FACTOR in ciwrap.yaml"
    if kind == "threads":
        return "ciwrap repeat --vary threads"
    if name in ("cpu", "cpu_flags", "blas_architecture") or name.endswith(" architecture"):
        return "ciwrap repeat --vary OPENBLAS_CORETYPE=Haswell,Prescott"
    return None


def _prove_object(one: LoadedObject) -> str | None:
    if RANKS[one.kind] > RANKS["gpu"]:
        return None
    return (
        "ciwrap repeat --vary FACTOR, with LD_LIBRARY_PATH of either build in the levels of FACTOR"
        " in ciwrap.yaml"
    )


def words_of_kind(kind: str) -> str:
    """What a kind is called, for people."""
    return KINDS.get(kind, kind)


# The rest of the machine's facts is in the snapshot alone.
_MACHINE = ("cpu", "cpu_count", "os", "kernel", "machine", "cpu_flags", "microcode")
_MOST_NAMED = 4
_USUAL_RUNTIMES = ("ld-linux", "libc.", "libc-", "libpthread")  # which every program has


def describe_environment(folder: Path) -> dict[str, str]:
    """Plain facts of this machine in a stable order; `folder` is where to look for the git commit.

    No host name, no user and no path of this machine is in it: manifests are committed and often
    public.
    """
    return summary_of(snapshot_of_machine(folder))


def summary_of(snapshot: Snapshot, identity: str | None = None) -> dict[str, str]:
    """Plain facts of a snapshot, in a stable order. identity: under which it is kept, if it is."""
    versions = snapshot.versions
    facts = {name: snapshot.machine.get(name) for name in _MACHINE}
    facts["python"] = versions.get("python")
    facts["ciwrap"] = versions.get("ciwrap")
    facts["numpy"] = snapshot.packages.get("numpy")
    if facts["numpy"] is None and snapshot.seen != "program":
        facts["numpy"] = package_version("numpy")
    facts |= {name: text for name, text in versions.items() if name not in facts}
    maths = [one for one in snapshot.objects if one.kind == "maths"]
    facts["blas"] = _words(one for one in maths if not is_libm(one.name))
    facts["libm"] = _words(one for one in maths if is_libm(one.name))
    facts["compiler_runtime"] = _words(
        one
        for one in snapshot.objects
        if one.kind == "runtime" and not one.name.startswith(_USUAL_RUNTIMES)
    )
    facts["mpi"] = facts.get("mpi") or _of_kind(snapshot.objects, "mpi")
    facts["cuda"] = facts.get("cuda") or _of_kind(snapshot.objects, "gpu")
    facts["blas_architecture"] = ", ".join(
        dict.fromkeys(one.architecture for one in snapshot.blas if one.architecture)
    )
    facts["container"] = snapshot.container
    facts["modules"] = ", ".join(snapshot.modules)
    facts |= {name: text for name, text in snapshot.variables.items() if kind_of_variable(name)}
    commit = snapshot.repository.get("commit")
    if commit is not None:
        is_dirty = snapshot.repository.get("dirty") == "yes"
        facts["git_commit"] = f"{commit}{DIRTY}" if is_dirty else commit
    facts["snapshot"] = identity
    return {name: text for name, text in facts.items() if text}


def is_libm(name: str) -> bool:
    """Whether a file is the C library's mathematics, and not linear algebra."""
    return name.startswith(("libm.", "libm-", "libmvec", "libimf", "libsvml", "libamdlibm"))


def _of_kind(objects: Iterable[LoadedObject], kind: str) -> str:
    return _words(one for one in objects if one.kind == kind)


def _words(objects: Iterable[LoadedObject]) -> str:
    """`libm.so.6 (build 1f5a2f)`, of some."""
    named = sorted({f"{one.name} ({one.identity})" for one in objects})
    more = len(named) - _MOST_NAMED
    return _SEPARATOR.join([*named[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


FORMAT_VERSION = 1
# A program of a thousand libraries on another system would fill every report.
MOST_DIFFERENCES = 200
_MOST_BYTES = 4 << 20


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """snapshot: its identity. stamp: what the outputs looked like when the run had ended."""

    snapshot: str
    stamp: str


class _Notes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    checks: dict[str, _Note]


def keep_snapshot(
    store: SnapshotStore, snapshot: Snapshot, *, is_newest: bool = False
) -> dict[str, str]:
    """Saves a snapshot and returns its summary, with its identity if it could be written.

    is_newest: whether it becomes the newest of the store, also if it was there before.

    No run fails because it leaves no snapshot: what is in the way is printed to stderr.
    """
    try:
        identity = store.save(snapshot)
        if is_newest:
            store.touch(identity)
    except WriteFailedError as error:
        print(f"warning: no snapshot is kept: {error}", file=sys.stderr)
        return summary_of(snapshot)
    return summary_of(snapshot, identity)


def environment_of_program(root: Path, watcher: ProgramWatcher, command: str) -> dict[str, str]:
    """The summary of what a watched command ran with; the snapshot is kept in the project's
    `.ciwrap`. root: the project's folder.
    """
    found = snapshot_of_program(root, watcher.seen, command=command)
    return keep_snapshot(SnapshotStore.of_project(root), found, is_newest=True)


def environment_of_process(root: Path, golden_dir: Path | None = None) -> dict[str, str]:
    """The summary of this process. The snapshot is kept with the goldens, where some are written,
    else in the project's `.ciwrap`.
    """
    store = (
        SnapshotStore.of_project(root)
        if golden_dir is None
        else SnapshotStore.of_goldens(golden_dir)
    )
    return keep_snapshot(store, snapshot_of_process(root))


def note_outputs(
    root: Path, environment: Mapping[str, str], outputs: Mapping[str, Iterable[Path]]
) -> None:
    """Notes that a run with this environment made these files, by check (or whatever tells one
    place of outputs from others).

    Nothing is noted of a run whose snapshot was not kept, and what was noted of these checks is
    gone then.
    """
    notes = dict(_read_notes(root))
    identity = environment.get("snapshot")
    for name, files in outputs.items():
        notes.pop(name, None)
        if identity is not None:
            notes[name] = _Note(identity, stamp_of(files))
    path = root / RUN_NOTES
    if not path.parent.is_dir():
        return
    document = msgspec.to_builtins(_Notes(FORMAT_VERSION, notes))
    try:
        write_atomically(path, json.dumps(document, indent=1) + "\n")
    except OSError as error:
        print(f"warning: {path}: could not be written: {error.strerror}", file=sys.stderr)


def environment_of_outputs(root: Path, files: Iterable[Path]) -> dict[str, str] | None:
    """The summary of the run that made these files; None if that is not known, or if one of them
    was written since.
    """
    found = snapshot_of_outputs(root, files)
    return None if found is None else summary_of(found[1], found[0])


def snapshot_of_outputs(root: Path, files: Iterable[Path]) -> tuple[str, Snapshot] | None:
    """Identity and snapshot of the run that made these files; None as above.

    Files that were moved, as `repeat --keep` does, are known by what they look like.
    """
    notes = _read_notes(root)
    there = list(files) if notes else []
    if not there:
        return None
    stamp = stamp_of(there)
    for note in notes.values():
        if note.stamp == stamp:
            found = _load(note.snapshot, [SnapshotStore.of_project(root)])
            if found is not None:
                return note.snapshot, found
    return None


def environment_for_golden(
    root: Path, files: Iterable[Path], store: SnapshotStore
) -> dict[str, str]:
    """Keeps what outputs were made with beside the golden they become; its summary.

    Of outputs that no known run made it is what is here: the machine, and no program.
    """
    known = snapshot_of_outputs(root, files)
    return keep_snapshot(store, snapshot_of_machine(root) if known is None else known[1])


def carry_snapshot(
    environment: Mapping[str, str], sources: Iterable[SnapshotStore], target: SnapshotStore
) -> None:
    """Copies the snapshot that a summary names, from the first store that has it. Where none can
    read it, or it cannot be written, the summary stays alone, and only the latter is told.
    """
    identity = environment.get("snapshot", "")
    if len(identity) == IDENTITY_DIGITS and target.contains(identity):
        return
    found = _load(environment.get("snapshot"), sources)
    if found is not None:
        keep_snapshot(target, found)


def environment_differences(
    reference: Mapping[str, str], new: Mapping[str, str], stores: Iterable[SnapshotStore]
) -> tuple[EnvironmentDifference, ...]:
    """What differs between two environments: object by object where both snapshots are in one of
    the stores and can be read, else as far as their summaries tell.
    """
    there = list(stores)
    before, after = (_load(one.get("snapshot"), there) for one in (reference, new))
    if before is not None and after is not None:
        return compare_snapshots(before, after)[:MOST_DIFFERENCES]
    return compare_summaries(reference, new)[:MOST_DIFFERENCES]


def stamp_of(files: Iterable[Path]) -> str:
    """A digest of the names, sizes and times of files; it is another one once one is written."""
    digest = hashlib.sha256()
    for path in sorted(files):
        try:
            status = path.stat()
        except OSError:
            digest.update(f"{path.name}\0gone\0".encode("utf-8", "surrogateescape"))
            continue
        facts = f"{path.name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\0"
        digest.update(facts.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _load(identity: str | None, stores: Iterable[SnapshotStore]) -> Snapshot | None:
    """A snapshot from the first store that has it and can read it."""
    for store in stores if identity is not None else ():
        assert identity is not None
        if store.contains(identity):
            try:
                return store.load(identity)
            except (CorruptFileError, NotAvailableError, UnreadableFileError, UsageError):
                continue
    return None


def _read_notes(root: Path) -> dict[str, _Note]:
    """What was noted; nothing where the notes are missing or damaged, since they only save work."""
    try:
        data = read_regular(root / RUN_NOTES, _MOST_BYTES)
        return dict(to_versioned_record(load_json(data), _Notes, FORMAT_VERSION).checks)
    except (FileNotFoundError, FileLimitError, UnreadableFileError, DocumentError):
        return {}
