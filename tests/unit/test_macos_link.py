"""tools/macos-link finds names that macOS lacks."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "macos-link"
PROGRAM = """
long pread(int, void *, unsigned long, long);
int posix_fadvise(int, long, long, int);
void *PyLong_FromLong(long);
void *PyOfNoVersion(void);
int made_up(int file, void *to) {
    return (int)pread(file, to, 1, 0) + (PyLong_FromLong(1) == PyOfNoVersion()) + SECOND;
}
"""


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    pytest.importorskip("ziglang", reason="ziglang is not installed")
    if shutil.which("llvm-nm") is None:
        pytest.skip("ziglang is not installed, or no llvm-nm")
    return runpy.run_path(str(TOOL), run_name="macos_link")


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
@pytest.mark.parametrize("call", ["0", "posix_fadvise(0, 0, 0, 0)"])
def test_names_that_macos_lacks_are_found(
    call: str, arch: str, tool: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "a.c", tmp_path / "a.o"
    source.write_text(PROGRAM.replace("SECOND", call))
    words = ["-O1", "-target", tool["TARGETS"][arch], "-c", str(source), "-o", str(target)]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *words], check=True, timeout=300)
    assert not tool["_is_whole"](target, arch)
    told = capsys.readouterr().out.splitlines()
    unknown = {line.split()[-1] for line in told if "unknown to macOS" in line}
    own = {"_posix_fadvise"} if "posix" in call else set()
    assert unknown == {"_PyOfNoVersion", *own}


def test_the_system_library_is_known(tool: dict[str, Any]) -> None:
    for arch in tool["TARGETS"]:
        names = tool["_system_names"](arch)
        assert {"_pread", "_fcntl", "_strtod_l", "_malloc", "_memcpy"} <= names
        assert not {"_posix_fadvise", "_memfd_create", "_io_uring_setup", "_gettid"} & names
