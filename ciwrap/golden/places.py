"""Where the golden of a test's check lies below the golden folder, and back again.

The check `velocity` of `tests/test_flow.py::TestFlow::test_push[2-a/b]` is called
`TestFlow.test_push[2-a/b]-velocity` in the folder `tests/test_flow`. The characters that part such
a name are escaped where they belong to its parts, so that no two checks share a file and every file
tells its check. Goldens of one kind of machine lie in a folder `@VARIANT` beside the others.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ciwrap.errors import UsageError
from ciwrap.golden.paths import escape_name, unescape_name
from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterable

MODULE_SUFFIX = ".py"
VARIANT_MARK = "@"

_NAME = re.compile(r"(?P<test>[^\[-]+)(?:\[(?P<param>[^\]]*)\])?(?:-(?P<name>.+))?", re.DOTALL)
_IN_TEST = re.compile(r"[%.\[\]:-]")
_IN_PARAM = re.compile(r"[%\]]")


class Place(Struct, frozen=True, order=True):
    """A golden's place: folder below the golden folder ('' for its top), and its name there."""

    folder: str
    name: str

    @property
    def variant(self) -> str | None:
        """The kind of machine it is for; None for every one."""
        last = PurePosixPath(self.folder).name
        return unescape_name(last[1:]) if last.startswith(VARIANT_MARK) else None

    def for_variant(self, variant: str | None) -> Place:
        """Returns the check's place for another kind of machine; None: for every one."""
        folder = PurePosixPath(self.folder)
        if self.variant is not None:
            folder = folder.parent
        if variant is not None:
            folder /= VARIANT_MARK + escape_name(variant)
        text = folder.as_posix()
        return replace(self, folder="" if text == "." else text)

    @property
    def check(self) -> str:
        """What the check is called by people: `tests/test_flow.py::test_push[2]::velocity`, or the
        name of a check of the configuration.
        """
        plain = self.for_variant(None)
        if not plain.folder:
            return self.name
        test = TestPlace.of(plain)
        return self.name if test is None else test.check


class TestPlace(Struct, frozen=True, order=True):
    """One check of one test.

    module: path of the test's file below the project, with '/'. test: its classes and its function,
    joined by '::'. param: pytest's id of its parameters, without brackets. name: of the check.
    """

    __test__ = False  # pytest takes classes called Test... for tests

    module: str
    test: str
    param: str | None = None
    name: str | None = None

    @property
    def test_id(self) -> str:
        """pytest's id of the test, as it reads from the project's folder."""
        param = "" if self.param is None else f"[{self.param}]"
        return f"{self.module}::{self.test}{param}"

    @property
    def check(self) -> str:
        return self.test_id if self.name is None else f"{self.test_id}::{self.name}"

    @property
    def place(self) -> Place:
        """Raises UsageError for a module outside the project, or one that is no .py file."""
        path = PurePosixPath(self.module)
        if path.is_absolute() or ".." in path.parts or path.suffix != MODULE_SUFFIX:
            raise UsageError(
                "goldens are kept for tests in .py files below the project's folder only",
                file=self.module,
            )
        folder = "/".join(escape_name(part) for part in path.with_suffix("").parts)
        name = ".".join(_IN_TEST.sub(_percent, part) for part in self.test.split("::"))
        if self.param is not None:
            name += f"[{_IN_PARAM.sub(_percent, self.param)}]"
        return Place(folder, name if self.name is None else f"{name}-{self.name}")

    @staticmethod
    def of(place: Place) -> TestPlace | None:
        """The test's check that a place is of; None if it is of none."""
        plain = place.for_variant(None)
        found = _NAME.fullmatch(plain.name)
        if found is None or not plain.folder:
            return None
        module = "/".join(unescape_name(part) for part in plain.folder.split("/"))
        return TestPlace(
            module + MODULE_SUFFIX,
            "::".join(unquote(part) for part in found["test"].split(".")),
            None if found["param"] is None else unquote(found["param"]),
            found["name"],
        )


def _percent(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


def checks_meant(pattern: str, checks: Iterable[str]) -> set[str]:
    """Those of the checks that a pattern from the command line means.

    It is a check's own name, or that of the test, class, file or folder it belongs to; or, where
    none is called so, it has the wild cards `*` and `?`. Ids of tests may have them, too: what is
    typed for `test_op[*]` is not meant for `test_op[+]`. Brackets are brackets, since pytest's ids
    are full of them.
    """
    known = set(checks)
    pattern = pattern.removesuffix("/")
    return {one for one in known if _is_named(pattern, one)} or _wild(pattern, known)


def _is_named(pattern: str, check: str) -> bool:
    ends = ("::", "/") if pattern.endswith("]") else ("::", "/", "[")
    return check == pattern or check.startswith(tuple(pattern + end for end in ends))


def _wild(pattern: str, checks: set[str]) -> set[str]:
    if not ("*" in pattern or "?" in pattern):
        return set()
    parts = re.split(r"([*?])", pattern)
    regex = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
    return {one for one in checks if re.fullmatch(regex, one, re.DOTALL)}
