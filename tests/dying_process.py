"""A process that dies at a chosen step of what it does to files, and the disk that it leaves.

Nothing is started and nothing is killed: from that step on every call that would change a file
fails, so that no clean-up can take place, as it cannot in a process that is gone. What happens to
the files is what `kill -9` does to them; `lose_power` adds what a disk loses that was not flushed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_WRITING = os.O_WRONLY | os.O_RDWR
_watching: list[DyingProcess] = []


class DiedError(OSError):
    """The process is dead, and so is every call that it would still make."""


class DyingProcess:
    """What is done to files below a folder within `with`, up to and without step `last_step`.

    Swallows the error that its death ends in. steps: what was done, a word and a file's name each;
    if `is_dead`, the last of them was not done any more. Locks are no steps: the kernel takes them
    back.
    """

    def __init__(self, folder: Path, last_step: int | None = None) -> None:
        self._folder = folder
        self._last_step = last_step
        self.steps: list[tuple[str, str]] = []
        self.is_dead = False
        self._unflushed: set[Path] = set()
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> DyingProcess:
        self._kept = _core.write_golden, os.fsync, os.pwrite
        _core.write_golden = self._write  # type: ignore[assignment]
        os.fsync, os.pwrite = self._flush, self._write_at  # type: ignore[assignment]
        _watching.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        _watching.remove(self)
        _core.write_golden, os.fsync, os.pwrite = self._kept
        return self.is_dead and isinstance(error, Exception)

    def lose_power(self, lost_names: int = 1) -> None:
        """Takes back what was not flushed: half of each file's bytes, and the last few names.

        lost_names: how many creations, renames and removals in the folder are lost, if as many were
        not flushed.
        """
        for path in self._unflushed:
            if path.exists():
                os.truncate(path, path.stat().st_size // 2)
        for undo in self._undo[::-1][:lost_names]:
            undo()

    def saw(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Called by the interpreter before it does something. Raises DiedError."""
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, (str, os.PathLike)) or not flags & _WRITING:
                return
            path = Path(path)
            if self._is_ours(path):
                self._step("open", path)
                if not path.exists():
                    self._undo.append(lambda: path.unlink(missing_ok=True))
                self._unflushed.add(path)
        elif event in ("os.rename", "os.remove") and self._is_ours(path := Path(arguments[0])):
            if not path.exists():
                return  # nothing happens
            self._step(event, path)
            target = Path(arguments[1]) if event == "os.rename" else path
            old = target.read_bytes() if target.exists() else None
            self._undo.append(lambda: _put_back(path, target, old))
            if path in self._unflushed:
                self._unflushed.remove(path)
                self._unflushed.add(target)
        elif event == "os.truncate":
            path = _path_of(arguments[0]) if isinstance(arguments[0], int) else Path(arguments[0])
            if self._is_ours(path):
                self._step(event, path)
        elif event in ("os.mkdir", "os.rmdir"):
            path = Path(arguments[0])
            if self._is_ours(path) and path.exists() == (event == "os.rmdir"):
                self._step(event, path)

    def _is_ours(self, path: Path) -> bool:
        return path.is_relative_to(self._folder) and not path.name.endswith(".lock")

    def _step(self, what: str, path: Path) -> None:
        if not self.is_dead:
            self.steps.append((what, path.name))
            self.is_dead = len(self.steps) - 1 == self._last_step
        if self.is_dead:
            raise DiedError(f"died at step {self._last_step}, {what} {path.name}")

    def _write(self, path: str, variables: Any) -> Any:
        """In place of the core's own writing, which the interpreter does not see: in two steps."""
        self._step("write", Path(path))
        self._undo.append(lambda: Path(path).unlink(missing_ok=True))
        self._unflushed.add(Path(path))
        root = self._kept[0](path, variables)
        try:
            self._step("write the rest", Path(path))
        except DiedError:
            _watching.remove(self)
            os.truncate(path, Path(path).stat().st_size // 2)
            _watching.append(self)
            raise
        return root

    def _write_at(self, descriptor: int, data: Any, offset: int) -> int:
        path = _path_of(descriptor)
        if self._is_ours(path):
            self._unflushed.add(path)
            if not self.is_dead:
                # Half of it, should this be the end.
                self._kept[2](descriptor, bytes(data)[: len(data) // 2], offset)
            self._step("write", path)
        return self._kept[2](descriptor, data, offset)

    def _flush(self, descriptor: int) -> None:
        path = _path_of(descriptor)
        self._step("flush", path)
        if path.is_dir():
            self._undo.clear()
        self._unflushed.discard(path)


def _path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


def _put_back(path: Path, target: Path, old: bytes | None) -> None:
    if target != path:
        target.rename(path)
    if old is not None:
        target.write_bytes(old)


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching:
        _watching[-1].saw(event, arguments)


sys.addaudithook(_watch)
