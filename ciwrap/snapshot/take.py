"""Takes snapshots: the objects that a command's processes load, the machine, and lock files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import stat
import sys
import threading
import time
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ciwrap import __version__, _core
from ciwrap.base.errors import NotAvailableError
from ciwrap.base.processes import all_processes
from ciwrap.base.repository import DIRTY, git_commit
from ciwrap.base.secrets import secrets_of
from ciwrap.snapshot.records import (
    PATH_LISTS,
    SEVERAL,
    Blas,
    Cleaner,
    LoadedObject,
    MappedFile,
    Snapshot,
    build_id_of,
    kind_of_library,
    kind_of_variable,
    mapped_files,
    owning_packages,
    package_folders,
    packages_in,
)

_BLOCK = 1 << 20
_MOST_SEARCHED = 256 << 20
_VERSION_IN_NAME = re.compile(r"\.so\.(\d+\.\d[\d.]*)$|-(\d+\.\d[\d.]*)\.so$")
# What libraries say of themselves, in the kinds where a version is worth a search.
_VERSION_IN_FILE = {
    "maths": (
        ("OpenBLAS", re.compile(rb"OpenBLAS (\d+\.\d+[\w.]*)")),
        ("MKL", re.compile(rb"Math Kernel Library Version (\d[\w.]*)")),
        ("BLIS", re.compile(rb"AOCL-BLIS (\d[\w.]*)")),
    ),
    "mpi": (
        ("MPICH", re.compile(rb"\0(\d+\.\d[\w.]*)\0MPICH %s")),
        ("Open MPI", re.compile(rb"Open MPI v(\d[\w.]*)")),
    ),
}
_Key = tuple[str, int, int, int, int]
_MOST_TEXT = 4 << 20  # of what the kernel says


def look_at(files: Iterable[MappedFile], *, root: str = "") -> dict[MappedFile, _Key]:
    """Those of the files that are still what was mapped, each with what a change would change.

    root: the root folder of the process that mapped them, as /proc/PID/root, for containers.
    """
    found: dict[MappedFile, _Key] = {}
    for file in files:
        for path in (file.path, f"{root}{file.path}") if root else (file.path,):
            try:
                status = os.stat(path)  # noqa: PTH116 - hundreds of them
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_ino == file.inode:
                key = (path, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
                found[file] = key
                # Now: a program that was built for this run may be gone after it.
                with contextlib.suppress(OSError):
                    _build_id(key)
                break
    return found


def describe_object(key: _Key, path: str, cleaner: Cleaner, *, hashed: bool) -> LoadedObject | None:
    """What an object is; None if it cannot be read. path: as its process sees it.

    hashed: SHA-256 also of objects that have a build ID.
    """
    sha256 = version = None
    kind = kind_of_library(path.rpartition("/")[2])
    try:
        build_id = _build_id(key)
        if hashed or build_id is None:
            sha256 = _sha256(key)
        version = _version(key, kind) or _compiler(key, cleaner.path(path))
    except OSError:
        build_id = None
    if build_id is None and sha256 is None:
        return None
    return LoadedObject(cleaner.path(path), kind, key[-1], build_id, sha256, version)


@lru_cache(4096)
def _build_id(key: _Key) -> str | None:
    with open(key[0], "rb") as stream:  # noqa: PTH123
        return build_id_of(stream)


@lru_cache(4096)
def _sha256(key: _Key) -> str:
    digest = hashlib.sha256()
    with open(key[0], "rb") as stream:  # noqa: PTH123
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


@lru_cache(4096)
def _version(key: _Key, kind: str) -> str | None:
    """What the file says of its version; else what its name says."""
    if kind in _VERSION_IN_FILE and key[-1] > _BLOCK:
        data = _read(key[0], _MOST_SEARCHED)
        for name, pattern in _VERSION_IN_FILE[kind]:
            found = pattern.search(data)
            if found is not None:
                return f"{name} {found[1].decode('ascii', 'replace')}"
    named = _VERSION_IN_NAME.search(key[0])
    return None if named is None else (named[1] or named[2]).rstrip(".")


# What compilers leave in what they make (section .comment). The startup code of others is GCC's.
_COMPILERS = (
    ("Clang", re.compile(rb"clang version (\d+\.\d[\w.]*)")),
    ("GCC", re.compile(rb"GCC: \([^)\0]{0,100}\) (\d+\.\d[\w.]*)")),
)


def _compiler(key: _Key, shown: str) -> str | None:
    """Which compiler made an object of the user's own, if it says so: that of a project, or one
    that lies anywhere else than packages and the system do.
    """
    return None if shown.startswith(("{", "/")) else _compiler_in(key)


@lru_cache(4096)
def _compiler_in(key: _Key) -> str | None:
    data = _read(key[0], _MOST_SEARCHED)
    for name, pattern in _COMPILERS:
        found = pattern.search(data)
        if found is not None:
            return f"made by {name} {found[1].decode('ascii', 'replace')}"
    return None


_FIRST_SECONDS = 0.025
# Looks come rarer the longer a command runs, but never later than a tenth of its time so far.
_EARLY_SECONDS = 0.4
_MOST_SECONDS = 5.0
_SHARE = 0.1
_MOST_PROCESSES = 512


class SeenProgram(Struct):
    """What was seen of the processes of a command.

    files: mapped executable, with what tells that they are still the same. variables: the values
    that processes had, for each name of the allow-list. secrets: what must not be shown of them.
    """

    files: dict[MappedFile, _Key] = field(default_factory=dict)
    variables: dict[str, set[str]] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        """Without the secrets, which would stand in a traceback or a log."""
        return f"SeenProgram({len(self.files)} files)"


class _Process(Struct):
    """What was seen of one process. program: the file that it runs."""

    program: MappedFile | None = None
    text: bytes = b""
    files: dict[MappedFile, _Key] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Without the secrets, as above."""
        return f"_Process({self.program})"


class ProgramWatcher:
    """Looks at the process trees of commands, at 0.025, 0.075, 0.175, 0.375 ... s, then rarer.

    Processes and libraries that live shorter than that may be missed: what is reported is what was
    seen. One watcher may watch several commands, also at the same time. is_thorough: looks all the
    time, for whoever does not care what that costs the command.
    """

    def __init__(self, *, is_thorough: bool = False) -> None:
        self.is_thorough = is_thorough
        self._lock = threading.Lock()
        self._processes: dict[tuple[int, int], _Process] = {}
        self._shells: dict[int, tuple[str, int]] = {}

    @property
    def seen(self) -> SeenProgram:
        """What was seen so far, of all processes together."""
        found = SeenProgram()
        with self._lock:
            for (pid, _), process in self._processes.items():
                program = process.program
                if program and (program.path, program.inode) == self._shells.get(pid):
                    continue  # the shell that starts a command is no part of it
                found.files.update(process.files)
                found.secrets.update(process.secrets)
                for name, value in process.variables.items():
                    found.variables.setdefault(name, set()).add(value)
        return found

    def watch(self, pid: int, *, has_shell: bool = False) -> Watch:
        """Watches a command, as long as the context lasts. pid: leader of a session of its own.
        has_shell: whether that is the shell that runs the command.
        """
        shell = Path(os.path.realpath("/bin/sh"))
        if has_shell and shell.exists():
            self._shells[pid] = str(shell), shell.stat().st_ino
        return Watch(self, pid)

    def look(self, pid: int) -> None:
        """Looks once at a process and all that belong to it."""
        with self._lock:
            for member in members_of(pid):
                self._look_at(member)

    def _look_at(self, member: tuple[int, int]) -> None:
        pid = member[0]
        text = _read(f"/proc/{pid}/maps", _MOST_TEXT)
        process = self._processes.get(member, _Process())
        mapped = [] if not text or process.text == text else mapped_files(text)
        if not mapped:
            return
        if mapped[0] != process.program:
            # A shell or a launcher that has become another program is part of it no longer.
            process = _Process(mapped[0])
            environment = _environment(_read(f"/proc/{pid}/environ", _MOST_TEXT))
            process.secrets = secrets_of(environment)
            process.variables = {
                name: value for name, value in environment.items() if kind_of_variable(name)
            }
        process.text = text
        new = [file for file in mapped if file not in process.files]
        process.files.update(look_at(new, root=f"/proc/{pid}/root"))
        self._processes[member] = process


class Watch:
    """Watching one command, in a thread of its own."""

    def __init__(self, watcher: ProgramWatcher, pid: int) -> None:
        self._watcher, self._pid = watcher, pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        begun = time.monotonic()
        pause = _FIRST_SECONDS
        while not self._ended.wait(pause):
            self._watcher.look(self._pid)
            if not self._watcher.is_thorough:
                early = min(2 * pause, _EARLY_SECONDS)
                pause = min(max(early, _SHARE * (time.monotonic() - begun)), _MOST_SECONDS)


def members_of(leader: int) -> list[tuple[int, int]]:
    """The process, its descendants and all others of its session; each with its start time.

    Descendants alone would miss those whose parent has ended, and the session those that have
    made one of their own, as launchers of MPI do.
    """
    processes = {one.pid: one for one in all_processes()}
    found = {one.pid for one in processes.values() if one.session == leader}
    found.add(leader)
    is_new = True
    while is_new:
        more = {one.pid for one in processes.values() if one.parent in found} - found
        found |= more
        is_new = bool(more)
    there = [(pid, processes[pid].started) for pid in sorted(found) if pid in processes]
    return there[:_MOST_PROCESSES]


def can_look() -> bool:
    """Whether this system says what processes have loaded. macOS does not."""
    return os.access("/proc/self/maps", os.R_OK)


def require_look() -> None:
    """Raises NotAvailableError where it does not."""
    if not can_look():
        raise NotAvailableError(
            "this system does not say what processes have loaded",
            remedy="take and compare snapshots of programs on Linux",
        )


def own_variables() -> dict[str, set[str]]:
    """The variables of the allow-list that this process has."""
    return {name: {value} for name, value in os.environ.items() if kind_of_variable(name)}


def _environment(block: bytes) -> dict[str, str]:
    """The variables of a process, as the kernel has them."""
    entries = (entry.partition(b"=") for entry in block.split(b"\0"))
    return {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, is_set, value in entries
        if is_set
    }


def _read(path: str | Path, most: int) -> bytes:
    """The first bytes of a file; none of one that is gone, or that may not be read."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            return stream.read(most)
    except OSError:
        return b""


_SYS = Path("/sys/devices/system")
_CPU = _SYS / "cpu"
# What kernels of numerical libraries choose by; all flags would be a hundred words.
_FLAGS = (
    *("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"),
    *("avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16"),
    *("asimd", "asimddp", "sve", "sve2", "bf16"),
)
# arm64 kernels tell numbers instead of a name: who made the processor, and which one it is
# (MIDR_EL1 in the Arm Architecture Reference Manual, and each maker's manuals).
_ARM_MAKERS = {
    "0x41": "Arm", "0x42": "Broadcom", "0x43": "Cavium", "0x46": "Fujitsu", "0x48": "HiSilicon",
    "0x4e": "NVIDIA", "0x50": "Applied Micro", "0x51": "Qualcomm", "0x61": "Apple",
    "0xc0": "Ampere",
}  # fmt: skip
_ARM_CORES = {
    "0xd03": "Cortex-A53", "0xd07": "Cortex-A57", "0xd08": "Cortex-A72", "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2",
}  # fmt: skip


def machine_facts() -> dict[str, str]:
    """Facts by name, in a stable order; what this machine does not tell is left out."""
    facts = {
        "cpu": _cpu_info()[0],
        "cpu_count": str(usable_cpus()),
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu_flags": _cpu_info()[2],
        "microcode": _cpu_info()[1],
        "hypervisor": _cpu_info()[3],
        "governor": _line(_CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "smt": _line(_CPU / "smt/control"),
        "numa_nodes": _line(_SYS / "node/online"),
        "huge_pages": _chosen(_line(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        "aslr": _line(Path("/proc/sys/kernel/randomize_va_space")),
        "affinity": _affinity(),
        "cgroup_cpus": _cgroup_cpus(),
        "cgroup_memory": _cgroup_memory(),
    }
    return {name: value for name, value in facts.items() if value}


def usable_cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _os_name() -> str:
    """The name and version of the distribution."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.platform(terse=True)
    return release.get("PRETTY_NAME") or platform.platform(terse=True)


@cache
def _cpu_info() -> tuple[str, str, str, str]:
    """Model, microcode, flags that matter, and whether it is virtual, of the first processor."""
    facts: dict[str, str] = {}
    for line in _read("/proc/cpuinfo", _MOST_TEXT).decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    model = next(
        (facts[key] for key in ("model name", "Model", "cpu model") if facts.get(key)),
        _arm_model(facts)
        or _sysctl("machdep.cpu.brand_string")
        or platform.processor()
        or platform.machine(),
    )
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    vendor = _line(Path("/sys/hypervisor/type")) or ("yes" if "hypervisor" in flags else "")
    return model, facts.get("microcode", ""), " ".join(f for f in _FLAGS if f in flags), vendor


def _arm_model(facts: dict[str, str]) -> str:
    """As `Arm Neoverse N1 r3p1`; empty where /proc/cpuinfo tells no maker."""
    maker, part = facts.get("CPU implementer", ""), facts.get("CPU part", "")
    if not maker or not part:
        return ""
    core = _ARM_CORES.get(part) if maker == "0x41" else None
    variant = facts.get("CPU variant", "0x0").removeprefix("0x")
    stepping = f"r{variant}p{facts.get('CPU revision', '0')}"
    return f"{_ARM_MAKERS.get(maker, f'maker {maker}')} {core or f'part {part}'} {stepping}"


def _sysctl(name: str) -> str:
    """What macOS says of itself; nothing elsewhere."""
    if platform.system() != "Darwin":
        return ""
    import subprocess

    try:
        told = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.decode("utf-8", "replace").partition("\n")[0].strip()


def _turbo() -> str:
    off = _line(_CPU / "intel_pstate/no_turbo")
    if off:
        return "off" if off == "1" else "on"
    boost = _line(_CPU / "cpufreq/boost")
    return {"1": "on", "0": "off"}.get(boost, "")


def _affinity() -> str:
    """The processors that may be used, as `0-3,8`."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    ranges: list[list[int]] = []
    for core in sorted(os.sched_getaffinity(0)):
        if ranges and core == ranges[-1][1] + 1:
            ranges[-1][1] = core
        else:
            ranges.append([core, core])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _cgroup_cpus() -> str:
    """Processors' worth of time that the control group allows; empty for no limit."""
    found = _line(Path("/sys/fs/cgroup/cpu.max")).split()
    if not found:
        folder = Path("/sys/fs/cgroup/cpu")
        found = [_line(folder / "cpu.cfs_quota_us"), _line(folder / "cpu.cfs_period_us")]
    if len(found) == 2 and found[0].isdecimal() and found[1].isdecimal() and int(found[1]):
        return f"{int(found[0]) / int(found[1]):g}"
    return ""


def _cgroup_memory() -> str:
    """Bytes that the control group allows; empty for no limit."""
    for path in ("memory.max", "memory/memory.limit_in_bytes"):
        found = _line(Path("/sys/fs/cgroup") / path)
        if found.isdecimal() and int(found) < 1 << 60:
            return found
    return ""


def _chosen(text: str) -> str:
    """The word in brackets: `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0]


def _line(path: Path) -> str:
    return _read(path, _MOST_TEXT).decode("utf-8", "replace").partition("\n")[0].strip()


NAMES = (
    *("requirements.lock", "requirements.txt", "uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"),
    *("Pipfile.lock", "conda-lock.yml", "conda-linux-64.lock", "environment.yml", "pixi.lock"),
    *("spack.lock", "spack.yaml", "Cargo.lock", "Manifest.toml"),
)
_MOST_LOCK_BYTES = 16 << 20


def lock_files_in(folder: Path) -> dict[str, str]:
    """SHA-256 by name, of the lock files in a folder. Those that cannot be read are left out."""
    found = {}
    for name in NAMES:
        path = folder / name
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size <= _MOST_LOCK_BYTES:
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


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
    program = SeenProgram(look_at(mapped_files(_read("/proc/self/maps", _MOST_TEXT))))
    cleaner = Cleaner(root=folder.resolve())
    return _snapshot(
        folder,
        cleaner,
        seen="process" if can_look() else "nothing",
        versions={**_own_python(), **_loaded_versions()},
        variables=own_variables(),
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
    own = {name: str(version) for name, version in sorted(_core.library_versions().items())}
    return Snapshot(
        machine=machine_facts(),
        versions={**versions, "ciwrap": __version__, **own},
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
        return "docker (image unknown)" if Path("/.dockerenv").exists() else None
    named = _IMAGE.findall(text)
    return cleaner.text(" ".join(named)) if named else "podman (image unknown)"


def _repository(folder: Path) -> dict[str, str]:
    commit = git_commit(folder)
    if commit is None:
        return {}
    changed = commit.endswith(DIRTY)
    return {"commit": commit.removesuffix(DIRTY), "dirty": "yes" if changed else "no"}


@cache
def package_version(name: str) -> str | None:
    """The version of a package that this Python has; None without it."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
