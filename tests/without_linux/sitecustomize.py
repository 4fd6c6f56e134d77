"""Takes from Python what Linux alone has, so that tests show what macOS would do.

    PYTHONPATH=tests/without_linux pytest tests/unit

Python imports a module of this name when it starts, in every process that inherits the variable.
Left is what POSIX has: no call and no option of Linux's own, and neither /proc nor /sys.
"""

import errno
import fcntl
import os
import sys

_CALLS = (
    *("posix_fadvise", "posix_fallocate", "memfd_create", "pidfd_open", "preadv", "pwritev"),
    *("sched_getaffinity", "sched_setaffinity", "copy_file_range", "splice", "eventfd", "fork"),
)
_OPTIONS = ("F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_ADD_SEALS", "F_GET_SEALS")
_FOLDERS = ("/proc", "/sys")


def _is_hidden(path: object) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    text = os.fsdecode(path)
    return text in _FOLDERS or text.startswith(tuple(f"{folder}/" for folder in _FOLDERS))


def _hide(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir"):
        path = arguments[0]
        if _is_hidden(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


for _name in _CALLS:
    if hasattr(os, _name):
        delattr(os, _name)
for _name in _OPTIONS:
    if hasattr(fcntl, _name):
        delattr(fcntl, _name)
_access = os.access


os.access = lambda path, *rest, **more: not _is_hidden(path) and _access(path, *rest, **more)
sys.addaudithook(_hide)
# By which tests know that they run so.
sys.without_linux = True  # type: ignore[attr-defined]
