"""`ciwrap compare` of run folders as programs leave them: one clear result, whatever lies there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
from e2e.cli_project import environment
from e2e.history_runs import ciwrap
from scipy.io import netcdf_file

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT = "iter_{iteration:d}/{name}.npy"


def save(path: Path, values: Any = (1.0, 2.0, 3.0)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.save(file, np.asarray(values))


def texts(document: Any, level: str = "error") -> list[str]:
    return [
        one["text"]
        for one in (*document["messages"], *document["checks"][0]["messages"])
        if one["level"] == level
    ]


def names(document: Any) -> set[str]:
    return {one["name"] for one in document["checks"][0]["variables"]}


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "A", tmp_path / "B"


def test_folders_of_logs_alone(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        for number in range(40):
            path = run / f"part_{number}.log"
            path.parent.mkdir(exist_ok=True)
            path.write_text("hello\n")
        (run / "Makefile").write_text("all:\n")
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 0
    (told,) = texts(document, "note")
    assert told.endswith("texts that no reader knows: .log (40), without a suffix (1)")


def test_no_checkpoint_in_common(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    save(pair[0] / "iter_1/x.npy")
    save(pair[1] / "iter_2/x.npy")
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    assert document["verdict"] == "not_comparable"


def test_a_layout_that_fits_nothing(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        save(run / "iter_1/x.npy")
    code, document = ciwrap(tmp_path, "compare", *pair, "--layout", "step_{iteration:d}/{name}")
    assert code == 3
    assert "no layout fits its path" in texts(document)[0]


def test_a_raw_file_without_a_description_ends_nothing(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    for number, run in enumerate(pair):
        save(run / "x.npy")
        (run / "s.bin").write_bytes(bytes(24 + number))
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    assert names(document) == {"x"}
    assert "nothing says which dtype and shape" in texts(document)[0]
    assert ciwrap(tmp_path, "compare", *pair, "--exclude", "*.bin")[0] == 0


def test_a_link_to_nothing_is_called_so(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        save(run / "x.npy")
        (run / "y.npy").symlink_to("nowhere.npy")
        (run / "z").symlink_to("nowhere")
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    (told,) = texts(document)
    assert told.startswith("4 files: is a broken link")


def test_include_and_exclude_choose_files(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for number, run in enumerate(pair):
        for name in ("out/x.npy", "out/y.npy", "other/x.npy"):
            save(run / name)
        save(run / "timing.npy", [number])
        (run / "run.log").write_text("hello\n")
    assert ciwrap(tmp_path, "compare", *pair)[0] == 1
    code, document = ciwrap(tmp_path, "compare", *pair, "--include", "out/", "--include", "x.npy")
    assert (code, names(document)) == (0, {"out/x", "out/y", "other/x"})
    options = ("--exclude", "timing.*", "--exclude", "*.log", "--include", "*.npy")
    code, document = ciwrap(tmp_path, "compare", *pair, *options)
    assert (code, len(names(document))) == (0, 3)
    assert document["checks"][0]["coverage"]["excluded_files"] == 4


@pytest.mark.parametrize("outputs", ["out/{}", "A/out/{}", "{}"])
def test_the_outputs_of_a_check_are_counted_from_each_run(
    tmp_path: Path, pair: tuple[Path, Path], outputs: str
) -> None:
    inside = "" if outputs == "{}" else "out/"
    for number, run in enumerate(pair):
        save(run / f"{inside}iter_1/x.npy", [1.0 + 1e-9 * number])
        save(run / "timing.npy", [number])
        (run / "run.log").write_text("hello\n")
    config = tmp_path / "ciwrap.yaml"
    config.write_text(
        f'version: 1\nchecks: {{c: {{outputs: "{outputs.format(LAYOUT)}", atol: 1e-6}}}}\n'
    )
    code, document = ciwrap(tmp_path, "compare", *pair, "--check", "c", "--config", config)
    assert (code, names(document)) == (0, {"x"})


def test_outputs_that_are_a_folder_may_be_the_run_itself(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    for run in pair:
        save(run / "x.npy")
        (run / "tmp").mkdir()
        (run / "tmp/y.log").write_text("hello\n")
    config = tmp_path / "ciwrap.yaml"
    config.write_text('version: 1\nchecks: {c: {outputs: out, exclude: "out/tmp/"}}\n')
    code, document = ciwrap(tmp_path, "compare", *pair, "--check", "c", "--config", config)
    assert (code, names(document)) == (0, {"x"})


def write_unsuffixed(run: Path) -> None:
    """Formats of the field, under the names that their programs give them."""
    run.mkdir()
    with netcdf_file(run / "mesh.e", "w", version=2) as file:
        file.createDimension("n", 3)
        file.createVariable("coord", "f8", ("n",))[:] = [1, 2, 3]
    for name in ("grid.cgns", "field.med", "scf.chk", "flash_hdf5_plt_cnt_0001"):
        with h5py.File(run / name, "w") as file:
            file["dens"] = np.arange(4.0)


def test_formats_of_the_field_without_format(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        write_unsuffixed(run)
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 0
    assert len(names(document)) == 5
    (note,) = texts(document, "note")
    assert note.startswith("read by content")
    for said in (".e as netcdf (1)", ".cgns as hdf5", ".med as hdf5", ".chk as hdf5", "without a"):
        assert said in note


def test_the_first_format_that_fits_counts(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        run.mkdir()
        (run / "a.lst").write_text("t u\n1 2\n")
        (run / "b.lst").write_text("1.5,2\n")
        save(run / "x.npy")
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert (code, names(document)) == (0, {"a.lst", "b.lst", "x"})  # as texts
    code, document = ciwrap(tmp_path, "compare", *pair, "--format", "*.lst=text")
    assert (code, len(names(document))) == (0, 5)
    rules = ("--format", "b.*=netcdf", "--format", "*.lst=text")
    code, document = ciwrap(tmp_path, "compare", *pair, *rules)
    # No netcdf, but the same bytes.
    assert (code, names(document)) == (0, {"a.lst/t", "a.lst/u", "b.lst", "x"})
    config = tmp_path / "ciwrap.yaml"
    config.write_text(
        "version: 1\nchecks:\n  c:\n    outputs: .\n    formats:\n"
        '      "b.*": {format: text, options: {header: false}}\n      "*.lst": text\n'
    )
    code, document = ciwrap(tmp_path, "compare", *pair, "--check", "c", "--config", config)
    assert (code, len(names(document))) == (0, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [(("--format", "*.e="), "lacks a part"), (("--format", "npy", "--format", "text"), "two form")],
)
def test_formats_that_mean_nothing(
    tmp_path: Path, pair: tuple[Path, Path], given: tuple[str, ...], message: str
) -> None:
    for run in pair:
        save(run / "x.npy")
    code, document = ciwrap(tmp_path, "compare", *pair, *given)
    assert code == 2
    assert message in document["messages"][0]["text"]


def test_an_unknown_reader_in_formats_is_named_with_its_line(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    config = tmp_path / "ciwrap.yaml"
    config.write_text('version: 1\nchecks:\n  c:\n    outputs: .\n    formats: {"*.e": netcdff}\n')
    save(pair[0] / "x.npy")
    shutil.copytree(*pair)
    code, document = ciwrap(tmp_path, "compare", *pair, "--check", "c", "--config", config)
    assert code == 2
    assert "ciwrap.yaml:5:" in document["messages"][0]["text"]
    assert "netcdf" in document["messages"][0]["text"]


def test_equal_errors_are_one_message(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    for run in pair:
        save(run / "x.npy")
        for number in range(30):
            (run / f"bad_{number}.npy").write_bytes(f"no array {run.name}".encode())
    code, document = ciwrap(tmp_path, "compare", *pair)
    assert code == 3
    (told,) = texts(document)
    assert told.startswith("60 files: ")
    assert "and 57 more" in told


def test_the_first_line_says_what_became_of_the_variables(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    """A file that nobody read does not make variables that match look as if they did not."""
    for run in pair:
        for number in (1, 2):
            save(run / f"iter_{number}/x.npy")
        (run / "notes.bin").write_bytes(run.name.encode())
        save(run / "total.npy")
    words = ("compare", *pair)
    title = printed(tmp_path, *words)[0]
    assert title == (
        "NOT COMPARABLE  all 2 variables that could be compared match, and not everything could be"
    )
    save(pair[1] / "total.npy", (1.0, 2.0, 4.0))
    lines = printed(tmp_path, *words)
    assert lines[0] == (
        "NOT COMPARABLE  not everything could be compared; differ: 1 of 2 variables"
    )
    assert "    DIFFER  total: 1 of 3 values differs; largest |difference| 1" in lines
    save(pair[1] / "iter_2/x.npy", (1.0, 2.0, 4.0))
    assert printed(tmp_path, *words)[0].endswith("differ: 2 of 2 variables, at 1 of 2 iterations")


def printed(folder: Path, *words: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "ciwrap", *map(str, words)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    return done.stdout.splitlines()
