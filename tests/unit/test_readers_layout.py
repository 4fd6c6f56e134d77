"""Which files a check means, and what their variables are called."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.structs import replace

from ciwrap.base.errors import (
    ConfigError,
    CorruptFileError,
    OutputMissingError,
    UnreadableFileError,
)
from ciwrap.base.patterns import PathPattern
from ciwrap.formats.find_outputs import find_in, find_outputs

if TYPE_CHECKING:
    from ciwrap.formats.find_outputs import FoundOutputs


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".npy":
            np.save(path, np.zeros(2))
        elif path.suffix == ".npz":
            np.savez(path, u=np.zeros(2))
        else:
            path.write_text("t\n1\n")


def texts(found: FoundOutputs) -> list[str]:
    result = []
    for file in found.files:
        with file.open() as source:
            result += [file.variable_id(info).text for info in source.variables]
    return result


HISTORY = tuple(
    f"out/iter_{i:04d}/rank_{r}/{n}.npy" for i in (2, 10) for r in (0, 1) for n in ("x", "y")
)


@pytest.mark.parametrize(
    ("files", "outputs", "layout", "expected"),
    [
        (["x.npy"], ["x.npy"], None, ["x"]),
        (["d/x.npy"], ["./d/x.npy"], None, ["x"]),
        (["x.npz"], ["x.npz"], None, ["u"]),
        (["t.csv"], ["t.csv"], None, ["t"]),
        (["d/x.npy", "d/e/y.npy"], ["d"], None, ["e/y", "x"]),
        (["d/a.npz", "d/b.npz"], ["d/"], None, ["a/u", "b/u"]),
        (["d/x.npy", "d/e/x.npy", "d/z.log"], ["d/*.npy"], None, ["x"]),
        (["d/x.npy", "d/e/x.npy"], ["d/**/*.npy"], None, ["e/x", "x"]),
        (["d/x.npy", "d/e/x.npy"], ["d/**"], None, ["e/x", "x"]),
        (["d/a1.npy", "d/a2.npy", "d/b.npy"], ["d/a?.npy"], None, ["a1", "a2"]),
        (["d/a1.npy", "d/a2.npy", "d/a3.npy"], ["d/a[12].npy"], None, ["a1", "a2"]),
        (["d/a1.npy", "d/a2.npy"], ["d/a[!1].npy"], None, ["a2"]),
        (["a.npy", "b.npz"], ["a.npy", "b.npz"], None, ["a", "u"]),
        (["odd[1].npy"], ["odd[1].npy"], None, ["odd[1]"]),
        (
            ["rho_0001.npy", "rho_0020.npy"],
            ["rho_{iteration:d}.npy"],
            None,
            ["iter 1 / rho", "iter 20 / rho"],
        ),
        (["1.npy", "2.npy"], ["{rank}.npy"], None, ["rank 1 / data", "rank 2 / data"]),
        (["s1/f.npz", "s2/f.npz"], ["s{iteration:d}/f.npz"], None, ["iter 1 / u", "iter 2 / u"]),
        (
            ["s1/f.npz", "s1/g.npz"],
            ["s{iteration:d}/*.npz"],
            None,
            ["iter 1 / f/u", "iter 1 / g/u"],
        ),
        (
            ["p7_f.npz", "p8_f.npz"],
            ["p{iteration:d}_*.npz"],
            None,
            ["iter 7 / p_f/u", "iter 8 / p_f/u"],
        ),
        (["run_77/x.npy"], ["run_*/{name}.npy"], None, ["x"]),
        (["d/3/x.npy"], ["d"], "{iteration}/{name}.npy", ["iter 3 / x"]),
        (["d/3/x.npy"], ["d/**/*.npy"], "{iteration}/{name}.npy", ["iter 3 / x"]),
        (["d/3/x.npy"], ["d/3/x.npy"], "{iteration}/{name}.npy", ["iter 3 / x"]),
        (["d/iter_3.npz", "d/iter_4.npy"], ["d"], None, ["iter 3 / u", "iter 4 / iter"]),
        (["d/rank_1/x.npy", "d/sub/iter_2/x.npy"], ["d"], None, ["rank 1 / x", "iter 2 / sub/x"]),
    ],
)
def test_names(
    tmp_path: Path, files: list[str], outputs: list[str], layout: str | None, expected: list[str]
) -> None:
    make(tmp_path, *files)
    found = find_outputs(tmp_path, outputs, layout=layout)
    assert texts(found) == expected
    assert found.unmatched == ()


@pytest.mark.parametrize(
    "outputs",
    [
        "out",
        "out/iter_{iteration:d}/rank_{rank:d}/{name}.npy",
        "out/**/iter_{iteration}/rank_{rank}/{name}.npy",
    ],
)
def test_a_history_comes_in_order(tmp_path: Path, outputs: str) -> None:
    make(tmp_path, *HISTORY)
    assert texts(find_outputs(tmp_path, [outputs])) == [
        f"iter {i} / rank {r} / {n}" for i in (2, 10) for r in (0, 1) for n in ("x", "y")
    ]


def test_a_name_does_not_depend_on_what_else_is_there(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy")
    alone = texts(find_outputs(tmp_path, ["d/*.npy"]))
    make(tmp_path, "d/y.npy")
    assert texts(find_outputs(tmp_path, ["d/*.npy"])) == [*alone, "y"]


def test_exclude(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy", "d/run.log", "d/e/y.npy", "d/tmp/z.npy", "d/e/tmp/w.npy")
    find = lambda *exclude: texts(find_outputs(tmp_path, ["d"], exclude=exclude))  # noqa: E731
    assert find("*.log") == ["e/tmp/w", "e/y", "tmp/z", "x"]
    assert find("*.log", "tmp/") == ["e/y", "x"]
    assert find("*.log", "d/tmp/**") == ["e/tmp/w", "e/y", "x"]
    assert find("*.log", "d/*/*") == ["e/tmp/w", "x"]


def test_files_that_no_reader_knows_are_texts_or_bytes(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy", "d/run.log", "d/.hidden.npy", "d/.git/x.npy", "d/odd/y.npy")
    (tmp_path / "d/state").write_bytes(b"\0\1")
    (tmp_path / "d/empty.txt").touch()
    found = find_outputs(tmp_path, ["d"])
    read = {file.label: file.reader.name for file in found.files if file.reader.name != "npy"}
    assert read == {"empty.txt": "tokens", "run.log": "tokens", "state": "bytes"}
    assert not found.unmatched
    texts_note, bytes_note = found.notes
    assert texts_note.endswith(
        ": .log (1), .txt (1), 1 of them empty; empty.txt is no table: holds no rows"
    )
    assert bytes_note.endswith("no reader knows them: without a suffix (1)")
    found = find_outputs(tmp_path, ["d"], options={"header": False, "ignore": ["dates"]})
    assert {file.label: file.options for file in found.files if file.label == "run.log"} == {
        "run.log": {"ignore": ["dates"]}
    }
    found = find_outputs(tmp_path, ["d"], layout="d/{name}.npy")
    assert [path.name for path in found.unmatched] == ["empty.txt", "y.npy", "run.log", "state"]
    assert texts(find_outputs(tmp_path, ["d/run.log"])) == ["run"]
    assert texts(find_outputs(tmp_path, ["d/run.log"], format_name="text")) == ["t"]


def test_what_is_named_is_what_its_suffix_says(tmp_path: Path) -> None:
    """A table that a run has spoilt does not become a text; one in a folder may be either."""
    make(tmp_path, "d/x.npy")
    (tmp_path / "d/t.dat").write_text("1 2\n3\n")
    for outputs in ("d/t.dat", "d/*.dat", "d/{name}.dat"):
        (file,) = find_outputs(tmp_path, [outputs]).files
        assert file.reader.name == "text"
    for found in (
        find_in(tmp_path, outputs=["d"], include=["*.dat"]),
        find_outputs(tmp_path, ["d/t.dat"], trusts_suffixes=False),
    ):
        (file,) = found.files
        assert file.reader.name == "tokens"


def test_sidecars_are_no_outputs(tmp_path: Path) -> None:
    make(tmp_path, "d/x.bin.yaml", "d/y.raw.json", "d/z.json")
    (tmp_path / "d/x.bin").write_bytes(b"12345678")
    (tmp_path / "d/y.raw").write_bytes(b"12345678")
    found = find_outputs(tmp_path, ["d"])
    assert [file.path.name for file in found.files] == ["x.bin", "y.raw", "z.json"]


@pytest.mark.parametrize(
    "outputs", ["gone.npy", "gone", "gone/*.npy", "*.npy", "empty", "gone/{name}.npy"]
)
def test_nothing_found_is_an_error(tmp_path: Path, outputs: str) -> None:
    (tmp_path / "empty").mkdir()
    make(tmp_path, "x.csv")
    with pytest.raises(OutputMissingError, match="run the program first"):
        find_outputs(tmp_path, ["x.csv", outputs])


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ("d", "the folder holds no files but what 'exclude' leaves out; fix 'exclude'"),
        ("d/*.npy", "nothing matches 'd/*.npy' but what 'exclude' leaves out; fix 'exclude'"),
        ("d/*.nyp", "nothing matches 'd/*.nyp'; run the program first, or say where it writes"),
        ("d/.*", "nothing matches 'd/.*' (hidden files are passed over); name hidden files"),
    ],
)
def test_everything_excluded_is_an_error(tmp_path: Path, outputs: str, said: str) -> None:
    make(tmp_path, "d/x.npy", "d/.y.npy")
    with pytest.raises(OutputMissingError) as caught:
        find_outputs(tmp_path, [outputs], exclude=["x.npy"])
    assert said in str(caught.value)


def test_what_is_not_included_is_no_output(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy")
    with pytest.raises(OutputMissingError, match="but what 'include' leaves out; fix 'include'"):
        find_in(tmp_path, outputs=["d"], include=["y.npy"])


def test_a_layout_that_nothing_is_held_against_is_told(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy", "e/y.npy")
    layout = "rank_{rank}/{name}"
    assert ("layout", layout) in find_outputs(tmp_path, ["d/{name}.npy"], layout=layout).unused
    both = find_outputs(tmp_path, ["d/{name}.npy", "e"], layout=layout)
    assert not both.unused


def test_patterns_may_begin_in_this_folder(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy", "x.npy", "d/y.npy")
    found = find_outputs(tmp_path, ["d", "./x.npy"], exclude=["./d/x.npy"])
    assert [file.path.relative_to(tmp_path).as_posix() for file in found.files] == [
        "x.npy",
        "d/y.npy",
    ]
    assert not found.unused


def test_a_file_in_a_closed_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the one check that it is among, not of the whole command."""

    def refuse(path: Path, **_: object) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    make(tmp_path, "d/x.npy")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "exists", refuse)
        with pytest.raises(UnreadableFileError, match=r"d/x.npy: cannot be read: Permission"):
            find_outputs(tmp_path, ["d/x.npy"])


def test_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "d/x.npy", "d/closed/y.npy")
    scandir = os.scandir

    def refuse(path: Path) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    # Not by chmod, which keeps nobody out where tests run as root.
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UnreadableFileError, match="d/closed: cannot be listed: Permission denied"):
        find_outputs(tmp_path, ["d"])


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    make(tmp_path, "d/iter_1/x.npy", "elsewhere/y.npy")
    (tmp_path / "d/a_link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "d/iter_1/up").symlink_to(tmp_path / "d")
    (tmp_path / "d/z.npy").symlink_to(tmp_path / "d/iter_1/x.npy")
    assert texts(find_outputs(tmp_path, ["d"])) == ["a_link/y", "z", "iter 1 / x"]
    (tmp_path / "d/gone.npy").symlink_to(tmp_path / "nowhere.npy")
    with pytest.raises(OutputMissingError, match=r"gone\.npy"):
        texts(find_outputs(tmp_path, ["d"]))


def test_a_link_that_leads_to_itself_keeps_no_other_file_out(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy")
    (tmp_path / "d/loop.npy").symlink_to("loop.npy")
    names = {file.path.name: file for file in find_outputs(tmp_path, ["d"]).files}
    assert set(names) == {"x.npy", "loop.npy"}
    with pytest.raises(UnreadableFileError, match=r"loop\.npy: cannot be read: Too many levels"):
        names["loop.npy"].open()


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\nb", "a\u202eb", "\udcff", "x" * 5000])
def test_names_that_could_disguise_a_report(tmp_path: Path, name: str) -> None:
    make(tmp_path, "t.npz")
    file = replace(find_outputs(tmp_path, ["t.npz"]).files[0], label=name)
    with pytest.raises(CorruptFileError, match="the name of a variable") as caught:
        file.open()
    message = str(caught.value)
    assert message.isprintable()


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/d/\xff.npy"
    make(tmp_path, "d/x.npy")
    os.link(os.fsencode(tmp_path) + b"/d/x.npy", path)
    with pytest.raises(CorruptFileError, match="not UTF-8"):
        texts(find_outputs(tmp_path, ["d"]))


def test_a_file_meant_twice_is_taken_once(tmp_path: Path) -> None:
    make(tmp_path, "d/x.npy")
    assert texts(find_outputs(tmp_path, ["d/x.npy", "d/*.npy", "d"])) == ["x"]


def test_little_is_kept_of_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path, *(f"d/iter_{number}/x.npy" for number in range(500)))
    find_outputs(Path(), ["d"])  # what is loaded for it counts for no file
    tracemalloc.start()
    try:
        found = find_outputs(Path(), ["d"])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.files) == 500
    assert kept < 500 * 300


def test_two_paths_given_by_themselves(tmp_path: Path) -> None:
    make(tmp_path, "a.npy", "b.npy", "c.npz", "run/iter_1/x.npy")
    assert texts(find_in(tmp_path / "a.npy")) == ["a"]
    assert texts(find_in(tmp_path / "b.npy", name="a")) == ["a"]
    assert texts(find_in(tmp_path / "c.npz", name="a")) == ["u"]
    assert texts(find_in(tmp_path / "run")) == ["iter 1 / x"]
    with pytest.raises(OutputMissingError):
        find_in(tmp_path / "gone.npy")


@pytest.mark.parametrize(
    "text", ["{step}", "{name:d}", "{iteration:x}", "{iteration}_{iteration}", "{}"]
)
def test_wrong_fields(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="field"):
        find_outputs(tmp_path, [text])
    with pytest.raises(ConfigError, match="layout"):
        find_outputs(tmp_path, ["x"], layout=text)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.npy", "x.npy", True),
        ("*.npy", "d/x.npy", False),
        ("**/*.npy", "x.npy", True),
        ("**/*.npy", "a/b/x.npy", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "ab", False),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("a.b", "axb", False),
        ("a+(b)", "a+(b)", True),
        ("[]]", "]", False),
        ("x[a-c]", "xb", True),
        ("x[!a-c]", "x/", False),
        ("{iteration}", "12", True),
        ("{iteration}", "1x", False),
        ("{iteration}", "9" * 30, False),
        ("{name}", "a/b", False),
        ("é*", "éa", True),
    ],
)
def test_patterns(pattern: str, path: str, fits: bool) -> None:
    assert (PathPattern(pattern).match(path) is not None) is fits


@pytest.mark.parametrize("pattern", ["[z-a].npy", "out/x[!9-0]*", "{name}[a-cz-d]"])
def test_a_range_that_runs_backwards_is_a_mistake(pattern: str) -> None:
    with pytest.raises(ConfigError, match="a range runs backwards"):
        PathPattern(pattern)
