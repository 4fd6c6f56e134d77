"""What a snapshot holds."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

FORMAT_VERSION = 1
# Between the values of a variable that processes of one program did not agree on.
SEVERAL = " | "

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{2,128}$", max_length=128)]
Size = Annotated[int, msgspec.Meta(ge=0)]


class LoadedObject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of machine code that a program had mapped: a shared object, or the program itself.

    path: as `ciwrap.snapshot.private` shortens it. kind: what it does, a key of
    `ciwrap.snapshot.kinds.KINDS`. build_id: the GNU build ID, in hexadecimal; None without one,
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
