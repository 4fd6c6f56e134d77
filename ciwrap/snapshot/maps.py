"""What a process has mapped, as /proc/PID/maps says it."""

from __future__ import annotations

import re

from ciwrap.structs import Struct

_LINE = re.compile(
    rb"[0-9a-f]{1,16}-[0-9a-f]{1,16} (?P<access>[r-][w-][x-][sp]) [0-9a-f]{1,16}"
    rb" (?P<major>[0-9a-f]{1,8}):(?P<minor>[0-9a-f]{1,8}) (?P<inode>\d{1,20}) +(?P<path>/.*)"
)
_ESCAPE = re.compile(rb"\\([0-7]{3})")
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
        path = _ESCAPE.sub(_unescaped, parts["path"])
        device = (int(parts["major"], 16), int(parts["minor"], 16))
        text_path = path.decode("utf-8", "surrogateescape")
        found[MappedFile(text_path, device, int(parts["inode"]))] = None
    return list(found)


def _unescaped(match: re.Match[bytes]) -> bytes:
    return b"\n" if match[1] == b"012" else match[0]
