"""The lines of the how-to, word by word, in a program around them: with a compiler alone.

The compiler sees PATH alone, and the folders that `ciwrap native` prints.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from mpi_installations import ENVIRONMENT, MPIS, need_mpi
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
        "static double T[NY + 2 * G][NX + 2 * G];\n"
        "int main(void) {\n    int i, j, n = 5;\n"
        "    for (i = 0; i < NY + 2 * G; ++i)\n        for (j = 0; j < NX + 2 * G; ++j)\n"
        "            T[i][j] = 10.0 * (i - G) + (j - G);\n"
        f"{body}\n    return 0;\n}}\n"
    )
    warnings = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    program = compiled("cc", [source], tmp_path / "model", "-I.", *warnings)
    runs(program, tmp_path / "run")
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / temperature": root(TEMPERATURE, 1e-9),
    }


C99 = """
#include <ciwrap/record.h>
enum { NY = %(NY)d, NX = %(NX)d, G = 0 };
static double T[NY][NX];
int main(void) {
    int i, j, n = 5;
    int64_t id;
    ciwrap_run* run = ciwrap_open("heat", 0, 1);
    ciwrap_array t = {%(fields)s};
    for (i = 0; i < NY; ++i)
        for (j = 0; j < NX; ++j) T[i][j] = 10.0 * i + j;
    id = %(add)s;
    %(checkpoint)s;
    t.data = NULL;
    %(point)s;
    ciwrap_move(run, id, T);
    %(remove)s;
    ciwrap_checkpoint(run, 6, CIWRAP_IN_PLACE);
    return (int)ciwrap_close(run);
}
"""


def test_c99_with_arrays_that_stay(tmp_path: Path) -> None:
    """The fields by name, and the row of C in the table."""
    need_library()
    shutil.copytree(include_folder() / "ciwrap", tmp_path / "ciwrap")
    page = HOWTO.read_text()
    fields = re.search(r"set the fields by name: `(.*?)`", page, re.DOTALL)
    row = re.search(r"^\| C \|(.*)\|$", page, re.MULTILINE)
    assert fields is not None
    assert row is not None
    add, checkpoint, point, _, _, remove = re.findall(r"`(.*?)`", row[1])
    source = tmp_path / "model.c"
    words = {"add": add, "checkpoint": checkpoint, "point": point, "remove": remove}
    source.write_text(C99 % {"fields": fields[1], "NY": NY, "NX": NX, **words})
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    program = compiled("cc", [source], tmp_path / "model", "-I.", *warnings)
    runs(program, tmp_path / "run")
    expected = root(TEMPERATURE, 0.0)
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / temperature@after_hydro": expected,
        "iter 5 / rank 0 / temperature": expected,
    }


TYPES = {
    "double": "f8",
    "float": "f4",
    "const double": "f8",
    "double _Complex": "c16",
    "float _Complex": "c8",
    "_Bool": "b1",
    "signed char": "i1",
    "unsigned short": "u2",
    "int": "i4",
    "unsigned": "u4",
    "long long": "i8",
    "uint64_t": "u8",
    "size_t": "u8",
}


def test_the_macro_takes_the_type_from_the_pointer(tmp_path: Path) -> None:
    """A wrong type was not noticed: floats were read as doubles, beyond their end."""
    need_library()
    exposed = "".join(
        f'    {{ static {one} x[3]; ciwrap_array a = CIWRAP_ARRAY("x{n}", x, 3);'
        " ciwrap_expose(run, &a); }\n"
        for n, one in enumerate(TYPES)
    )
    text = (
        "#include <ciwrap/record.h>\nint main(void) {\n"
        '    ciwrap_run* run = ciwrap_open("t", 0, 1);\n    ciwrap_prepare(run, 0, "");\n'
        f"{exposed}    ciwrap_complete(run);\n    return 0;\n}}\n"
    )
    (tmp_path / "types.c").write_text(text)
    options = [f"-I{include_folder()}", "-std=c11", "-Wall", "-Wextra", "-Werror"]
    runs(compiled("cc", [tmp_path / "types.c"], tmp_path / "types", *options), tmp_path / "run")
    found = {name: one.dtype[1:] for name, one in captured(tmp_path / "run").items()}
    assert found == {f"iter 0 / rank 0 / x{n}": letters for n, letters in enumerate(TYPES.values())}


def refused(compiler: str, text: str, folder: Path, *options: str | Path) -> str:
    """What a compiler says of a program that it refuses."""
    suffix = {"cc": "c", "c++": "cpp", "gfortran": "f90"}[compiler]
    source = folder / f"refused.{suffix}"
    source.write_text(text)
    words = [need_compiler(compiler), "-fsyntax-only", *map(str, options), str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode != 0
    return done.stderr


def test_mpi_that_is_included_too_late_is_said(tmp_path: Path) -> None:
    text = '#include <ciwrap/record.h>\nint main(void) { ciwrap_open_mpi("m", 0); }\n'
    said = refused("cc", text, tmp_path, f"-I{include_folder()}")
    assert "include_mpi_h_before_ciwrap_record_h" in said


@pytest.mark.parametrize(
    ("temporary", "is_refused"),
    [("make()", True), ("std::move(u)", True), ("u", False), ("View{u.data()}", False)],
)
def test_a_temporary_container_cannot_be_added(
    temporary: str, is_refused: bool, tmp_path: Path
) -> None:
    text = (
        "#include <ciwrap/record.hpp>\n#include <vector>\n"
        "struct View { double* p; double* data() const { return p; }"
        " std::size_t size() const { return 1; } };\n"
        "std::vector<double> make() { return std::vector<double>(9); }\n"
        'int main() { ciwrap::Recorder r("r"); std::vector<double> u(9);'
        f' r.prepare(0); r.expose("u", {temporary}); r.complete();\n'
    )
    bad = f'{text} r.add("u", {temporary}); }}\n'
    options = ["-std=c++17", f"-I{include_folder()}"]
    if is_refused:
        assert "deleted function" in refused("c++", bad, tmp_path, *options)
        bad = f"{text} }}\n"
    (tmp_path / "good.cpp").write_text(bad)
    compiled("c++", [tmp_path / "good.cpp"], tmp_path / "good", *options)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("std::vector<bool>(3)", "copy anything else into a std::vector"),
        ("std::vector<Cell>(3)", "expose each member of a struct"),
        ("new double[3]", "pointers as ciwrap::array_at(p, length)"),
    ],
)
def test_what_cpp_cannot_expose_is_refused_with_a_way_out(
    given: str, said: str, tmp_path: Path
) -> None:
    text = (
        "#include <ciwrap/record.hpp>\n#include <vector>\nstruct Cell { double h; int wet; };\n"
        f'int main() {{ ciwrap::Recorder r("r"); r.expose("x", {given}); }}\n'
    )
    assert said in refused("c++", text, tmp_path, "-std=c++17", f"-I{include_folder()}")


FIXED = """
#include <ciwrap/record.hpp>
int main() {
    ciwrap::Recorder recorder("fixed");
    double energy = 0.5, grid[2][3] = {{0, 1, 2}, {3, 4, 5}};
    const std::complex<float> phase(1, 2);
    recorder.add("energy", energy, {1e-9, -1});
    recorder.add("grid", grid);
    energy = 1.5;
    recorder.prepare(0);
    recorder.expose("step", 7);
    recorder.expose("phase", phase);
    recorder.complete();
}
"""


def test_cpp_takes_numbers_and_c_arrays(tmp_path: Path) -> None:
    """As they are at the checkpoint, if they were added."""
    need_library()
    (tmp_path / "fixed.cpp").write_text(FIXED)
    options = ["-std=c++17", f"-I{include_folder()}", "-Wall", "-Wextra", "-Werror"]
    runs(compiled("c++", [tmp_path / "fixed.cpp"], tmp_path / "fixed", *options), tmp_path / "run")
    assert roots(tmp_path / "run") == {
        "iter 0 / rank 0 / energy": root(np.array(1.5), 1e-9),
        "iter 0 / rank 0 / grid": root(np.arange(6.0).reshape(2, 3), 0.0),
        "iter 0 / rank 0 / step": root(np.array(7, "i4"), 0.0),
        "iter 0 / rank 0 / phase": root(np.array(1 + 2j, "c8"), 0.0),
    }
    shapes = {name[18:]: one.shape for name, one in captured(tmp_path / "run").items()}
    assert shapes == {"energy": (), "grid": (2, 3), "step": (), "phase": ()}


POINTERS = """
#include <ciwrap/record.hpp>
int main() {
    const std::size_t ny = 2;
    const int nx = 3, ghosts = 1;
    double cells[4 * 5];
    for (int i = 0; i < 20; ++i) cells[i] = i;
    const float* const line = new float[4]{0, 1, 2, 3};
    ciwrap::Recorder recorder("pointers");
    recorder.add("line", ciwrap::array_at(line, 4), {1e-3, -1});
    recorder.prepare(0);
    recorder.expose("inner",
                    ciwrap::array_at(cells + 6, ny, nx).strided(nx + 2 * ghosts, 1));
    recorder.expose("block", ciwrap::array_at(cells, 2, ny, 5U));
    struct Cell { double rho; int id; } mixed[3] = {{1, 0}, {2, 0}, {3, 0}};
    recorder.expose("member", ciwrap::array_at(&mixed[0].rho, 3)
                                  .strided(sizeof(Cell) / sizeof(double)));
    recorder.complete();
}
"""


def test_cpp_takes_a_pointer_with_extents(tmp_path: Path) -> None:
    need_library()
    (tmp_path / "pointers.cpp").write_text(POINTERS)
    options = ["-std=c++17", f"-I{include_folder()}", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    program = compiled("c++", [tmp_path / "pointers.cpp"], tmp_path / "pointers", *options)
    runs(program, tmp_path / "run")
    cells = np.arange(20.0)
    assert roots(tmp_path / "run") == {
        "iter 0 / rank 0 / line": root(np.arange(4, dtype="f4"), 1e-3),
        "iter 0 / rank 0 / inner": root(cells.reshape(4, 5)[1:3, 1:4], 0.0),
        "iter 0 / rank 0 / block": root(cells.reshape(2, 2, 5), 0.0),
        "iter 0 / rank 0 / member": root(np.array([1.0, 2.0, 3.0]), 0.0),
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


# Of the C functions below: MPI's module for Fortran belongs to one compiler, and is seldom there.
OF_COMMUNICATOR = """
program model
use, intrinsic :: iso_c_binding, only: c_int
use ciwrap_record
implicit none
interface
    integer(c_int) function world() bind(C)
        import :: c_int
    end function
    subroutine finish() bind(C)
    end subroutine
end interface
type(ciwrap_recorder) :: run
integer :: comm
comm = world()
call run%open_mpi("model", comm)
call run%prepare(3)
call run%expose("t", [1d0, 2d0])
call run%complete()
if (run%agree(comm)) stop 1
call finish()
call run%close()
end program
"""
WORLD = """
#include <mpi.h>
int world(void);
void finish(void);
int world(void) { MPI_Init(0, 0); return MPI_Comm_c2f(MPI_COMM_WORLD); }
void finish(void) { MPI_Finalize(); }
"""


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("name", MPIS)
def test_fortran_takes_a_communicator(name: str, tmp_path: Path) -> None:
    need_library()
    mpi = need_mpi(name)
    (tmp_path / "model.f90").write_text(OF_COMMUNICATOR)
    (tmp_path / "world.c").write_text(WORLD)
    source, half = fortran_folder() / "ciwrap_record.f90", "ciwrap_record_fortran.c"
    shutil.copy(fortran_folder() / half, tmp_path)
    objects = [tmp_path / "half.o", tmp_path / "module.o", tmp_path / "main.o"]
    with_mpi = [f"-I{include_folder()}", "-c", "-DCIWRAP_RECORD_MPI", tmp_path / half]
    mpi.build(with_mpi, objects[0])
    module = f"-J{tmp_path}"
    for one, made in ((source, objects[1]), (tmp_path / "model.f90", objects[2])):
        compiled("gfortran", [one], made, module, "-c")
    program = mpi.build([*objects, tmp_path / "world.c", "-lgfortran"], tmp_path / "model")
    done = start([*mpi.start(2), program], recording(tmp_path / "run", **ENVIRONMENT))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(captured(tmp_path / "run")) == ["iter 3 / rank 0 / t", "iter 3 / rank 1 / t"]
    # Built without MPI each process would take itself for the only one.
    with_mpi.remove("-DCIWRAP_RECORD_MPI")
    mpi.build(with_mpi, objects[0])
    alone = mpi.build([*objects, tmp_path / "world.c", "-lgfortran"], tmp_path / "alone")
    done = start([*mpi.start(1), alone], recording(tmp_path / "lost", **ENVIRONMENT))
    assert (done.returncode, "compile ciwrap_record_fortran.c with" in done.stderr) == (0, True)
    assert not (tmp_path / "lost").exists()


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
    assert "reversed, and from 0" in HOWTO.read_text()
    assert roots(tmp_path / "run") == {
        "iter 5 / rank 0 / temperature": root(TEMPERATURE.T, 1e-9),
    }


FACES = """
program faces
use, intrinsic :: iso_fortran_env, only: int64, real32
use ciwrap_record
implicit none
type(ciwrap_recorder) :: run
real, target :: x(4) = [1, 2, 3, 4]
double precision :: y(2) = [1, 2]
integer :: list(2) = [3, 1], code
integer(int64) :: big = 2_int64**40
character(60) :: text
call run%open("faces")
call run%add("x", x, atol=1e-3_real32)
call run%checkpoint(big)
call run%point(big, "half")
call run%remove("x")
call run%prepare(big + 1)
call run%expose("doubled", 2 * y)
call run%expose("some", x(list))
call run%complete()
call run%last_error(text, code)
if (text /= "" .or. code /= 0) stop 1
if (run%is_on()) then
    call run%expose("late", x)
    call run%last_error(text, code)
    if (text /= "late: is exposed outside of prepare and complete" .or. code /= 1) stop 2
    if (run%errors() /= 1) stop 3
    call run%prepare(0)
    call run%expose("no bound", y, atol=1_int64)
    call run%complete()
    call run%last_error(text, code)
    if (text /= "no bound: an error bound must be finite and not negative" .or. code /= 2) stop 4
end if
call run%close()
call run%close()
end program
"""


def test_fortran_lends_copies_and_counts_in_64_bits(tmp_path: Path) -> None:
    """A copy was recorded as what the memory became that it had had."""
    need_library()
    (tmp_path / "model.f90").write_text(FACES)
    program = fortran_program(tmp_path / "model.f90")
    assert start([program], recording(None)).returncode == 0
    assert start([program], recording(tmp_path / "run")).returncode == 0
    of_x = root(np.arange(1, 5, dtype="f4"), 1e-3)
    found = {name: one.plain for name, one in captured(tmp_path / "run").items()}
    assert found.pop("iter 0 / rank 0 / no bound") is None
    assert {name: one.root for name, one in found.items() if one is not None} == {
        f"iter {2**40} / rank 0 / x": of_x,
        f"iter {2**40} / rank 0 / x@half": of_x,
        f"iter {2**40 + 1} / rank 0 / doubled": root(np.array([2.0, 4.0]), 0.0),
        f"iter {2**40 + 1} / rank 0 / some": root(np.array([3, 1], "f4"), 0.0),
    }


@pytest.mark.parametrize("given", ["2 * x", "reshape(x, [4])", "(x)", "plain"])
def test_fortran_adds_no_copy(given: str, tmp_path: Path) -> None:
    need_library()
    for path in (*fortran_folder().iterdir(), *(include_folder() / "ciwrap").iterdir()):
        shutil.copy(path, tmp_path)
    module = [need_compiler("gfortran"), "-fsyntax-only", "ciwrap_record.f90"]
    subprocess.run(module, check=True, cwd=tmp_path)
    text = (
        "use ciwrap_record\ntype(ciwrap_recorder) :: run\nreal, target :: x(2, 2)\n"
        f'real :: plain(3)\ncall run%add("x", {given})\nend\n'
    )
    assert "no matching specific" in refused("gfortran", text, tmp_path)


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
