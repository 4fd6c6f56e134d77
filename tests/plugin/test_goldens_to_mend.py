"""Shared files that somebody has to mend: told of with the remedy, and never replaced."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from plugin.review_suite import write

from ciwrap.golden import shared_file as shared_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plugin.conftest import Suite

FILE = "golden/tests/test_it.goldens"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n"


def _with_marks(data: bytes) -> bytes:
    return data.replace(b'["test_b"', b'<<<<<<< a\n=======\n>>>>>>> b\n["test_b"')


TO_MEND: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a pointer": (lambda _: POINTER, "git lfs pull"),
    "a merge": (_with_marks, "delete the marks of the merge"),
    "a merge, and damage before": (
        lambda data: _with_marks(data).replace(b'["test_a', b'["test_x'),
        "delete the marks of the merge",
    ),
    "line ends": (
        lambda data: data.replace(b"\n", b"\r\n"),
        "add the line `*.goldens text eol=lf` to .gitattributes",
    ),
    "no lines of ours": (lambda _: b"nothing\n", "or delete it"),
}


@pytest.fixture(params=TO_MEND)
def broken(changed: Suite, request: pytest.FixtureRequest) -> tuple[Path, str]:
    """A shared file that is to be mended, beside goldens that wait; and the remedy."""
    change, remedy = TO_MEND[request.param]
    path = changed.root / FILE
    path.write_bytes(change(path.read_bytes()))
    return path, remedy


def test_a_golden_to_mend_is_not_replaced(changed: Suite, broken: tuple[Path, str]) -> None:
    path, remedy = broken
    before = path.read_bytes()
    shutil.copytree(changed.root / ".ciwrap/pending", changed.root / "download")
    for options in (("--pending",), ("tests/test_it.py::test_b",), ("--from", "download")):
        for more in ((), ("--dry-run",)):
            done = changed.cli("accept", *options, *more, "--reason", "x")
            assert done.returncode == 3
            (line,) = done.stderr.splitlines()
            assert FILE in line
            assert remedy in line
    changed.run("--ciwrap-update=failed", "--ciwrap-reason=x").assert_outcomes(failed=2)
    assert path.read_bytes() == before
    assert not (changed.root / "golden/tests/test_it").exists()


def test_what_cannot_be_accepted_is_not_proposed(changed: Suite, broken: tuple[Path, str]) -> None:
    _, remedy = broken
    shutil.rmtree(changed.root / ".ciwrap")
    result = changed.run()
    result.assert_outcomes(failed=2)
    said = result.stdout.str()
    assert said.count(remedy) == 2
    assert "ciwrap accept" not in said
    assert "accept what then waits" not in said
    assert changed.waiting() == {}


def test_line_ends_are_mended_as_the_message_says(changed: Suite) -> None:
    path = changed.root / FILE
    changed.git("config", "core.autocrlf", "true")
    # As before goldens brought it.
    changed.git("rm", "-q", "golden/.gitattributes")
    path.unlink()
    changed.git("checkout", "--", FILE)
    write(changed)
    result = changed.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*line 1 ends as on Windows*core.autocrlf*"])
    with (changed.root / ".gitattributes").open("a") as stream:
        stream.write("*.goldens text eol=lf\n")
    path.unlink()
    changed.git("checkout", "--", FILE)
    changed.run().assert_outcomes(passed=2)
    subprocess.run(["git", "diff", "--exit-code", "--", FILE], cwd=changed.root, check=True)


@pytest.mark.parametrize("is_shared", [True, False])
def test_what_a_later_release_left_waiting_is_kept(changed: Suite, is_shared: bool) -> None:
    """It is not damaged: who updates ciwrap can accept it."""
    folder = changed.root / ".ciwrap/pending/tests"
    path = folder / "test_it.goldens"
    if is_shared:
        newer = shared_lines.HEADER.replace(b":3,", b":99,")
        old, new = (shared_lines.line_of(one) for one in (shared_lines.HEADER, newer))
        path.write_bytes(path.read_bytes().replace(old, new))
    else:
        changed.write("def test_o(ciwrap): ciwrap.check(np.arange(9999.0))", "tests/test_other.py")
        changed.run()
        path = folder / "test_other/test_o.golden.yaml"
        path.write_text(re.sub(r"(?m)^format: \d+$", "format: 99", path.read_text()))
    before = path.read_bytes()
    for command in (("review",), ("accept", "--pending", "-m", "x"), ("reject", "--all")):
        done = changed.cli(*command)
        assert done.returncode == (0 if command[0] == "review" and not is_shared else 3)
        said = done.stdout + done.stderr
        assert "update ciwrap" in said
        assert "delete" not in said
        assert path.read_bytes() == before
    assert "left as it is" in said
    assert ("rejected  tests/test_it.py::test_b" in said) is not is_shared
