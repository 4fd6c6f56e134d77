"""The lines of the how-to, word by word, in a program around them: with a compiler alone.

The compiler sees PATH alone, and the folders that `ciwrap native` prints.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from recorded_runs import captured, need_compiler, need_library, python, recording, roots, start

from ciwrap import _core
from ciwrap.recording.native import fortran_folder, include_folder

HOWTO = Path(__file__).parents[2] / "docs" / "how-to" / "record-a-program.md"
NY, NX, G = 6, 9, 2


def lines_of(heading: str, language: str) -> str:
    """The first block of a language under a heading."""
    text = HOWTO.read_text().partition(f"\n### {heading}\n")[2]
    found = re.search(rf"^```{re.escape(language)}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def compiled(compiler: str, sources: list[Path], target: Path, *options: str) -> Path:
    words = [need_compiler(compiler), *options, *map(str, sources), "-o", str(target), "-ldl"]
    done = subprocess.run(
        words,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd=target.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return target


def runs(program: Path, run: Path) -> None:
    """It runs without recording, without the library, and is recorded."""
    assert start([program], recording(None)).stderr == ""
    lost = start([program], recording(run, CIWRAP_RECORD_LIBRARY="/nowhere.so"))
    assert (lost.returncode, lost.stderr.count("\n")) == (0, 1)
    assert not run.exists()
    done = start([program], recording(run))
    assert (done.returncode, done.stderr) == (0, "")


def root(array: np.ndarray, atol: float) -> bytes:
    parameters = _core.TreeParameters(array.dtype.str, atol=atol, residue_levels=1)
    return _core.build_tree(parameters, np.ascontiguousarray(array).tobytes()).root


TEMPERATURE = np.add.outer(10.0 * np.arange(NY), np.arange(NX))


def test_c(tmp_path: Path) -> None:
    need_library()
    shutil.copytree(include_folder() / "ciwrap", tmp_path / "ciwrap")  # as the text says
    text = lines_of("C", "c")
    # The words of the first comment, for a program without MPI.
    assert "without MPI: ciwrap_open(name, 0, 1)" in text
    text = text.replace('ciwrap_open_mpi("heat", MPI_COMM_WORLD)', 'ciwrap_open("heat", 0, 1)')
    heads = [line for line in text.splitlines() if line.startswith("#include")]
    assert len(heads) == 2
    body = "\n".join(line for line in text.splitlines() if not line.startswith("#include"))
    source = tmp_path / "model.c"
    source.write_text(
        f"{heads[1]}\nenum {{ NY = {NY}, NX = {NX}, G = {G} }};\n"
        "static double T[NY + 2 * G][NX + 2 * G], T_new[NY + 2 * G][NX + 2 * G];\n"
        "int main(void) {\n    int i, j, n = 5;\n"
        "    for (i = 0; i < NY + 2 * G; ++i)\n        for (j = 0; j < NX + 2 * G; ++j)\n"
        "            T[i][j] = T_new[i][j] = 10.0 * (i - G) + (j - G);\n"
        f"{body}\n    return 0;\n}}\n"
    )
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    program = compiled("cc", [source], tmp_path / "model", "-I.", *warnings)
    runs(program, tmp_path / "run")
    expected = root(TEMPERATURE, 1e-9)
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / temperature@after_hydro": expected,
        "iter 5 / rank 0 / temperature": expected,
    }


CPP = """
%(include)s
#include <string>
#include <vector>
// What a View of Kokkos has, on the host.
struct View {
    struct memory_space {
        static const char* name() { return "Host"; }
    };
    static constexpr int rank = 2;
    std::vector<double> values = std::vector<double>(%(NY)d * %(NX)d);
    std::string label() const { return "temperature"; }
    const double* data() const { return values.data(); }
    std::size_t extent(std::size_t i) const { return i == 0 ? %(NY)d : %(NX)d; }
    std::size_t stride(std::size_t i) const { return i == 0 ? 1 : %(NY)d; }
};
int main() {
    const int rank = 0, ranks = 1, n = 5;
    std::vector<double> rho(40, 0.25);
    View temperature;
    for (int i = 0; i < %(NY)d; ++i)
        for (int j = 0; j < %(NX)d; ++j)
            temperature.values[i + j * %(NY)d] = 10.0 * i + j;
    %(body)s
}
"""


def test_cpp(tmp_path: Path) -> None:
    need_library()
    shutil.copytree(include_folder() / "ciwrap", tmp_path / "ciwrap")
    include, _, body = lines_of("C++", "cpp").partition("\n")
    source = tmp_path / "model.cpp"
    source.write_text(CPP % {"include": include, "body": body, "NY": NY, "NX": NX})
    program = compiled("c++", [source], tmp_path / "model", "-std=c++17", "-I.", "-Wall", "-Werror")
    runs(program, tmp_path / "run")
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / rho": root(np.full(40, 0.25), 1e-9),
        "iter 5 / rank 0 / temperature": root(TEMPERATURE, 0.0),
    }


FORTRAN = """
program model
%(use)s
implicit none
%(declared)s
integer, parameter :: nx = %(NY)d, ny = %(NX)d
double precision, target :: t(nx + 2, ny + 2)
integer :: rank = 0, ranks = 1, n = 5, i, j
do j = 1, ny
    do i = 1, nx
        t(i, j) = 10d0 * (i - 1) + (j - 1)
    end do
end do
%(body)s
end program
"""


def fortran_program(source: Path) -> Path:
    """The program, with the module beside it."""
    folder = source.parent
    for path in fortran_folder().iterdir():
        shutil.copy(path, folder)
    shutil.copytree(include_folder() / "ciwrap", folder / "ciwrap")
    halves = [folder / "ciwrap_record.f90", folder / "ciwrap_record_fortran.c"]
    return compiled("gfortran", [*halves, source], folder / "model", "-I.")


LOGICALS = """
program model
use ciwrap_record
implicit none
type(ciwrap_recorder) :: run
integer, parameter :: k1 = 1, k2 = 2, k4 = 4, k8 = 8
logical(k1), target :: a(3) = [.true., .false., .true.]
logical(k2), target :: b(3) = [.true., .false., .true.]
logical(k4), target :: c(3) = [.true., .false., .true.]
logical(k8), target :: d(3) = [.true., .false., .true.]
call run%open("model")
call run%add("a", a)
call run%add("b", b)
call run%add("c", c)
call run%add("d", d)
call run%checkpoint(5)
call run%close()
end program
"""


def test_fortran_logicals(tmp_path: Path) -> None:
    need_library()
    (tmp_path / "model.f90").write_text(LOGICALS)
    runs(fortran_program(tmp_path / "model.f90"), tmp_path / "run")
    assert roots(tmp_path / "run") == {
        f"iter 5 / rank 0 / {name}": root(np.array([1, 0, 1], f"i{size}"), 0.0)
        for name, size in zip("abcd", (1, 2, 4, 8), strict=True)
    }


def test_fortran(tmp_path: Path) -> None:
    need_library()
    use, declared, body = lines_of("Fortran", "fortran").split("\n", 2)
    source = tmp_path / "model.f90"
    words = {"use": use, "declared": declared, "body": body, "NY": NY, "NX": NX}
    source.write_text(FORTRAN % words)
    runs(fortran_program(source), tmp_path / "run")
    # Dimensions come reversed, as files show them.
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / temperature": root(TEMPERATURE.T, 1e-9),
    }


def test_python(tmp_path: Path) -> None:
    need_library()
    text = (
        "import numpy as np\ncomm, step, u = None, 5, np.arange(7)\n"
        f"T = np.add.outer(10.0 * (np.arange({NY} + 4) - 2), np.arange({NX} + 4) - 2)\n"
    )
    text += lines_of("Python", "python")
    assert python(text, recording(None)).returncode == 0
    done = python(text, recording(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / temperature": root(TEMPERATURE, 1e-9),
        "iter 5 / rank 0 / u": root(np.arange(7), 0.0),
    }
    assert len(captured(tmp_path / "run")) == 2
