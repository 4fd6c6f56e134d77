"""Where pytest is told to keep the goldens of tests, if its configuration says so."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.config.nodes import MAX_BYTES

if TYPE_CHECKING:
    from ciwrap.changes.file_trees import FileTree

# In the order in which pytest looks for its configuration.
_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
# The same in TOML and in the other notation.
_KEY = re.compile(
    r"""^ciwrap_golden_dir\s*[=:]\s*(?:"([^"]*)"|'([^']*)'|([^#;\n]*))""", re.MULTILINE
)


def golden_dir_of_tests(tree: FileTree, start: str) -> str | None:
    """The folder from the top of the repository; None where it is that of all goldens.

    start: the folder that pytest is started in, or one below.
    """
    folder = PurePosixPath(start)
    names = [(one / name).as_posix() for one in (folder, *folder.parents) for name in _FILES]
    for name, data in tree.read(names, MAX_BYTES).items():
        found = _KEY.search(data.decode("utf-8", "replace"))
        named = "" if found is None else (found[1] or found[2] or found[3] or "").strip()
        if named:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), named))
            return "" if path == "." else path
    return None
