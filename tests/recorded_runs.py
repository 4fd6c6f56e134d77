"""Programs that record, for tests: built with the compilers that are here."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.recording.native import FOLDER, LIBRARY_NAME
from ciwrap.recording.recorded_run import RecordedCapture
from ciwrap.runs.capture_index import read_checkpoint, read_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ciwrap.runs.capture_index import CapturedVariable

LIBRARY = FOLDER / LIBRARY_NAME


def need_library() -> None:
    if not LIBRARY.is_file():
        pytest.skip("the recording library is not built here")


def need_compiler(name: str) -> str:
    """The compiler's path; skips the test where there is none, or, in an emulated Python, where its
    programs are for another processor.
    """
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no compiler {name} here")
    asked = subprocess.run([found, "-dumpmachine"], capture_output=True, text=True, check=False)
    if asked.returncode == 0 and not asked.stdout.startswith(platform.machine()):
        pytest.skip(f"{name} does not compile for {platform.machine()}")
    return found


def build(compiler: str, arguments: Sequence[str | Path], target: Path) -> Path:
    """Compiles and links a program, or skips the test where there is no such compiler."""
    found = need_compiler(compiler)
    words = [found, *map(str, arguments), "-o", str(target), "-lm", "-ldl"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return target


def find_kokkos() -> Path | None:
    """The CMake package of the Kokkos that ciwrap was built with, if it is still there."""
    cache = Path(os.environ.get("CIWRAP_CACHE_DIR") or Path.home() / ".cache" / "ciwrap")
    for found in sorted(cache.glob("kokkos-*/lib*/cmake/Kokkos/KokkosConfigCommon.cmake")):
        has_cuda = re.search(r"Kokkos_DEVICES [^)]*CUDA", found.read_text())  # for nvcc alone
        library = found.parents[2] / "libkokkoscore.a"
        if not has_cuda and _machine(library) == _machine(Path(sys.executable)):
            return found.parent
    return None


def _machine(binary: Path) -> str:
    """What processors a program or library is for; "" where nobody can tell."""
    readelf = shutil.which("readelf")
    if readelf is None:
        return ""
    words = [readelf, "-h", str(binary)]
    told = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Machine: +(.*)", told)
    return found[1] if found else ""


def find_kokkos_with_tools() -> Path | None:
    """The CMake package of a Kokkos that loads tools: a distribution's, or CIWRAP_KOKKOS_TOOLS."""
    asked = os.environ.get("CIWRAP_KOKKOS_TOOLS")
    for folder in [Path(asked)] if asked else sorted(Path("/usr/lib").glob("*/cmake/Kokkos")):
        common = folder / "KokkosConfigCommon.cmake"
        if common.is_file() and re.search(r"Kokkos_TPLS [^)]*LIBDL", common.read_text()):
            return folder
    return None


def recording(folder: Path | None, **more: str) -> dict[str, str]:
    """The variables under which a program records into a folder."""
    own = {} if folder is None else {"CIWRAP_RECORD": str(folder)}
    kept = {name: text for name, text in os.environ.items() if not name.startswith("CIWRAP_")}
    return {**kept, "CIWRAP_RECORD_LIBRARY": str(LIBRARY), **own, **more}


def start(
    words: Sequence[str | Path], env: Mapping[str, str], **more: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, words)],
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **more,
    )


def python(text: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return start([sys.executable, "-c", text], env)


def captured(run: Path) -> dict[str, CapturedVariable]:
    """All variables of a recorded run, by their full text."""
    with RecordedCapture(run) as capture:
        index = read_index(capture)
        return {
            one.identity.text: one
            for directory in index.checkpoints.values()
            for one in read_checkpoint(capture, directory).variables
        }


def roots(run: Path) -> dict[str, bytes]:
    found = {}
    for name, one in captured(run).items():
        assert one.plain is not None, (name, one.reason)
        found[name] = one.plain.root
    return found
