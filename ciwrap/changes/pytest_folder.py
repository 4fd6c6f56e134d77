"""Where pytest is told to keep the goldens of tests, if its configuration says so."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ciwrap.config.nodes import MAX_BYTES

if TYPE_CHECKING:
    from ciwrap.changes.file_trees import FileTree

# In the order in which pytest looks for its configuration, with the line that begins it: the first
# file that has one is the only one that pytest reads. The others need none.
_FILES = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": r"""[ \t]*\[?[ \t]*["']?tool["']?[ \t]*\.[ \t]*["']?pytest\b""",
    "tox.ini": r"\[pytest\]",
    "setup.cfg": r"\[tool:pytest\]",
}
# The same in TOML, where it may be indented, be quoted, or follow the name of its table, and in the
# other notation.
_VALUE = r"""[ \t]*[=:][ \t]*(?:"([^"]*)"|'([^']*)'|([^#;\n]*))"""
_IN_TOML = re.compile(
    rf"""^(?:[^#\n]*[ \t.{{,])?["']?ciwrap_golden_dir["']?{_VALUE}""", re.MULTILINE
)
_IN_INI = re.compile(rf"^ciwrap_golden_dir{_VALUE}", re.MULTILINE)
# Among `addopts`, which go before the key itself.
_OPTION = re.compile(
    r"""^[^#;\n]*(?:-o|--override-ini)[ =]*["']?ciwrap_golden_dir=([^\s"',\]]+)()()""", re.MULTILINE
)


def golden_dir_of_tests(tree: FileTree, start: str) -> str | None:
    """The folder from the top of the repository; None where it is that of all goldens.

    start: the folder that pytest is started in, or one below.
    """
    folder = PurePosixPath(start)
    names = [(one / name).as_posix() for one in (folder, *folder.parents) for name in _FILES]
    for name, data in tree.read(names, MAX_BYTES).items():
        file = PurePosixPath(name)
        text = data.decode("utf-8", "replace").replace("\r\n", "\n")
        begin = re.search(f"^{_FILES[file.name]}", text, re.MULTILINE)
        if begin is None:
            continue
        own = text[begin.start() :]
        found = _OPTION.search(own) or (_IN_TOML if file.suffix == ".toml" else _IN_INI).search(own)
        named = "" if found is None else (found[1] or found[2] or found[3] or "").strip()
        if not named:
            return None
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), named))
        return "" if path == "." else path
    return None
