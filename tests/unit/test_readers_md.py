"""Trajectories of GROMACS, and of CHARMM as others write them.

MDAnalysis is in the extra `formats-test`: pip install '.[test,formats-test]'
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from optional_libraries import needs

from ciwrap.base.errors import UnsupportedFormatError
from ciwrap.formats.find_outputs import formats_of
from ciwrap.formats.trajectories import DcdReader, GromacsReader
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
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

    def test_double_precision_without_a_box_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "x.trr"
        path.write_bytes(trr_frame(0, double=True, box=False))
        with pytest.raises(UnsupportedFormatError, match="is written in double precision"):
            GromacsReader().open(path)


def trr_frame(step: int, *, double: bool = False, box: bool = True) -> bytes:
    """A frame of four atoms as GROMACS writes it."""
    dtype = np.dtype(">f8" if double else ">f4")
    sizes = [0] * 13
    sizes[2], sizes[7], sizes[10], sizes[11] = (
        9 * dtype.itemsize * box,
        12 * dtype.itemsize,
        4,
        step,
    )
    data = struct.pack(">iii12s13i", 1993, 13, 12, b"GMX_trn_file", *sizes)
    return data + b"".join(
        np.asarray(values).astype(dtype).tobytes()
        for values in ([step, 0.0], *([np.eye(3)] if box else []), np.arange(12))
    )


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


@pytest.mark.parametrize("kind", ["TRR", "XTC"])
@pytest.mark.parametrize("name", ["x", "x.trr", "x.xtc"])
def test_what_a_trajectory_is_called_does_not_decide(tmp_path: Path, kind: str, name: str) -> None:
    module = needs("MDAnalysis.lib.formats.libmdaxdr")
    x = np.arange(36, dtype="<f4").reshape(12, 3)
    path = tmp_path / name
    with getattr(module, f"{kind}File")(str(path), "w") as file:
        if kind == "TRR":
            file.write(x, None, None, np.eye(3, dtype="f4"), 5, 2.5, 0, len(x))
        else:
            file.write(x, np.eye(3, dtype="f4"), 5, 2.5, 1000)
    assert formats_of(path) == ("gromacs",)
    with GromacsReader().open(path) as source:
        assert np.allclose(source.read("positions[0]", 0, 36), x.reshape(-1))
