"""Snapshots: what differs first, what nobody may see, and what comes back from the disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from snapshots import OBJECTS, loaded, snapshot

from ciwrap.base.errors import CorruptFileError, UsageError
from ciwrap.cli.snapshot import kept_lock_files
from ciwrap.snapshot.difference import (
    compare_snapshots,
    compare_summaries,
    environment_for_golden,
    environment_of_outputs,
    keep_snapshot,
    note_outputs,
    pair_objects,
    summary_of,
)
from ciwrap.snapshot.records import (
    KINDS,
    Cleaner,
    build_id_of,
    kind_of_fact,
    kind_of_library,
    kind_of_variable,
)
from ciwrap.snapshot.restore import check_objects, not_restorable, recipes
from ciwrap.snapshot.store import SnapshotStore, decoded, encoded, identity_of, load_snapshot
from ciwrap.snapshot.take import (
    ProgramWatcher,
    SeenProgram,
    _Process,
    describe_object,
    lock_files_in,
    members_of,
)


def names(first: object, second: object) -> list[str]:
    assert isinstance(first, type(snapshot()))
    assert isinstance(second, type(snapshot()))
    return [one.name for one in compare_snapshots(first, second)]


def test_equal_snapshots_differ_in_nothing() -> None:
    assert compare_snapshots(snapshot(), snapshot()) == ()


def test_what_changes_numbers_most_often_comes_first() -> None:
    objects = (
        loaded("/usr/lib/libm.so.6", "maths", "M"),
        loaded("/usr/lib/libstdc++.so.6", "runtime", "S"),
        OBJECTS[2],
        loaded("{packages}/numpy/_core.so", "object", "C"),
    )
    other = snapshot(
        objects=objects,
        machine={"cpu": "CPU A", "cpu_flags": "avx", "kernel": "Linux 7", "os": "Debian 12"},
        variables={"OMP_NUM_THREADS": "8", "LANG": "C"},
        packages={"numpy": "2.1.0", "scipy": "1.14.1"},
    )
    found = compare_snapshots(snapshot(), other)
    assert [one.name for one in found] == [
        *("libm.so.6", "cpu_flags", "OMP_NUM_THREADS", "libstdc++.so.6", "_core.so", "scipy"),
        "kernel",
    ]
    assert [one.kind for one in found] == [
        *("maths", "cpu", "threads", "runtime", "object", "package", "kernel")
    ]
    assert list(KINDS)[:4] == ["maths", "cpu", "threads", "runtime"]


def test_objects_of_another_version_of_a_package_stand_beside_it() -> None:
    """One changed SciPy was 38 lines, of which its own was the last."""

    def of(version: str) -> Any:
        found = [loaded(f"{{packages}}/scipy/_{n}.so", "object", f"{n}{version}") for n in range(9)]
        found.append(loaded("{packages}/scipy/libopenblas.so", "maths", version))
        found.append(loaded("{packages}/numpy/_core.so", "object", version))
        return snapshot(objects=tuple(found), packages={"numpy": "2.1.0", "scipy": version})

    found = [(one.name, one.golden, one.run) for one in compare_snapshots(of("1"), of("2"))]
    assert [name for name, _, _ in found] == ["libopenblas.so", "_core.so", "scipy with 9 objects"]
    assert found[-1][1:] == ("1", "2")


def test_two_files_of_one_build_id_are_told_apart() -> None:
    """It read "build d6e6 -> build d6e6"."""
    before = loaded("/usr/lib/libm.so.6", "maths", "M")
    before = structs.replace(before, build_id="d6e6", sha256="aa" * 32)
    after = structs.replace(before, sha256="bb" * 32)
    (found,) = compare_snapshots(snapshot(objects=(before,)), snapshot(objects=(after,)))
    assert found.golden == "build d6e6, sha256 aaaaaaaaaaaa"
    assert found.run == "build d6e6, sha256 bbbbbbbbbbbb"


@pytest.mark.parametrize(
    ("variables", "prove"),
    [
        ({"OMP_NUM_THREADS": "8", "LANG": "C"}, "ciwrap repeat --vary OMP_NUM_THREADS=1,8"),
        ({"LANG": "C"}, "OMP_NUM_THREADS set in one level of FACTOR"),
    ],
)
def test_the_command_that_proves_stands_beside(variables: dict[str, str], prove: str) -> None:
    (found,) = compare_snapshots(snapshot(), snapshot(variables=variables))
    assert found.golden == "1"
    assert found.prove is not None
    assert prove in found.prove
    assert "because" not in f"{found.prove} {found.run}"


def test_objects_of_no_program_are_no_difference() -> None:
    nothing = snapshot(seen="nothing", objects=())
    assert compare_snapshots(snapshot(), nothing) == ()


def test_what_was_merely_not_seen_is_no_difference() -> None:
    """A program is looked at now and then."""
    fewer = snapshot(objects=OBJECTS[1:])
    assert compare_snapshots(snapshot(), fewer) == compare_snapshots(fewer, snapshot()) == ()


def test_another_blas_in_place_of_the_one_that_was_there_differs() -> None:
    mkl = loaded("/opt/intel/libmkl_rt.so.2", "maths", "M")
    (found,) = compare_snapshots(snapshot(), snapshot(objects=(*OBJECTS[:2], OBJECTS[3], mkl)))
    assert found.name == OBJECTS[2].name
    assert "libmkl_rt" in found.run


def test_a_list_of_which_fewer_objects_were_seen_is_no_difference() -> None:
    both = {"compiler_runtime": "libgcc_s.so.1 (build a); libgfortran.so.5 (build b)"}
    one = {"compiler_runtime": "libgcc_s.so.1 (build a)"}
    other = {"compiler_runtime": "libgcc_s.so.1 (build c)"}
    assert compare_summaries(both, one) == compare_summaries(one, both) == ()
    assert [each.name for each in compare_summaries(both, other)] == ["compiler_runtime"]


def test_a_program_that_ended_before_it_was_looked_at_is_no_difference() -> None:
    """Not even its variables are known, so none of them is `not set`."""
    one = snapshot(variables={"OMP_NUM_THREADS": "1"})
    assert names(one, snapshot(variables={})) == ["OMP_NUM_THREADS"]
    unseen = snapshot(variables={}, objects=())
    assert compare_snapshots(one, unseen) == compare_snapshots(unseen, one) == ()


def test_a_variable_of_a_watched_program_may_be_set_by_itself() -> None:
    """Beside it, the machine alone does not say which variables another run of it had."""
    watched = snapshot(variables={"OMP_NUM_THREADS": "1"})
    machine = snapshot(seen="nothing", objects=(), variables={"MKL_NUM_THREADS": "1"})
    assert names(machine, watched) == names(watched, machine) == []
    other = structs.replace(watched, variables={"MKL_NUM_THREADS": "2"})
    assert names(machine, other) == ["MKL_NUM_THREADS"]
    sides = [summary_of(one) for one in (machine, watched)]
    assert not any(one.kind == "threads" for one in compare_summaries(*sides))
    unlike = compare_summaries(sides[0], summary_of(other))
    assert [one.name for one in unlike if one.kind == "threads"] == ["MKL_NUM_THREADS"]
    # Of two machines, the one has what the other has not.
    bare = structs.replace(machine, variables={"OMP_NUM_THREADS": "1"})
    assert sorted(names(machine, bare)) == ["MKL_NUM_THREADS", "OMP_NUM_THREADS"]


def test_a_program_may_have_loaded_what_was_not_seen() -> None:
    """Of this very process all is known."""
    fewer = snapshot(seen="process", objects=OBJECTS[1:])
    assert compare_snapshots(snapshot(seen="process"), fewer)[0].run == "not loaded"
    assert compare_snapshots(fewer, snapshot())[0].golden == "not loaded"
    assert compare_snapshots(snapshot(), snapshot(objects=OBJECTS[1:])) == ()


def test_packages_of_ciwrap_are_not_those_of_a_program() -> None:
    """A program may have a Python of its own."""
    here = snapshot(
        seen="nothing",
        objects=(),
        packages={"numpy": "1.0"},
        versions={"python": "CPython 3.13.1", "ciwrap": "0.1.0"},
    )
    assert names(snapshot(), here) == []
    assert names(here, structs.replace(here, packages={"numpy": "2.0"})) == ["numpy"]
    process = structs.replace(here, seen="process", objects=OBJECTS)
    assert names(process, structs.replace(here, packages={"numpy": "2.0"})) == ["numpy"]


def test_a_renamed_library_is_paired_with_what_it_replaces() -> None:
    new = loaded("{packages}/numpy.libs/libopenblas64_-bbbb.so", "maths", "O")
    pairs = pair_objects(OBJECTS, (*OBJECTS[:2], OBJECTS[3], new))
    assert (OBJECTS[2], new) in pairs
    assert all(None not in pair for pair in pairs)


def test_a_moved_library_is_the_same_build() -> None:
    moved = structs.replace(OBJECTS[0], path="/opt/lib/libm.so.6")
    assert compare_snapshots(snapshot(), snapshot(objects=(moved, *OBJECTS[1:]))) == ()


def test_builds_without_any_digest_are_never_the_same() -> None:
    one = structs.replace(OBJECTS[0], build_id=None)
    assert not one.same_bits(one)
    hashed = structs.replace(OBJECTS[0], sha256="00" * 32)
    assert not hashed.same_bits(structs.replace(hashed, sha256="11" * 32))


def test_summaries_tell_what_both_sides_looked_for() -> None:
    old = {
        "cpu": "a",
        "kernel": "Linux 6",
        "git_commit": "1",
        "kokkos": "4",
        "python": "CPython 3.11",
        "blas": "openblas",
    }
    new = {"cpu": "b", "kernel": "Linux 7", "git_commit": "2", "kokkos": "5", "libm": "libm.so.6"}
    new |= {"python": "CPython 3.11.7", "OMP_NUM_THREADS": "4"}
    found = compare_summaries(old, new)
    assert [one.name for one in found] == ["cpu", "OMP_NUM_THREADS", "kernel"]
    assert found[1].golden == "not set"
    assert compare_summaries({}, new) == ()
    # A program that ended before it was looked at: its variables are not known.
    del old["blas"]
    assert [one.name for one in compare_summaries(old, new)] == ["cpu", "kernel"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("libm.so.6", "maths"),
        ("libm-2.31.so", "maths"),
        ("libscipy_openblas64_-fdde5778.so", "maths"),
        ("libmkl_avx512.so.2", "maths"),
        ("libgomp-e985bcbb.so.1.0.0", "runtime"),
        ("libmpi.so.12.4.1", "mpi"),
        ("libcudart.so.12", "gpu"),
        ("libmpfr.so.6", "object"),
        ("libmagic.so.1", "object"),
        ("_fblas.cpython-311-x86_64-linux-gnu.so", "object"),
        ("m", "object"),
    ],
)
def test_libraries_are_known_by_their_names(name: str, kind: str) -> None:
    assert kind_of_library(name) == kind


def test_no_variable_is_read_that_is_not_on_the_list() -> None:
    assert kind_of_variable("OMP_NUM_THREADS") == "threads"
    for name in ("OMP_API_TOKEN", "OMPI_MCA_password", "HOME", "AWS_SECRET_ACCESS_KEY", "PATH"):
        assert kind_of_variable(name) is None
    assert kind_of_fact("cpu_flags") == "cpu"
    assert kind_of_fact("kernel") == "kernel"


def test_paths_tell_nothing_of_who_ran_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("LOGNAME", "ada")
    cleaner = Cleaner({"MY_TOKEN": "planted-secret"}, root=tmp_path)
    shown = {
        "/usr/lib/libm.so.6": "/usr/lib/libm.so.6",
        "/home/ada/venv/lib/python3.11/site-packages/numpy/x.so": "{packages}/numpy/x.so",
        "/home/ada/secret-project/build/sim": ".../sim",
        f"{tmp_path}/build/sim": "./build/sim",
        "/opt/ada/lib/libx.so": "/opt/(hidden)/lib/libx.so",
        "/scratch/planted-secret/libx.so": ".../libx.so",
    }
    assert {path: cleaner.path(path) for path in shown} == shown
    spack = "/sw/spack/opt/linux/gcc/openblas-0.3.26-" + "a" * 32 + "/lib/libopenblas.so.0"
    assert cleaner.path(spack) == f"{{spack}}/{spack.split('/gcc/')[1]}"
    assert (
        cleaner.text("run /home/ada/x --key planted-secret by ada")
        == "run ~/x --key (hidden) by (hidden)"
    )
    assert cleaner.paths("/home/ada/lib:/usr/lib:x") == ".../lib:/usr/lib:x"


def test_a_snapshot_is_named_by_what_it_holds(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "s")
    assert store.newest() is None
    first, second = store.save(snapshot()), store.save(snapshot(command="b"))
    assert first != second
    assert store.save(snapshot()) == first == identity_of(snapshot())
    assert store.load(first) == store.load(first[:6]) == snapshot()
    for name, why in (
        ("abc", "at least 4"),
        ("g" * 8, "names no"),
        ("0000" if first[:4] != "0000" else "1111", "no snapshot"),
    ):
        with pytest.raises(UsageError, match=why):
            store.load(name)
    path = store.path_of(first)
    other = store.path_of(second)
    assert path is not None
    assert other is not None
    path.write_bytes(other.read_bytes())
    with pytest.raises(CorruptFileError, match="another snapshot"):
        store.load(first)
    path.write_bytes(other.read_bytes()[:-9])
    with pytest.raises(CorruptFileError, match="not a snapshot"):
        load_snapshot(path)


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = tmp_path / f".{'0' * 32}.json.zst.{ended.pid}"
    mine = tmp_path / f".{'1' * 32}.json.zst.{os.getppid()}"
    for path in (left, mine):
        path.write_text("half")
    identity = store.save(snapshot())
    assert not left.exists()
    assert mine.exists(), "somebody is writing it"
    other = store.save(snapshot(command="other"))
    assert store.others({identity}) == [store.path_of(other)]
    assert [path.name[:32] for path in store.remove_others({identity})] == [other]
    assert store.contains(identity)
    mine.unlink()
    store.remove_others(())
    assert not tmp_path.exists()
    assert store.remove_others(()) == []


def test_outputs_are_known_until_somebody_writes_them(tmp_path: Path) -> None:
    output = tmp_path / "x.npy"
    output.write_text("1")
    summary = keep_snapshot(SnapshotStore.of_project(tmp_path), snapshot())
    assert summary["snapshot"] == identity_of(snapshot())
    assert environment_of_outputs(tmp_path, [output]) is None
    note_outputs(tmp_path, summary, {"mesh": [output]})
    assert environment_of_outputs(tmp_path, [output]) == summary
    assert environment_of_outputs(tmp_path, []) is None
    # Files that were moved are the same ones.
    moved = tmp_path / "run_3/x.npy"
    moved.parent.mkdir()
    output.rename(moved)
    assert environment_of_outputs(tmp_path, [output]) is None
    assert environment_of_outputs(tmp_path, [moved]) == summary
    goldens = SnapshotStore.of_goldens(tmp_path / "golden")
    assert environment_for_golden(tmp_path, [moved], goldens) == summary
    assert goldens.load(summary["snapshot"]) == snapshot()
    # Of other files nothing is known but where they are.
    other = environment_for_golden(tmp_path, [goldens.folder], goldens)
    assert goldens.load(other["snapshot"]).seen == "nothing"
    output.write_text("22")
    assert environment_of_outputs(tmp_path, [output]) is None
    # A run whose snapshot could not be kept takes back what an earlier one said.
    note_outputs(tmp_path, summary, {"mesh": [output]})
    note_outputs(tmp_path, {}, {"mesh": [output]})
    assert environment_of_outputs(tmp_path, [output]) is None
    notes = tmp_path / ".ciwrap/snapshots/outputs.json"
    notes.write_text("{")
    assert environment_of_outputs(tmp_path, [output]) is None


def test_no_run_fails_for_want_of_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".ciwrap").write_text("in the way")
    summary = keep_snapshot(SnapshotStore.of_project(tmp_path), snapshot())
    assert "snapshot" not in summary
    assert "no snapshot is kept" in capsys.readouterr().err


def test_recipes_say_no_more_than_is_known() -> None:
    texts = recipes(snapshot())
    assert "numpy==2.1.0\nscipy==1.14.0\n" in texts["requirements.txt"]
    assert "export OMP_NUM_THREADS=1\n" in texts["restore.sh"]
    assert texts["restore.sh"].endswith("python sim.py\n")
    assert "digest is not known" in texts["Containerfile"]
    assert "kernel: Linux 6" in texts["NOT-RESTORED.txt"]
    assert "spack.yaml" not in texts


def test_a_package_that_no_index_gave_is_no_requirement() -> None:
    """An index does not have it, or has somebody else's of that name."""
    found = snapshot(local_packages=("scipy", "gone"))
    texts = recipes(found)
    assert "scipy==" not in texts["requirements.txt"]
    assert "# scipy 1.14.0 did not come from an index\n" in texts["requirements.txt"]
    assert "numpy==2.1.0\n" in texts["requirements.txt"]
    said = "packages that did not come from an index: scipy 1.14.0\n"
    assert said in texts["NOT-RESTORED.txt"]
    assert decoded(encoded(found)) == found


def test_a_snapshot_without_such_packages_keeps_its_name() -> None:
    assert b"local_packages" not in encoded(snapshot())
    assert decoded(encoded(snapshot())) == snapshot()


def test_recipes_name_what_is_missing() -> None:
    image = "registry/sim@sha256:" + "0" * 64
    spack = loaded("{spack}/openblas-0.3.26-" + "a" * 32 + "/lib/libopenblas.so", "maths", "o")
    found = snapshot(
        container=image,
        objects=(spack, loaded("./build/sim", "object", "x")),
        variables={"OMP_NUM_THREADS": "1 | 2"},
        repository={"commit": "c" * 40, "dirty": "yes"},
        command="sim --key (hidden)",
        system_packages={"libc6": "2.36-9"},
    )
    texts = recipes(found)
    assert f"FROM {image}\n" in texts["Containerfile"]
    assert "libc6=2.36-9" in texts["Containerfile"]
    assert f"- openblas@0.3.26/{'a' * 32}\n" in texts["spack.yaml"]
    assert "export OMP_NUM_THREADS" not in texts["restore.sh"]
    assert texts["restore.sh"].endswith("exit 2\n")
    said = "\n".join(not_restorable(found))
    assert "OMP_NUM_THREADS" in said
    assert "./build/sim" in said
    assert "changes that were not committed" in said


def test_no_other_file_is_read_because_a_snapshot_says_so(tmp_path: Path) -> None:
    """A snapshot may come from anywhere."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "uv.lock").write_text("mine")
    (tmp_path / "other").write_text("mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    found = snapshot(lock_files={"../other": digest, "uv.lock": digest, "poetry.lock": digest})
    assert kept_lock_files(found, root) == {"uv.lock": "mine"}


def test_verification_goes_object_by_object() -> None:
    other = loaded("/usr/lib/libm.so.6", "maths", "M")
    extra = loaded("/usr/lib/libextra.so", "object", "e")
    assert check_objects(snapshot(), snapshot()).is_same
    found = check_objects(snapshot(), snapshot(objects=(other, *OBJECTS[2:], extra)))
    assert not found.is_same
    assert found.other == ((OBJECTS[0], other),)
    assert found.missing == (OBJECTS[1],)
    assert found.extra == (extra,)
    empty = snapshot(objects=())
    assert not check_objects(empty, empty).is_same


def test_lock_files_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("Num_Py==2.1 --hash=sha256:00\n# no\n-e .\nx>=1\n")
    (tmp_path / "uv.lock").write_text(
        '[[package]]\nname = "scipy"\nversion = "1.14"\n\n[package.x]\nname = "no"\nversion = "0"\n'
    )
    assert set(lock_files_in(tmp_path)) == {"requirements.txt", "uv.lock"}


def test_a_linker_agrees_on_the_build_id(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    source, library = tmp_path / "x.c", tmp_path / "x.so"
    source.write_text("int x(void) { return 1; }\n")
    wanted = "0123456789abcdef0123456789abcdef01234567"
    words = [
        compiler,
        "-shared",
        "-fPIC",
        f"-Wl,--build-id=0x{wanted}",
        str(source),
        "-o",
        str(library),
    ]
    subprocess.run(words, check=True, timeout=60)
    with library.open("rb") as stream:
        assert build_id_of(stream) == wanted


def test_the_compiler_of_a_program_of_ones_own_is_known(tmp_path: Path) -> None:
    """Of what packages and the system brought along nobody asks."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no GCC is installed")
    source, program = tmp_path / "x.c", tmp_path / "x"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run([compiler, str(source), "-o", str(program)], check=True, timeout=60)
    said = subprocess.run(
        [compiler, "-dumpfullversion"], capture_output=True, text=True, check=True
    )
    status = program.stat()
    key = (str(program), status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    of_project, of_packages = Cleaner(root=tmp_path), str(tmp_path / "site-packages" / "x")
    one = describe_object(key, str(program), of_project, hashed=False)
    assert one is not None
    assert (one.path, one.version) == ("./x", f"made by GCC {said.stdout.strip()}")
    other = describe_object(key, of_packages, of_project, hashed=False)
    assert other is not None
    assert (other.path, other.version) == ("{packages}/x", None)


def wait_for(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == line


def need_processes_as_they_are(process: subprocess.Popen[bytes]) -> None:
    """An emulator maps other files than the program that it runs, and otherwise."""
    if "qemu" in Path(f"/proc/{process.pid}/exe").readlink().name:
        process.communicate(timeout=30)
        pytest.skip("other processes are seen as their emulator")


GRANDCHILD = """
import subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-c", "import sys, zlib; print('ready', flush=True); sys.stdin.read()"],
    start_new_session=True,
)
child.wait()
"""


@pytest.mark.linux
def test_grandchildren_in_sessions_of_their_own_are_seen() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", GRANDCHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for(process, b"ready\n")
        need_processes_as_they_are(process)
        assert len(members_of(process.pid)) == 2
        watcher = ProgramWatcher()
        watcher.look(process.pid)
        seen = watcher.seen
        assert any("zlib" in file.path or "libz" in file.path for file in seen.files)
        watcher.look(process.pid)
        assert watcher.seen == seen
    finally:
        process.communicate(timeout=30)
    watcher.look(process.pid)  # it is gone: nothing new, nothing lost
    assert watcher.seen == seen


@pytest.mark.linux
def test_a_process_that_becomes_another_program_is_that_program() -> None:
    code = (
        "import os, sys; print('first', flush=True); sys.stdin.readline();"
        "os.environ['OMP_NUM_THREADS'] = '7'; os.execv('/bin/cat', ['cat'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
        start_new_session=True,
        bufsize=0,
    )
    assert process.stdin is not None
    try:
        wait_for(process, b"first\n")
        need_processes_as_they_are(process)
        watcher = ProgramWatcher()
        watcher.look(process.pid)
        assert any("python" in file.path for file in watcher.seen.files)
        assert "OMP_NUM_THREADS" not in watcher.seen.variables
        process.stdin.write(b"go\n")
        for _ in range(500):  # Python would read the next line ahead
            if not str(Path(f"/proc/{process.pid}/exe").readlink()).startswith(
                sys.base_prefix + "/bin/py"
            ):
                break
            time.sleep(0.02)
        process.stdin.write(b"ready\n")
        wait_for(process, b"ready\n")
        watcher.look(process.pid)
        assert not any("libpython" in file.path for file in watcher.seen.files)
        assert watcher.seen.variables["OMP_NUM_THREADS"] == {"7"}
    finally:
        process.communicate(timeout=30)


@pytest.mark.linux
def test_watching_ends_with_the_command() -> None:
    watcher = ProgramWatcher(is_thorough=True)
    with watcher.watch(os.getpid()):
        time.sleep(0.2)
    assert watcher.seen.files


def test_what_was_seen_shows_no_secrets() -> None:
    for seen in (SeenProgram(secrets={"hunter2"}), _Process(secrets=frozenset({"hunter2"}))):
        assert seen.secrets == {"hunter2"}
        assert "hunter2" not in repr(seen)
