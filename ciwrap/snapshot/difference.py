"""What differs between two environments, in the order of how often it changes numbers.

A difference is a fact, and no cause: `ciwrap repeat --vary` proves causes, and where there is a
command for that, it stands beside the difference.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ciwrap.model import EnvironmentDifference
from ciwrap.snapshot.kinds import (
    EXPECTED_TO_DIFFER,
    KINDS,
    PATH_LISTS,
    RANKS,
    kind_of_fact,
    kind_of_variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ciwrap.snapshot.records import LoadedObject, Snapshot

NOT_SET = "not set"
# A program is looked at now and then, so it may have loaded what was not seen.
NOT_SEEN = "not seen"
_LACKING = {"program": NOT_SEEN, "process": "not loaded"}
_MOST_WORDS = 200
# The hash and the version that tell builds of one library apart by name.
_STEM = re.compile(r"^(?P<stem>(?:lib)?[A-Za-z_+]+[A-Za-z_+\d]*?)(?:[-.]|$)")
_SIMPLE = re.compile(r"[\w.+/-]{1,60}")


def compare_summaries(
    reference: Mapping[str, str], new: Mapping[str, str]
) -> tuple[EnvironmentDifference, ...]:
    """What differs between the facts of two environments, the likeliest first.

    Nothing where one side is not known.
    """
    if not reference or not new:
        return ()
    found = []
    for key in dict.fromkeys((*reference, *new)):
        before, after = reference.get(key), new.get(key)
        if before == after or key in EXPECTED_TO_DIFFER or _is_own(key):
            continue
        if key == "python" and _is_part(before, after):
            continue
        if None in (before, after) and not kind_of_variable(key):
            continue  # what was not looked for is no difference
        found.append(_difference(kind_of_fact(key), key, before, after))
    return ranked(found)


def compare_snapshots(reference: Snapshot, new: Snapshot) -> tuple[EnvironmentDifference, ...]:
    """What differs between two snapshots, object by object; the likeliest to change numbers first.

    Objects are compared where both sides were looked at: those of no program against those of one
    say nothing. So it is with packages and the version of Python, which are a program's own, or
    those that ciwrap runs with.
    """
    found: list[EnvironmentDifference] = []
    are_alike = (reference.seen == "program") is (new.seen == "program")
    if "nothing" not in (reference.seen, new.seen) and reference.objects and new.objects:
        found += _objects(reference, new)
    if are_alike and reference.packages and new.packages:
        found += _mapping("package", reference.packages, new.packages)
    # Of a program that ended before it was looked at neither objects nor variables are known.
    are_known = all(one.objects or one.variables for one in (reference, new))
    for name in dict.fromkeys((*reference.variables, *new.variables)) if are_known else ():
        before, after = reference.variables.get(name), new.variables.get(name)
        if before != after:
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


def _objects(reference: Snapshot, new: Snapshot) -> Iterator[EnvironmentDifference]:
    """Objects that are not one build on both sides."""
    lacking = [_LACKING[one.seen] for one in (reference, new)]
    for before, after in pair_objects(reference.objects, new.objects):
        if before is None or after is None or not before.same_bits(after):
            one = after or before
            assert one is not None
            yield EnvironmentDifference(
                one.kind,
                (before or one).name,
                lacking[0] if before is None else _object_words(before, after),
                lacking[1] if after is None else _object_words(after, before),
                prove=_prove_object(one),
            )


def pair_objects(
    reference: Sequence[LoadedObject], new: Sequence[LoadedObject]
) -> list[tuple[LoadedObject | None, LoadedObject | None]]:
    """Each object of either side once, beside what it corresponds to on the other."""
    pairs: list[tuple[LoadedObject | None, LoadedObject | None]] = []
    left, right = list(reference), list(new)
    for key in (_bits, _path, _name, _stem):
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


def _path(one: LoadedObject) -> str:
    return one.path


def _name(one: LoadedObject) -> str:
    return one.name


def _stem(one: LoadedObject) -> str:
    """`libopenblas` of `libopenblas64_-fdde5778.so`, with the kind, so that no two are mixed up."""
    found = _STEM.match(one.name)
    return f"{one.kind} {found['stem'] if found else one.name}"


def _object_words(one: LoadedObject, other: LoadedObject | None) -> str:
    is_elsewhere = other is not None and one.path != other.path
    return f"{one.identity} ({one.path})" if is_elsewhere else one.identity


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


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _is_own(key: str) -> bool:
    """Whether a fact is of ciwrap's own libraries, which take no part in the program."""
    return kind_of_fact(key) == "source"


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


def verb_of(one: EnvironmentDifference) -> str:
    """Whether something is known to differ, or was seen on one side alone."""
    return "was seen on one side alone" if NOT_SEEN in (one.golden, one.run) else "differs"


def words_of_kind(kind: str) -> str:
    """What a kind is called, for people."""
    return KINDS.get(kind, kind)
