"""What a golden was made with: for the manifest and the report, never for the verdict."""

from __future__ import annotations

import getpass
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from ciwrap.repository import ask_git

# Settings that change how a program adds numbers up, and so its last digits.
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_SCHEDULE",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "KOKKOS_NUM_THREADS",
    "MKL_CBWR",
    "CUBLAS_WORKSPACE_CONFIG",
)
# Behind a commit: tracked files differed from it.
DIRTY = "-dirty"


def describe_environment(folder: Path) -> dict[str, str]:
    """Plain facts in a stable order; `folder` is where to look for the git commit.

    No host name, no user and no path is in it: manifests are committed and often public.
    """
    facts = {
        "cpu": _cpu_model(),
        "cpu_count": str(_usable_cpus()),
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "ciwrap": _version("ciwrap"),
        "numpy": _version("numpy"),
    }
    facts.update(_core_libraries())
    for name in _THREAD_VARIABLES:
        if name in os.environ:
            facts[name] = os.environ[name]
    commit = git_commit(folder)
    if commit is not None:
        facts["git_commit"] = commit
    return facts


def git_commit(folder: Path) -> str | None:
    """The commit checked out around `folder`, with `-dirty` if tracked files differ; None without
    git.
    """
    head = ask_git(folder, "rev-parse", "HEAD")
    if head is None:
        return None
    changes = ask_git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{head}{DIRTY}" if changes else head


def git_user(folder: Path) -> str:
    """Who accepts: git's own answer, else the login name."""
    name = ask_git(folder, "config", "user.name")
    email = ask_git(folder, "config", "user.email")
    if name and email:
        return f"{name} <{email}>"
    if name or email:
        return name or email or ""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model", "cpu model"):
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


@cache
def _os_name() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.platform(terse=True)
    return release.get("PRETTY_NAME") or platform.platform(terse=True)


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _core_libraries() -> dict[str, str]:
    from ciwrap import _core

    return {name: str(version) for name, version in sorted(_core.library_versions().items())}
