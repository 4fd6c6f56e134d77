"""The summary of a snapshot: plain facts for manifests, results and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.repository import DIRTY
from ciwrap.snapshot.kinds import kind_of_variable
from ciwrap.snapshot.take import snapshot_of_machine

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ciwrap.snapshot.records import LoadedObject, Snapshot

# The rest of the machine's facts is in the snapshot alone.
_MACHINE = ("cpu", "cpu_count", "os", "kernel", "machine", "cpu_flags", "microcode")
_MOST_NAMED = 4


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
    facts["numpy"] = snapshot.packages.get("numpy") or _numpy(snapshot)
    facts |= {name: text for name, text in versions.items() if name not in facts}
    maths = [one for one in snapshot.objects if one.kind == "maths"]
    facts["blas"] = _words(one for one in maths if not is_libm(one.name))
    facts["libm"] = _words(one for one in maths if is_libm(one.name))
    facts["compiler_runtime"] = _runtimes(snapshot.objects)
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


def _numpy(snapshot: Snapshot) -> str | None:
    """NumPy's version where no folder of packages tells it."""
    from importlib import metadata

    if snapshot.seen == "program":
        return None
    try:
        return metadata.version("numpy")
    except metadata.PackageNotFoundError:
        return None


def is_libm(name: str) -> bool:
    """Whether a file is the C library's mathematics, and not linear algebra."""
    return name.startswith(("libm.", "libm-", "libmvec", "libimf", "libsvml", "libamdlibm"))


def _runtimes(objects: Iterable[LoadedObject]) -> str:
    """The runtimes of compilers, but for what every program has."""
    usual = ("ld-linux", "libc.", "libc-", "libpthread")
    return _words(
        one for one in objects if one.kind == "runtime" and not one.name.startswith(usual)
    )


def _of_kind(objects: Iterable[LoadedObject], kind: str) -> str:
    return _words(one for one in objects if one.kind == kind)


def _words(objects: Iterable[LoadedObject]) -> str:
    """`libm.so.6 (build 1f5a2f)`, of some."""
    named = sorted({f"{one.name} ({one.identity})" for one in objects})
    more = len(named) - _MOST_NAMED
    return "; ".join([*named[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])
