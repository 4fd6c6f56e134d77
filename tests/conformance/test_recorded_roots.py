"""The root of an array is the same from C, C++, Fortran, Kokkos, Python and the core."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from recorded_runs import (
    build,
    captured,
    find_kokkos,
    need_library,
    python,
    recording,
    roots,
    start,
)

from ciwrap import _core
from ciwrap.recording.native import _described, fortran_folder, include_folder
from ciwrap.recording.recorded_run import RecordedCapture
from ciwrap.runs.capture_index import read_tree

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ATOL = 1e-6

C_SOURCE = r"""
#include <ciwrap/record.h>
#define NY 37
#define NX 301
#define G 2
static double t[NY + 2 * G][NX + 2 * G];
static float u[5000];
static int32_t columns[11][70];  /* [column][row]: Fortran's order */
int main(void) {
    int i, j;
    for (i = 0; i < NY + 2 * G; ++i)
        for (j = 0; j < NX + 2 * G; ++j) t[i][j] = -7.0;
    for (i = 0; i < NY; ++i)
        for (j = 0; j < NX; ++j) t[i + G][j + G] = (i * 1000 + j) * 0.0078125;
    for (i = 0; i < 5000; ++i) u[i] = (float)(i % 97) * 0.5f;
    for (i = 0; i < 70; ++i)
        for (j = 0; j < 11; ++j) columns[j][i] = i * 11 + j;
    ciwrap_run* run = ciwrap_open("vectors", 0, 1);
    ciwrap_array a = {sizeof a, CIWRAP_HOST, "t", "f8", &t[G][G], 2, 0,
                      {NY, NX}, {NX + 2 * G, 1}, 1e-6, -1};
    ciwrap_array b = {sizeof b, CIWRAP_HOST, "u", "f4", u, 1, 0, {2500}, {2}, -1, -1};
    ciwrap_array c = {sizeof c, CIWRAP_HOST, "n", "i4", columns, 2, 0, {70, 11}, {1, 70}, -1, -1};
    ciwrap_add(run, &a);
    ciwrap_add(run, &b);
    ciwrap_add(run, &c);
    ciwrap_checkpoint(run, 3, CIWRAP_IN_PLACE);
    return (int)ciwrap_close(run);
}
"""

PYTHON_SOURCE = """
import numpy as np, ciwrap
t = np.full((41, 305), -7.0)
t[2:-2, 2:-2] = (np.arange(37)[:, None] * 1000 + np.arange(301)) * 0.0078125
u = ((np.arange(5000) % 97) * 0.5).astype("f4")
n = np.asfortranarray(np.arange(770, dtype="i4").reshape(70, 11))
with ciwrap.Recorder("vectors") as recorder:
    recorder.bound("t", atol=1e-6)
    recorder.record(3, t=t[2:-2, 2:-2], u=u[::2], n=n)
    assert recorder.errors == 0
"""


@functools.cache
def arrays() -> dict[str, NDArray[np.generic]]:
    t = (np.arange(37)[:, None] * 1000 + np.arange(301)) * 0.0078125
    u = ((np.arange(5000) % 97) * 0.5).astype("f4")[::2]
    return {"t": t, "u": u, "n": np.arange(770, dtype="i4").reshape(70, 11)}


def core_roots() -> dict[str, bytes]:
    found = {}
    for name, array in arrays().items():
        parameters = _core.TreeParameters(
            array.dtype.str, atol=ATOL if name == "t" else 0.0, residue_levels=1
        )
        builder = _core.TreeBuilder(parameters, array.size)
        builder.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        found[f"iter 3 / rank 0 / {name}"] = builder.finish().root
    return found


@pytest.mark.parametrize(
    ("compiler", "suffix", "options"),
    [("gcc", "c", ["-std=c99"]), ("g++", "cpp", ["-std=c++11"])],
)
def test_compiled(tmp_path: Path, compiler: str, suffix: str, options: list[str]) -> None:
    need_library()
    source = tmp_path / f"vectors.{suffix}"
    source.write_text(C_SOURCE)
    warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
    program = build(
        compiler, [*options, *warnings, f"-I{include_folder()}", source], tmp_path / "vectors"
    )
    run = tmp_path / "run"
    assert start([program], recording(None)).returncode == 0
    assert not run.exists()
    assert start([program], recording(run)).returncode == 0
    assert roots(run) == core_roots()
    shapes = {one.identity.name: one.shape for one in captured(run).values()}
    assert shapes == {name: array.shape for name, array in arrays().items()}


FORTRAN_SOURCE = """
program vectors
    use, intrinsic :: iso_fortran_env, only: real64, real32, int32
    use ciwrap_record, only: ciwrap_recorder
    implicit none
    type(ciwrap_recorder) :: recorder
    real(real64), target :: t(305, 41)
    real(real32), target :: u(5000)
    integer(int32), target :: n(11, 70)
    integer :: i, j, errors
    t = -7
    do j = 1, 37
        do i = 1, 301
            t(i + 2, j + 2) = ((j - 1) * 1000 + i - 1) * 0.0078125_real64
        end do
    end do
    u = [(mod(i, 97) * 0.5, i = 0, 4999)]
    n = reshape([(i, i = 0, 769)], [11, 70])
    call recorder%open("vectors")
    call recorder%add("t", t(3:303, 3:39), atol=1e-6_real64)
    call recorder%add("u", u(::2))
    call recorder%add("n", n)
    call recorder%checkpoint(3)
    call recorder%close(errors)
    if (errors > 0) stop 1
end program
"""


def test_fortran(tmp_path: Path) -> None:
    need_library()
    source = tmp_path / "vectors.f90"
    source.write_text(FORTRAN_SOURCE)
    halves = [fortran_folder() / one for one in ("ciwrap_record.f90", "ciwrap_record_fortran.c")]
    program = build(
        "gfortran",
        [f"-J{tmp_path}", f"-I{include_folder()}", *halves, source],
        tmp_path / "vectors",
    )
    assert start([program], recording(tmp_path / "run")).returncode == 0
    assert roots(tmp_path / "run") == core_roots()


KOKKOS_SOURCE = r"""
#include <Kokkos_Core.hpp>
#include <ciwrap/record.hpp>
template <class Layout>
using Field = Kokkos::View<double**, Layout, Kokkos::HostSpace>;
template <class View>
View filled(const View& view) {
    for (int i = 0; i < 37; ++i)
        for (int j = 0; j < 301; ++j) view(i, j) = (i * 1000 + j) * 0.0078125;
    return view;
}
template <class Layout>
auto without_ghosts(const char* label) {
    Field<Layout> whole(label, 41, 305);
    Kokkos::deep_copy(whole, -7.0);
    return filled(Kokkos::subview(whole, std::pair(2, 39), std::pair(2, 303)));
}
int main() {
    Kokkos::ScopeGuard guard;
    ciwrap::Recorder recorder("vectors");
    const auto left = filled(Field<Kokkos::LayoutLeft>("t left", 37, 301));
    const auto right = filled(Field<Kokkos::LayoutRight>("t right", 37, 301));
    const auto left_inner = without_ghosts<Kokkos::LayoutLeft>("whole");
    const auto right_inner = without_ghosts<Kokkos::LayoutRight>("whole");
    Kokkos::View<double**, Kokkos::LayoutStride, Kokkos::HostSpace> strided = left_inner;
    Kokkos::View<float*, Kokkos::HostSpace> all("u", 5000);
    for (int i = 0; i < 5000; ++i) all(i) = static_cast<float>(i % 97) * 0.5f;
    Kokkos::View<float*, Kokkos::LayoutStride, Kokkos::HostSpace> every_second(
        all.data(), Kokkos::LayoutStride(2500, 2));
    Kokkos::View<std::int32_t**, Kokkos::LayoutLeft, Kokkos::HostSpace> columns("n", 70, 11);
    for (int i = 0; i < 70; ++i)
        for (int j = 0; j < 11; ++j) columns(i, j) = i * 11 + j;
    recorder.add(left, {1e-6, -1});
    recorder.add(right, {1e-6, -1});
    recorder.add("t left inner", left_inner, {1e-6, -1});
    recorder.add("t right inner", right_inner, {1e-6, -1});
    recorder.add("t strided", strided, {1e-6, -1});
    recorder.add("u", every_second);
    recorder.add(columns);
    recorder.checkpoint(3);
    return static_cast<int>(recorder.close());
}
"""

KOKKOS_PROJECT = """
cmake_minimum_required(VERSION 3.24)
project(vectors LANGUAGES CXX)
find_package(Kokkos REQUIRED)
add_executable(vectors vectors.cpp)
set_target_properties(vectors PROPERTIES CXX_STANDARD 20)
target_link_libraries(vectors PRIVATE Kokkos::kokkos ${CMAKE_DL_LIBS})
"""


def test_kokkos(tmp_path: Path) -> None:
    """Views of both layouts, whole and without ghost cells, with the Kokkos of our own build."""
    need_library()
    package, cmake = find_kokkos(), shutil.which("cmake")
    if package is None or cmake is None:
        pytest.skip("there is no Kokkos here")
    (tmp_path / "vectors.cpp").write_text(KOKKOS_SOURCE)
    (tmp_path / "CMakeLists.txt").write_text(KOKKOS_PROJECT)
    told = [f"-DKokkos_DIR={package}", f"-DCMAKE_CXX_FLAGS=-I{include_folder()}"]
    for words in (["-S", ".", "-B", "build", *told], ["--build", "build"]):
        done = subprocess.run(
            [cmake, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    env = recording(tmp_path / "run", OMP_PROC_BIND="false")
    assert start([tmp_path / "build" / "vectors"], env).returncode == 0
    known = core_roots()
    fields = ("t left", "t right", "t left inner", "t right inner", "t strided")
    expected = {f"iter 3 / rank 0 / {name}": known["iter 3 / rank 0 / t"] for name in fields}
    expected |= {name: one for name, one in known.items() if not name.endswith(" t")}
    assert roots(tmp_path / "run") == expected


def test_python(tmp_path: Path) -> None:
    need_library()
    assert python(PYTHON_SOURCE, recording(None)).returncode == 0
    done = python(PYTHON_SOURCE, recording(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert roots(tmp_path / "run") == core_roots()


@pytest.mark.parametrize(
    ("dtype", "atol", "rtol"),
    [("<f8", 1e-6, 0.0), ("<f4", 1e-3, 1e-4), ("<f8", 0.0, 1e-7), ("<c16", 1e-6, 0.0)],
)
def test_residues(tmp_path: Path, dtype: str, atol: float, rtol: float) -> None:
    """A journal has the residues that the core makes of the same array, slices and all."""
    need_library()
    table = tmp_path / "bounds.txt"
    table.write_text("ciwrap-bounds 3\n*\t*\t-\t-\t2048\t-\t15\n")
    text = f"""
import numpy as np, ciwrap
x = np.random.default_rng(5).normal(size=(40, 90, 2)).astype("{dtype}")
with ciwrap.Recorder() as r:
    r.bound("x", atol={atol}, rtol={rtol})
    r.record(3, x=x[1:-1, ::2], n=np.arange(9))
    assert r.errors == 0
"""
    run = tmp_path / "run"
    assert python(text, recording(run, CIWRAP_RECORD_BOUNDS=str(table))).returncode == 0
    array = np.random.default_rng(5).normal(size=(40, 90, 2)).astype(dtype)[1:-1, ::2]
    with RecordedCapture(run) as capture:
        found = {name.split()[-1]: one for name, one in captured(run).items()}
        assert found["n"].fine is None  # compared exactly: nothing to round
        x = found["x"]
        assert x.plain is not None
        assert x.fine is not None
        stored = {
            levels: read_tree(capture, x, one) for levels, one in ((1, x.plain), (15, x.fine))
        }
    for levels, tree in stored.items():
        parameters = _core.TreeParameters(
            dtype, atol=atol, rtol=rtol, residue_levels=levels, chunk_bytes=2048
        )
        builder = _core.TreeBuilder(parameters, array.size * parameters.scalars_per_element)
        builder.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        expected = builder.finish()
        assert tree.parameters == parameters
        assert tree.root == expected.root
        assert tree.digests.tobytes() == expected.digests.tobytes()
        assert (tree.residues is None) == (levels == 1)
        if tree.residues is not None and expected.residues is not None:
            assert tree.residues.tobytes() == expected.residues.tobytes()


def test_library_exports_one_symbol_and_needs_the_c_library_alone() -> None:
    from recorded_runs import LIBRARY

    need_library()
    words = ["nm", "-D", "--defined-only", str(LIBRARY)]
    table = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in table.splitlines()] == ["ciwrap_record_table"]
    dynamic = subprocess.run(
        ["readelf", "-d", str(LIBRARY)], capture_output=True, text=True, check=True
    ).stdout
    needed = {line.split("[")[1][:-1] for line in dynamic.splitlines() if "(NEEDED)" in line}
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0"}


TRANSPOSED = """
import sys, numpy as np, ciwrap
from itertools import permutations
arrays = {}
for dtype in ("f8", "i4", "c16", "i2"):
    for shape in ((300, 170), (2500, 9), (7, 501, 33), (12, 3, 90, 5)):
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        for axes in permutations(range(len(shape))):
            turned = np.ascontiguousarray(values.transpose(axes)).transpose(np.argsort(axes))
            assert (turned == values).all()
            arrays[f"{dtype} {shape} {axes}"] = turned
        back = np.ascontiguousarray(values.T[::-1])[::-1].T
        arrays[f"{dtype} {shape} back"] = back
with ciwrap.Recorder() as r:
    r.record(0, **arrays)
    assert r.errors == 0
"""


def test_any_order_of_memory(tmp_path: Path) -> None:
    """Every order of the dimensions, forwards and backwards, of arrays of several pieces."""
    need_library()
    done = python(TRANSPOSED, recording(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    found = roots(tmp_path / "run")
    assert len(found) == 4 * (2 + 2 + 6 + 24 + 4)
    expected: dict[tuple[str, str], bytes] = {}
    for name, root in found.items():
        dtype, shape = re.fullmatch(r"iter 0 / rank 0 / (\w+) (\(.*?\)) .*", name).groups()  # type: ignore[union-attr]
        if (dtype, shape) not in expected:
            extents = [int(one) for one in re.findall(r"\d+", shape)]
            values = np.arange(np.prod(extents)).astype(dtype)
            parameters = _core.TreeParameters(values.dtype.str, residue_levels=1)
            expected[dtype, shape] = _core.build_tree(parameters, values.tobytes()).root
        assert root == expected[dtype, shape], name


def test_one_number_that_stands_for_many(tmp_path: Path) -> None:
    """An array all of whose strides are zero, which to the library is one without strides."""
    need_library()
    text = """
import numpy as np, ciwrap
with ciwrap.Recorder("one") as recorder:
    many = np.broadcast_to(np.float64(3), (50, 40))
    recorder.record(3, many=many, full=np.full((50, 40), 3.0))
    assert recorder.errors == 0
"""
    done = python(text, recording(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    found = roots(tmp_path / "run")
    assert found["iter 3 / rank 0 / many"] == found["iter 3 / rank 0 / full"]


class OnDevice:
    """Says where it lies, as arrays of CuPy and torch do."""

    def __init__(self, **told: object) -> None:
        self.__cuda_array_interface__ = {"version": 3, "data": (4096, True), **told}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_what_is_told_of_memory_on_a_device() -> None:
    strided = OnDevice(shape=(3, 4), typestr="<f4", strides=(32, 8))
    found, kept = _described("x", strided, (1e-3, -1.0))
    assert kept is strided
    assert (found.location, found.data, found.dtype) == (1, 4096, b"<f4")
    assert (found.dimensions, *found.extents[:2], *found.strides[:2]) == (2, 3, 4, 32, 8)
    packed, _ = _described("x", OnDevice(shape=(7,), typestr="<f8"), (-1.0, -1.0))
    assert (packed.extents[0], packed.strides[0], packed.data) == (7, 0, 4096)
    # What the library would take for something else has no data, which it counts as an error.
    many, _ = _described("x", OnDevice(shape=(7,), typestr="<f8", strides=(0,)), (-1.0, -1.0))
    assert (many.location, many.data) == (1, None)
