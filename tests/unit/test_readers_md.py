"""Trajectories of GROMACS, and of CHARMM as others write them.

MDAnalysis is in the extra `formats-test`: pip install '.[test,formats-test]'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from optional_libraries import needs

from ciwrap.errors import UnsupportedFormatError
from ciwrap.readers.dcd import DcdReader
from ciwrap.readers.gromacs import GromacsReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.readers import Reader
    from ciwrap.testing.reader_suite import Arrays

needs("MDAnalysis")


def test_dcd_as_others_write_it(tmp_path: Path) -> None:
    module = needs("MDAnalysis.lib.formats.libdcd")
    frames = np.random.default_rng(0).normal(size=(3, 9, 3)).astype("<f4")
    path = tmp_path / "x.dcd"
    with module.DCDFile(str(path), "w") as file:
        file.write_header(remarks="x", natoms=9, istart=5, nsavc=15, delta=0.002, is_periodic=1)
        for frame in frames:
            file.write(frame, [10, 10, 10, 90, 90, 90])
    with DcdReader().open(path) as source:
        found = [source.read(f"positions[{n}]", 0, 27).tolist() for n in range(3)]
        assert found == frames.reshape(3, 27).tolist()
        assert source.variables[-1].iteration == 35


class GromacsSuite(ReaderSuite):
    dtypes = ("<f4",)
    shapes = ((7, 3), (1, 3), (1000, 3))
    fuzz_examples = 60
    slowly = 7
    test_several_variables = None  # type: ignore[assignment]

    def make_reader(self) -> Reader:
        return GromacsReader()

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        needs("MDAnalysis.lib.formats.libmdaxdr")

    def example(self, folder: Path) -> tuple[Path, Arrays]:
        path = folder / f"example{self.suffix}"
        arrays = self.variables("<f4", (7, 3))
        self.write(path, arrays)
        return path, arrays

    def variables(self, dtype: str, shape: tuple[int, ...]) -> Arrays:
        draw = np.random.default_rng(1)
        return {"data": draw.integers(-900, 900, shape).astype(dtype) / np.float32(8)}


class TestTrr(GromacsSuite):
    suffix = ".trr"

    def write(self, path: Path, variables: Arrays) -> None:
        module = needs("MDAnalysis.lib.formats.libmdaxdr")
        x = variables["data"]
        with module.TRRFile(str(path), "w") as file:
            for step in (0, 50):
                file.write(x, -x, None, np.eye(3, dtype="f4"), step, step * 0.5, 0, len(x))

    def expected(self, variables: Arrays) -> Arrays:
        x, found = variables["data"], {}
        for number, step in enumerate((0, 50)):
            found[f"positions[{number}]"] = x
            found[f"velocities[{number}]"] = -x
            found[f"box[{number}]"] = np.eye(3, dtype="f4")
            found[f"time[{number}]"] = np.array(step * 0.5)
        return found

    def test_steps(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        with self.open(path, arrays) as source:
            assert {info.iteration for info in source.variables} == {0, 50}
            assert source.variables[0].called == "positions"

    def test_double_precision_is_refused(self, tmp_path: Path) -> None:
        path, arrays = self.example(tmp_path)
        data = bytearray(path.read_bytes())
        data[32:36] = (72).to_bytes(4, "big")
        path.write_bytes(bytes(data))
        with pytest.raises(UnsupportedFormatError, match="double precision"):
            self.open(path, arrays)


class TestXtc(GromacsSuite):
    suffix = ".xtc"

    def write(self, path: Path, variables: Arrays) -> None:
        module = needs("MDAnalysis.lib.formats.libmdaxdr")
        x = variables["data"]
        with module.XTCFile(str(path), "w") as file:
            file.write(x, np.eye(3, dtype="f4"), 10, 1.0, 1000.0)

        with module.XTCFile(str(path)) as file:
            self.decoded = file.read().x
        # Rounded to thousandths; the step back to float32 is each library version's own.
        steps = np.rint(x.astype("f8") * 1000) / 1000
        assert np.abs(self.decoded - steps).max() <= np.spacing(np.float32(1000))

    def expected(self, variables: Arrays) -> Arrays:
        return {
            "positions[0]": self.decoded,
            "box[0]": np.eye(3, dtype="f4"),
            "time[0]": np.array(1.0),
        }
