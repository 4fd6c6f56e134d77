"""Takes snapshots."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.repository import DIRTY, git_commit
from ciwrap.snapshot.kinds import PATH_LISTS
from ciwrap.snapshot.lock_files import lock_files_in
from ciwrap.snapshot.machine import machine_facts
from ciwrap.snapshot.objects import describe_object
from ciwrap.snapshot.packages import owning_packages, package_folders, packages_in
from ciwrap.snapshot.private import Cleaner
from ciwrap.snapshot.program import SeenProgram, can_look, own_program, own_variables
from ciwrap.snapshot.records import SEVERAL, Blas, LoadedObject, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_VALUE = 300
_CONTAINER_VARIABLES = ("CIWRAP_CONTAINER_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
_PYTHON = re.compile(r"(?:python|libpython)(?P<version>3\.\d+)(?:\.so.*)?")
_IMAGE = re.compile(r"^(?:image|imageid)=\"?([^\"\n]{1,300})\"?$", re.MULTILINE)


def snapshot_of_program(
    folder: Path, program: SeenProgram, *, command: str | None = None, hashed: bool = False
) -> Snapshot:
    """The environment of a command that was watched while it ran.

    folder: the project's, where git and lock files are looked for. hashed: SHA-256 of every
    object, also of those with a build ID, and the distribution's packages that own them. Where the
    system does not say what processes have loaded, no objects, variables and packages are known.
    """
    cleaner = Cleaner(root=folder.resolve(), secrets=program.secrets)
    mapped = [file.path for file in program.files]
    objects = _objects(program, cleaner, hashed=hashed)
    return _snapshot(
        folder,
        cleaner,
        seen="program" if can_look() else "nothing",
        versions=_python(objects),
        variables=program.variables,
        folders=package_folders(mapped),
        objects=objects,
        system_packages=owning_packages(mapped) if hashed else {},
        command=None if command is None else cleaner.text(command),
    )


def snapshot_of_process(folder: Path, *, hashed: bool = False) -> Snapshot:
    """The environment of this very process, as tests have it."""
    program = own_program()
    cleaner = Cleaner(root=folder.resolve())
    return _snapshot(
        folder,
        cleaner,
        seen="process" if can_look() else "nothing",
        versions={**_own_python(), **_loaded_versions()},
        variables=program.variables,
        folders=_own_folders(),
        objects=_objects(program, cleaner, hashed=hashed),
        blas=_blas(),
    )


def snapshot_of_machine(folder: Path) -> Snapshot:
    """The environment that a program would be started in; nothing is known of its objects."""
    return _snapshot(
        folder,
        Cleaner(root=folder.resolve()),
        seen="nothing",
        versions=_own_python(),
        variables=own_variables(),
        folders=_own_folders(),
    )


def _snapshot(
    folder: Path,
    cleaner: Cleaner,
    *,
    versions: dict[str, str],
    variables: dict[str, set[str]],
    folders: Iterable[str],
    **more: Any,
) -> Snapshot:
    """With what is known of any program. folders: of its Python packages."""
    packages = packages_in(folders)
    return Snapshot(
        machine=machine_facts(),
        versions=_versions(versions),
        variables=_kept(variables, cleaner),
        packages=packages.versions,
        local_packages=packages.local,
        modules=_modules(cleaner),
        lock_files=lock_files_in(folder),
        container=_container(cleaner),
        repository=_repository(folder),
        **more,
    )


def _own_python() -> dict[str, str]:
    return {"python": f"{platform.python_implementation()} {platform.python_version()}"}


def _objects(program: SeenProgram, cleaner: Cleaner, *, hashed: bool) -> tuple[LoadedObject, ...]:
    found = {}
    for file, key in program.files.items():
        one = describe_object(key, file.path, cleaner, hashed=hashed)
        if one is not None:
            found[one.path, one.build_id, one.sha256] = one
    return tuple(found[key] for key in sorted(found, key=str))


def _kept(variables: dict[str, set[str]], cleaner: Cleaner) -> dict[str, str]:
    """Values as everybody may see them."""
    kept = {}
    for name, values in sorted(variables.items()):
        clean = cleaner.paths if name in PATH_LISTS else cleaner.text
        kept[name] = SEVERAL.join(sorted({clean(value)[:_MOST_VALUE] for value in values}))
    return kept


def _versions(more: dict[str, str]) -> dict[str, str]:
    from ciwrap import _core

    own = {name: str(version) for name, version in sorted(_core.library_versions().items())}
    return {**more, "ciwrap": _version("ciwrap"), **own}


def _loaded_versions() -> dict[str, str]:
    """MPI and CUDA as they say themselves, where this process has them already."""
    found = {}
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None:
        found["mpi"] = " ".join(str(mpi.Get_library_version()).split("\n")[0].split())[:100]
    cuda = sys.modules.get("cupy")
    if cuda is not None:
        found["cuda"] = str(cuda.cuda.runtime.runtimeGetVersion())
    return found


def _blas() -> tuple[Blas, ...]:
    """What threadpoolctl finds in this process; nothing without it, or without NumPy."""
    if "numpy" not in sys.modules:
        return ()
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]
    except ImportError:
        return ()
    return tuple(
        Blas(
            api=str(one["user_api"]),
            name=str(one["internal_api"]),
            version=None if one.get("version") is None else str(one["version"]),
            architecture=None if one.get("architecture") is None else str(one["architecture"]),
            threads=one.get("num_threads"),
        )
        for one in threadpool_info()
    )


def _own_folders() -> list[str]:
    return [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def _python(objects: Iterable[LoadedObject]) -> dict[str, str]:
    """Major and minor version of the Python among the objects: no file tells more."""
    names = (_PYTHON.fullmatch(one.name) for one in objects)
    found = next((name for name in names if name is not None), None)
    return {} if found is None else {"python": f"CPython {found['version']}"}


def _modules(cleaner: Cleaner) -> tuple[str, ...]:
    """Environment modules (Lmod, Tcl) that are loaded."""
    names = os.environ.get("LOADEDMODULES", "").split(":")
    return tuple(cleaner.text(name)[:_MOST_VALUE] for name in names if name)


def _container(cleaner: Cleaner) -> str | None:
    """The image that this runs in, as far as it says; no image tells its own digest."""
    for name in _CONTAINER_VARIABLES:
        value = os.environ.get(name)
        if value:
            return cleaner.path(value) if value.startswith("/") else cleaner.text(value)
    try:
        text = Path("/run/.containerenv").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "docker (image not told)" if Path("/.dockerenv").exists() else None
    named = _IMAGE.findall(text)
    return cleaner.text(" ".join(named)) if named else "podman (image not told)"


def _repository(folder: Path) -> dict[str, str]:
    commit = git_commit(folder)
    if commit is None:
        return {}
    changed = commit.endswith(DIRTY)
    return {"commit": commit.removesuffix(DIRTY), "dirty": "yes" if changed else "no"}


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
