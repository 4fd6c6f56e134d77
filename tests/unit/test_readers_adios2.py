"""ADIOS2, both of its formats, whole and damaged."""

from __future__ import annotations

import os
import random
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from optional_libraries import needs

from ciwrap.base.errors import (
    CiwrapError,
    CorruptFileError,
    StillWrittenError,
    UnsupportedFormatError,
)
from ciwrap.formats import apart as child
from ciwrap.formats.adios2 import Adios2Reader
from ciwrap.formats.find_outputs import find_outputs
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

needs("adios2")


class TestAdios2(ReaderSuite):
    suffix = ".bp"
    dtypes = ("<f8", "<f4", "<i4", "<i8", "|i1", "|u1", "<u2", "<c16")
    shapes = ((1,), (7,), (1000,), (3, 5), (2, 3, 4))
    keeps_order = False
    fixed_size = False
    # Waiting for data takes PATIENCE_SECONDS each time.
    fuzz_examples = 400 if os.environ.get("CIWRAP_LONG") == "1" else 10
    slowly = 701
    # What damage is told as depends on how long ADIOS2 waits.
    damaged_examples = 0
    engine: ClassVar[str] = "BP5"

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("adios2")

    def make_reader(self) -> Reader:
        return Adios2Reader()

    def write(self, path: Path, variables: Arrays) -> None:
        adios2 = needs("adios2")
        io = adios2.Adios().declare_io("test")
        io.set_engine(self.engine)
        with adios2.Stream(io, str(path), "w") as file:
            for _ in file.steps(2):
                for name, array in variables.items():
                    shape = list(array.shape)
                    file.write(name, array, shape, [0] * len(shape), shape)

    damaged: ClassVar[str] = "data.0"

    def part(self, path: Path) -> Path:
        return path / self.damaged

    @pytest.fixture(autouse=True)
    def _impatience(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """ADIOS2 waits for data that a file promises and does not hold: not for long here."""
        monkeypatch.setattr(child, "PATIENCE_SECONDS", 1.0)

    def test_reading_leaves_no_file_behind(self, tmp_path: Path) -> None:
        path = tmp_path / f"read_{uuid.uuid4().hex}.bp"
        self.write(path, {"x": np.arange(5.0)})
        held = sorted(tmp_path.rglob("*"))
        source = self.make_reader().open(path)
        try:
            assert source.variables
        finally:
            source.close()
        assert sorted(tmp_path.rglob("*")) == held
        assert list(Path("/tmp").glob(f"*{path.stem}*")) == []

    def test_garbage(self, tmp_path: Path) -> None:
        """Data have no checksum: garbage that is long enough is other data."""
        path, arrays = self.example(tmp_path)
        for size in (1, 1000, (path / "data.0").stat().st_size):
            self.part(path).write_bytes(random.Random(size).randbytes(size))
            self.read_or_refused(path, arrays)

    def test_truncated_data_are_refused(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        data = path / "data.0"
        data.write_bytes(data.read_bytes()[:-9])
        (path / "md.0").write_bytes((path / "md.0").read_bytes()[:-9])
        self.refused(path, arrays, CorruptFileError)

    def expected(self, variables: Arrays) -> Arrays:
        return {f"{name}[{n}]": array for name, array in variables.items() for n in range(2)}


class TestAdios2Bp4(TestAdios2):
    engine = "BP4"


class Adios2Damage(TestAdios2):
    """Damage to the metadata; all else is as above."""

    test_every_dtype = test_every_shape = test_several_variables = None  # type: ignore[assignment]
    test_missing_file = test_unreadable_file = test_truncated_data_are_refused = None  # type: ignore[assignment]
    test_folder_and_file_exchanged = test_pipe_instead_of_file = None  # type: ignore[assignment]

    def test_empty_file(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        self.part(path).write_bytes(b"")
        self.refused(path, arrays, (CorruptFileError, StillWrittenError))

    def test_garbage(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        for size in (1, 90, 400, 900):
            self.part(path).write_bytes(random.Random(size).randbytes(size))
            self.refused(path, arrays, (CorruptFileError, UnsupportedFormatError))


class TestAdios2Metadata(Adios2Damage):
    damaged = "md.0"


class TestAdios2MetaMetadata(Adios2Damage):
    damaged = "mmd.0"


class TestAdios2Index(Adios2Damage):
    damaged = "md.idx"


class TestAdios2Bp4Metadata(Adios2Damage):
    engine = "BP4"
    damaged = "md.0"


class TestAdios2Bp4Index(Adios2Damage):
    engine = "BP4"
    damaged = "md.idx"


def adios2_file(path: Path, engine: str, write: Any) -> Path:
    """What `write(file, number of the step)` writes in four steps."""
    adios2 = needs("adios2")
    io = adios2.Adios().declare_io("test")
    io.set_engine(engine)
    with adios2.Stream(io, str(path), "w") as file:
        for step in file.steps(4):
            write(file, step.current_step())
    return path


@pytest.mark.parametrize("engine", ["BP5", "BP4"])
def test_adios2_shapes_and_steps_of_each_variable(engine: str, tmp_path: Path) -> None:
    """Arrays that grow, and some that are not in every step; a reader with access to all steps at
    once would take them all for as long as the first, or the last.
    """

    def write(file: Any, step: int) -> None:
        file.write("grows", np.arange(5.0 + step), [5 + step], [0], [5 + step])
        file.write("bytes", np.array([-128, 127], "i1"), [2], [0], [2])
        if step % 2:
            file.write("odd", np.full(3, float(step)), [3], [0], [3])
            file.write("mine", np.arange(step + 2.0), [], [], [step + 2])

    with Adios2Reader().open(adios2_file(tmp_path / "x.bp", engine, write)) as source:
        found = {
            (i.called, i.iteration): source.read(i.name, 0, i.element_count).tolist()
            for i in source.variables
        }
        assert {i.rank for i in source.variables if i.called == "mine"} == {0}
        assert source.read("mine[1]/0", 3, 2).tolist() == [3, 4]
    for step in range(4):
        assert found.pop(("grows", step)) == list(range(5 + step))
        assert found.pop(("bytes", step)) == [-128, 127]
    assert found == {
        ("odd", 1): [1, 1, 1],
        ("odd", 3): [3, 3, 3],
        ("mine", 1): [0, 1, 2],
        ("mine", 3): [0, 1, 2, 3, 4],
    }


@pytest.mark.parametrize("engine", ["BP5", "BP4"])
def test_adios2_elements_that_nobody_wrote(engine: str, tmp_path: Path) -> None:
    """ADIOS2 gives zeros, or what happens to be in memory, where a writer wrote nothing."""

    def write(file: Any, step: int) -> None:
        file.write("x", np.ones((2, 4)), [3, 4], [0, 0], [2, 4])
        if step == 2:
            file.write("x", np.ones((1, 4)), [3, 4], [2, 0], [1, 4])

    with Adios2Reader().open(adios2_file(tmp_path / "x.bp", engine, write)) as source:
        faults = {info.iteration: info.fault for info in source.variables}
        assert source.read("x[2]", 0, 12).tolist() == [1] * 12
    assert faults[2] is None
    assert faults[1] == "has 12 elements, of which 8 were written"


@pytest.mark.parametrize("engine", ["BP5", "BP4"])
def test_adios2_elements_written_twice_make_up_for_no_others(engine: str, tmp_path: Path) -> None:
    def write(file: Any, step: int) -> None:
        for start in (0, 0 if step == 1 else 1 if step == 2 else 2):
            file.write("x", np.full((2, 4), 1.0 + start), [4, 4], [start, 0], [2, 4])
        if step == 3:
            file.write("x", np.full((4, 1), 9.0), [4, 4], [0, 3], [4, 1])

    with Adios2Reader().open(adios2_file(tmp_path / "x.bp", engine, write)) as source:
        faults = {info.iteration: info.fault for info in source.variables}
        assert source.read("x[3]", 0, 4).tolist()[:3] == [1] * 3
    twice = "has elements that were written twice, and others that were not"
    assert faults == {0: None, 1: twice, 2: twice, 3: None}


def test_an_adios2_output_that_is_still_written(tmp_path: Path) -> None:
    adios2 = needs("adios2")
    path = tmp_path / "x.bp"
    file = adios2.Stream(str(path), "w")
    file.begin_step()
    file.write("x", np.ones(4), [4], [0], [4])
    file.end_step()
    with pytest.raises(CiwrapError, match="finished writing"):
        Adios2Reader().open(path)
    file.close()
    Adios2Reader().open(path).close()


def test_adios2_steps_and_scalars(tmp_path: Path) -> None:
    adios2 = needs("adios2")
    path = tmp_path / "x.bp"
    with adios2.Stream(str(path), "w") as file:
        for number in file.steps(3):
            file.write("step", np.array(10 * number.current_step()))
            file.write("x", np.arange(4.0) + number.current_step(), [4], [0], [4])
            file.write("local", np.full(3, 7.0), [], [], [3])
    with Adios2Reader().open(path, options={"iteration_variable": "step"}) as source:
        places = {(i.called, i.iteration, i.rank) for i in source.variables}
        assert ("x", 20, None) in places
        assert ("local", 10, 0) in places
        assert source.read("x[2]", 1, 2).tolist() == [3, 4]
    found = find_outputs(tmp_path, ["."])
    assert [one.path.name for one in found.files] == ["x.bp"]
    with pytest.raises(CiwrapError, match="no variable 'nothing'"):
        Adios2Reader().open(path, options={"iteration_variable": "nothing"})
    (path / "md.idx").unlink()
    with pytest.raises(CorruptFileError, match=r"md\.idx"):
        Adios2Reader().open(path)
