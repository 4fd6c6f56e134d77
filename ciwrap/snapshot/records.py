"""What a snapshot holds, and the one list of what it looks for, by how likely that changes numbers.

Digests of loaded objects are GNU build IDs (little-endian ELF files of 64 bits), of other files
SHA-256. Names of hosts, users and home folders, and secrets, are removed from all texts. Python
packages are known by the names of their metadata folders, which takes a millisecond.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import msgspec
from msgspec import Struct

from ciwrap.base.secrets import HIDDEN, hide_secrets, secrets_of

FORMAT_VERSION = 1
# Between the values of a variable that processes of one program did not agree on.
SEVERAL = " | "

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{2,128}$", max_length=128)]
Size = Annotated[int, msgspec.Meta(ge=0)]


class LoadedObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of machine code that a program had mapped: a shared object, or the program itself.

    path: as `ciwrap.snapshot.records` shortens it. kind: what it does, a key of
    `ciwrap.snapshot.records.KINDS`. build_id: the GNU build ID, in hexadecimal; None without one,
    and then sha256 is known. version: what the file says of its version, where it says it.
    """

    path: str
    kind: str
    size: Size
    build_id: Digest | None = None
    sha256: Digest | None = None
    version: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def same_bits(self, other: LoadedObject) -> bool:
        """Whether both are one build; False where neither digest is known of both."""
        if self.sha256 is not None and other.sha256 is not None:
            return self.sha256 == other.sha256
        return self.build_id is not None and self.build_id == other.build_id

    def identity_beside(self, other: LoadedObject) -> str:
        """The same, that also tells two of one build ID apart, as of a file that was edited."""
        if self.identity == other.identity and self.sha256 != other.sha256:
            return f"{self.identity}, sha256 {(self.sha256 or 'unknown')[:12]}"
        return self.identity

    @property
    def identity(self) -> str:
        """What tells this build from others, short, for people."""
        if self.build_id is not None:
            words = f"build {self.build_id[:12]}"
        else:
            words = f"sha256 {(self.sha256 or 'unknown')[:12]}"
        return f"{self.version}, {words}" if self.version else words


class Blas(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A BLAS or an OpenMP runtime of this process, as threadpoolctl knows it."""

    api: str
    name: str
    version: str | None = None
    architecture: str | None = None
    threads: int | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment of one program, or of this machine.

    seen: what `objects` are of: "program" (the processes of a command, polled while it ran, so that
    short-lived ones may be missed), "process" (this very process), or "nothing". machine: facts of
    hardware and kernel; nothing in them can be restored. versions: of Python, ciwrap and what it is
    built with, MPI and CUDA. variables: those of an allow-list that are set; several processes that
    do not agree are parted by " | ". packages: of the Python that ran, by name. modules:
    environment modules. system_packages: those of the distribution that own objects; only where
    they were asked for, since that takes half a second. lock_files: SHA-256 by path. container:
    the image's name or digest. repository: commit, and whether tracked files differed. command:
    what was run. local_packages: those of packages that came from a folder, a file or a repository,
    so that an index may not have them, or somebody else's of their name.
    """

    format: int = FORMAT_VERSION
    seen: Literal["program", "process", "nothing"]
    machine: dict[str, str]
    versions: dict[str, str]
    variables: dict[str, str]
    packages: dict[str, str]
    objects: tuple[LoadedObject, ...] = ()
    blas: tuple[Blas, ...] = ()
    modules: tuple[str, ...] = ()
    lock_files: dict[str, Digest] = {}
    system_packages: dict[str, str] = {}
    container: str | None = None
    repository: dict[str, str] = {}
    command: str | None = None
    local_packages: tuple[str, ...] = ()

    @property
    def index_packages(self) -> dict[str, str]:
        """Versions by name of the packages that an index gave."""
        return {
            name: version
            for name, version in self.packages.items()
            if name not in self.local_packages
        }


# From what changes numbers most often to what hardly ever does; each with its words.
KINDS = {
    "maths": "BLAS, LAPACK or libm",
    "cpu": "CPU level",
    "threads": "thread settings",
    "runtime": "compiler runtime",
    "mpi": "MPI",
    "gpu": "GPU library",
    "object": "other objects",
    "package": "Python packages",
    "settings": "other settings",
    "kernel": "kernel and machine",
    "source": "the program itself",
}
RANKS = {kind: number for number, kind in enumerate(KINDS)}

_LIBRARIES = (
    (
        "maths",
        (
            r"openblas|mkl|blis|flexiblas|atlas|(?:c|f77)?blas|lapacke?|nvpl_(?:blas|lapack)|armpl"
            r"|libsci|flame|m|mvec|imf|svml|amdlibm|sleef|fftw3[fl]?|aocl"
        ),
    ),
    ("mpi", r"mpi|mpich|mpifort|mpicxx|mpi_cxx|open-pal|open-rte|pmix|ucp|fabric"),
    ("gpu", r"cuda|cudart|cublas|cublasLt|cusolver|cusparse|cufft|nvrtc|cudnn|amdhip64|rocblas"),
    (
        "runtime",
        (
            r"gomp|iomp5|omp|gcc_s|stdc\+\+|c\+\+|gfortran|quadmath|flang|ifcore|intlc|irc|nvf|nvc|c"
            r"|ld-linux.*|pthread|tbb"
        ),
    ),
)
_PATTERNS = tuple(
    (kind, re.compile(rf"(?:lib)?(?:scipy_)?(?:{names})(?:64_?|32)?(?:_[a-z0-9]+)*(?=[-._]|$)"))
    for kind, names in _LIBRARIES
)
# A system's own, that may stand without any suffix: they are known by their whole name.
_WHOLE = re.compile(r"lib[^/]*\.so(?:\.[\d.]+)?$|ld-linux[^/]*$|lib[^/]*-[^/]*\.so[^/]*$")

# Variables that are kept. No pattern is in it: a name that is not here is never read.
VARIABLES = {
    "cpu": (
        *("OPENBLAS_CORETYPE", "OPENBLAS_VERBOSE", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"),
        *("MKL_DEBUG_CPU_TYPE", "BLIS_ARCH_TYPE", "GLIBC_TUNABLES", "NPY_DISABLE_CPU_FEATURES"),
        *("NPY_ENABLE_CPU_FEATURES", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"),
        *("DNNL_MAX_CPU_ISA", "FLEXIBLAS", "MKL_INTERFACE_LAYER", "NUMBA_CPU_NAME"),
    ),
    "threads": (
        *("OMP_NUM_THREADS", "OMP_DYNAMIC", "OMP_SCHEDULE", "OMP_PROC_BIND", "OMP_PLACES"),
        *("OMP_NESTED", "OMP_MAX_ACTIVE_LEVELS", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY"),
        *("MKL_NUM_THREADS", "MKL_DYNAMIC", "MKL_THREADING_LAYER", "OPENBLAS_NUM_THREADS"),
        *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
        *("NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "KOKKOS_NUM_THREADS", "GOMP_CPU_AFFINITY"),
        *("KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_DETERMINISTIC_REDUCTION", "GOTO_NUM_THREADS"),
        *("JULIA_NUM_THREADS", "TBB_NUM_THREADS", "SLURM_CPUS_PER_TASK"),
    ),
    "mpi": (
        *("OMPI_MCA_coll", "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_mtl", "OMPI_MCA_coll_tuned"),
        *("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPICH_ASYNC_PROGRESS", "SLURM_NTASKS"),
        *("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "MPIR_CVAR_REDUCE_INTRA_ALGORITHM"),
        *("I_MPI_FABRICS", "I_MPI_CBWR", "I_MPI_ADJUST_ALLREDUCE", "UCX_TLS", "FI_PROVIDER"),
    ),
    "gpu": (
        *("CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE"),
        *("CUDA_LAUNCH_BLOCKING", "TF_DETERMINISTIC_OPS", "HIP_VISIBLE_DEVICES"),
    ),
    "object": ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW", "MALLOC_ARENA_MAX"),
    "settings": (
        *("PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONPATH", "LC_ALL", "LC_NUMERIC", "LANG", "TZ"),
        *("CONDA_DEFAULT_ENV", "SPACK_ENV"),
    ),
}
PATH_LISTS = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "SPACK_ENV"})
_KIND_OF_VARIABLE = {name: kind for kind, names in VARIABLES.items() for name in names}

# Facts of the machine and the summary.
_KIND_OF_FACT = {
    "blas": "maths", "libm": "maths", "blas_architecture": "cpu",
    "cpu_level": "cpu", "cpu_flags": "cpu", "cpu": "cpu", "machine": "cpu", "cpu_levels": "cpu",
    "cpu_count": "threads", "affinity": "threads", "cgroup_cpus": "threads", "smt": "threads",
    "blas_threads": "threads",
    "compiler_runtime": "runtime", "mpi": "mpi", "cuda": "gpu",
    "container": "object", "modules": "object", "lock_files": "package",
    "python": "package", "numpy": "package", "packages": "package",
    "git_commit": "source", "ciwrap": "source", "command": "source", "snapshot": "source",
}  # fmt: skip
OWN_LIBRARIES = frozenset({"kokkos", "zstd", "liburing", "compiler", "core"})
# They tell of the change itself, or stand for all else: that they differ is no finding.
EXPECTED_TO_DIFFER = frozenset({"git_commit", "ciwrap", "snapshot", "dirty", "commit"})


def kind_of_library(name: str) -> str:
    """The kind of an object by its file name: `libm.so.6` is "maths", `sim` is "object"."""
    for kind, pattern in _PATTERNS:
        if pattern.match(name) and _WHOLE.match(name):
            return kind
    return "object"


def kind_of_variable(name: str) -> str | None:
    """The kind of an environment variable; None for one that is never read."""
    return _KIND_OF_VARIABLE.get(name)


def kind_of_fact(key: str) -> str:
    """The kind of a fact in a summary or of the machine."""
    return (
        _KIND_OF_FACT.get(key)
        or kind_of_variable(key)
        or ("source" if key in OWN_LIBRARIES else "kernel")
    )


_LINE = re.compile(
    rb"[0-9a-f]{1,16}-[0-9a-f]{1,16} (?P<access>[r-][w-][x-][sp]) [0-9a-f]{1,16}"
    rb" (?P<major>[0-9a-f]{1,8}):(?P<minor>[0-9a-f]{1,8}) (?P<inode>\d{1,20}) +(?P<path>/.*)"
)
_DELETED = b" (deleted)"


class MappedFile(Struct, frozen=True):
    """A file that is mapped to be executed. device: major and minor number."""

    path: str
    device: tuple[int, int]
    inode: int


def mapped_files(text: bytes) -> list[MappedFile]:
    """The files that are mapped executable, each once, in the order of their addresses.

    Lines that are none of the kernel's are passed over, and so are files that are gone from the
    disk. The format: proc_pid_maps(5).
    """
    found: dict[MappedFile, None] = {}
    for line in text.split(b"\n"):
        parts = _LINE.fullmatch(line)
        if parts is None or parts["access"][2:3] != b"x" or parts["path"].endswith(_DELETED):
            continue
        # The kernel escapes line breaks alone, so that other backslashes are the name's own.
        path = parts["path"].replace(rb"\012", b"\n")
        device = (int(parts["major"], 16), int(parts["minor"], 16))
        text_path = path.decode("utf-8", "surrogateescape")
        found[MappedFile(text_path, device, int(parts["inode"]))] = None
    return list(found)


_PT_NOTE = 4
_NT_GNU_BUILD_ID = 3
_MOST_SEGMENTS = 512
_MOST_NOTE_BYTES = 1 << 16
_MOST_ID_BYTES = 64
# Magic, class and byte order, e_phoff, e_phentsize, e_phnum.
_HEADER = struct.Struct("<4s2s26xQ14xHH")
# Type, offset, size in the file, alignment.
_SEGMENT = struct.Struct("<I4xQ16xQ8xQ")
_NOTE = struct.Struct("<III")


def build_id_of(stream: BinaryIO) -> str | None:
    """The build ID in hexadecimal; None for what is no such ELF file, is damaged, or has none.

    stream: seekable, of bytes that nobody vouches for. Raises OSError. The format: System V ABI,
    chapters 4 and 5, and elf(5).
    """
    head = _read_at(stream, 0, _HEADER.size)
    if len(head) < _HEADER.size:
        return None
    magic, kind, table, entry_bytes, count = _HEADER.unpack(head)
    is_known = (magic, kind, entry_bytes) == (b"\x7fELF", b"\2\1", _SEGMENT.size)
    if not is_known or count > _MOST_SEGMENTS:
        return None
    segments = _read_at(stream, table, entry_bytes * count)
    for start in range(0, len(segments) - entry_bytes + 1, entry_bytes):
        kind, offset, size, align = _SEGMENT.unpack_from(segments, start)
        if kind == _PT_NOTE:
            notes = _read_at(stream, offset, min(size, _MOST_NOTE_BYTES))
            found = find_build_id(notes, align)
            if found is not None:
                return found
    return None


def find_build_id(notes: bytes, align: int = 4) -> str | None:
    """The build ID among the notes of a segment; None without one, or where they are damaged.

    align: what name and content of a note are padded to.
    """
    align = 8 if align == 8 else 4
    at = 0
    while at + _NOTE.size <= len(notes):
        name_bytes, id_bytes, kind = _NOTE.unpack_from(notes, at)
        name_at = at + _NOTE.size
        id_at = at + _padded(_NOTE.size + name_bytes, align)
        end = id_at + id_bytes
        if end > len(notes):
            return None
        is_build_id = kind == _NT_GNU_BUILD_ID and notes[name_at : name_at + name_bytes] == b"GNU\0"
        if is_build_id and 0 < id_bytes <= _MOST_ID_BYTES:
            return notes[id_at:end].hex()
        at = id_at + _padded(id_bytes, align)
    return None


def _padded(size: int, align: int) -> int:
    return -(-size // align) * align


def _read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    if offset >= 1 << 62:
        return b""
    stream.seek(offset)
    return stream.read(size)


# Folders that everybody has, whose paths tell nothing about anybody.
_PUBLIC = ("/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/opt/", "/etc/", "/nix/store/")
_SPACK = re.compile(r"^.*/(?=[a-z0-9][\w.-]*-[\w.]+-[a-z0-9]{32}/)")
_PACKAGES = re.compile(r"^.*/(?:site|dist)-packages/")
# The home folder of anybody, also of one who is not here.
_HOMES = re.compile(r"(?<![\w.~-])/(?:home|Users)/[^/\s:;,'\"]+")


class Cleaner:
    """Cleans the texts of one snapshot.

    environment: the variables that secrets are looked for in; those of this process by default.
    root: the folder that paths are shown relative to. secrets: others that are known.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        root: Path | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        given = os.environ if environment is None else environment
        self._root = str(root) if root is not None else ""
        self._home = _home()
        self._prefixes = tuple(
            dict.fromkeys(one for one in (sys.prefix, sys.base_prefix) if one not in ("/usr", "/"))
        )
        self._secrets = secrets_of(given).union(secrets)
        host = socket.gethostname()
        names = (_user(), host, host.partition(".")[0])
        words = {re.escape(word) for word in names if len(word) > 2}
        words -= {"root", "localhost"}
        self._words = (
            re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(words))})(?![\w-])") if words else None
        )

    def text(self, text: str) -> str:
        """A short text without secrets, home, user and host."""
        text = hide_secrets(text, self._secrets)
        if self._root not in ("", "/"):
            text = text.replace(self._root, ".")
        if self._home not in ("", "/"):
            text = text.replace(self._home, "~")
        text = _HOMES.sub("~", text)
        return text if self._words is None else self._words.sub(HIDDEN, text)

    def path(self, path: str) -> str:
        """A path as everybody may see it: as it is below /usr and its like, else relative to
        site-packages, the Python installation or the project, else its name alone.
        """
        inside = _PACKAGES.match(path)
        if inside:
            return self.text(f"{{packages}}/{path[inside.end() :]}")
        spack = _SPACK.match(path)
        if spack:
            return self.text(f"{{spack}}/{path[spack.end() :]}")
        if path.startswith(_PUBLIC):
            return self.text(path)
        for prefix in self._prefixes:
            if path.startswith(f"{prefix}/"):
                return self.text(f"{{python}}{path[len(prefix) :]}")
        if self._root not in ("", "/") and path.startswith(f"{self._root}/"):
            return self.text(f".{path[len(self._root) :]}")
        return self.text(f".../{path.rpartition('/')[2]}")

    def paths(self, text: str) -> str:
        """A list of paths parted by colons, each as in `path`."""
        return ":".join(
            self.path(part) if part.startswith("/") else part for part in text.split(":")
        )


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


_METADATA = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<version>[\w.+!]+)\.(?:dist|egg)-info")
_FOLDER = re.compile(r"^(?P<folder>.*/(?:site|dist)-packages)/")
_ASK_SECONDS = 20.0


class Packages(Struct, frozen=True):
    """Versions by normalised name (PEP 503), sorted.

    local: those that came from a folder, a file or a repository (PEP 610), and from no index.
    """

    versions: dict[str, str]
    local: tuple[str, ...]


def packages_in(folders: Iterable[str | Path]) -> Packages:
    """The packages in these folders; the first folder that has one counts."""
    found: dict[str, str] = {}
    local = set()
    for folder in folders:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - of many names, as texts
        except OSError:
            continue
        for name in sorted(names):
            parts = _METADATA.fullmatch(name)
            if parts is None:
                continue
            key = re.sub(r"[-_.]+", "-", parts["name"]).lower()  # as indices compare them
            if key in found:
                continue
            found[key] = parts["version"]
            if _is_local(Path(folder, name)):
                local.add(key)
    return Packages(dict(sorted(found.items())), tuple(sorted(local)))


def _is_local(metadata: Path) -> bool:
    """Whether a package's metadata name a place that is no index. Those of conda name the folder
    that it was built in, on a machine of conda's.
    """
    if not (metadata / "direct_url.json").exists():
        return False
    try:
        return (metadata / "INSTALLER").read_bytes().strip() != b"conda"
    except OSError:
        return True


def package_folders(mapped: Iterable[str]) -> list[str]:
    """The folders of packages that mapped files lie in, the most used first."""
    insides = map(_FOLDER.match, mapped)
    counts = Counter(inside["folder"] for inside in insides if inside)
    return sorted(counts, key=lambda folder: (-counts[folder], folder))


def owning_packages(paths: Iterable[str]) -> dict[str, str]:
    """Versions of the distribution's packages that files belong to, by name (Debian's dpkg).

    Nothing on other distributions, and for files that belong to none.
    """
    asked = sorted(path for path in paths if path.startswith(("/usr/", "/lib", "/bin/")))
    # A library may have been installed under /lib, which is /usr/lib by now.
    asked += [path.removeprefix("/usr") for path in asked if path.startswith("/usr/lib")]
    owners = {
        package.strip().partition(":")[0]
        for line in _dpkg("-S", *asked)
        for package in line.partition(": ")[0].split(",")
        if ": /" in line and not line.startswith("diversion")
    }
    versions = _dpkg("-W", "-f", "${Package} ${Version}\\n", *sorted(owners)) if owners else []
    return dict(sorted(line.split(" ") for line in versions if line.count(" ") == 1))


def _dpkg(*arguments: str) -> list[str]:
    """Lines of an answer; it may be part of one, since a file that nobody owns is an error."""
    import subprocess

    try:
        done = subprocess.run(
            ["dpkg-query", *arguments],
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=False,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()
