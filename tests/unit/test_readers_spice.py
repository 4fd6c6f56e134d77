"""Rawfiles of SPICE, through the published suite and as ngspice writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from told_by_readers import told

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.find_outputs import find_in, reader_named
from ciwrap.testing import ReaderSuite

if TYPE_CHECKING:
    from pathlib import Path

    from ciwrap.formats.reader import Reader
    from ciwrap.testing.reader_suite import Arrays

# As ngspice 39 wrote it, of fewer points; what is imaginary of the frequency was in memory before.
TEXT = """\
Title: rc low pass
Date: Sun Nov 29 10:11:23  2026
Plotname: AC Analysis
Flags: complex
No. Variables: 2
No. Points: 2
Variables:
\t0\tfrequency\tfrequency\tgrid=3
\t1\tv(out)\tvoltage
Values:
0\t\t1.000000000000000e+01,-1.360680344528518e+24
\t9.960676824071726e-01,-6.258477827057168e-02
1\t\t1.000000000000000e+03,9.497738837129807e-197
\t2.470452303185763e-02,-1.552230961346476e-01
Title: rc low pass
Date: Sun Nov 29 10:11:23  2026
Plotname: DC transfer characteristic
Flags: real
No. Variables: 3
No. Points: 6
Dimensions: 2,3
Variables:
\t0\tv(v-sweep)\tvoltage dims=2
\t1\tw\tnotype dims=1
\t2\tz\tnotype
Values:
 0\t0.5
\t5
\t0

 1\t1
\t0
\t1

 2\t0
\t0
\t2

 3\t0
\t0
\t3

 4\t0
\t0
\t4

 5\t0
\t0
\t5

"""


def head(arrays: Arrays, flags: str) -> str:
    count = len(next(iter(arrays.values())))
    lines = [f"\t{n}\t{name}\tvoltage" for n, name in enumerate(arrays)]
    return (
        f"Title: t\nDate: d\nPlotname: P\nFlags: {flags}\nNo. Variables: {len(arrays)}\n"
        f"No. Points: {count}\nVariables:\n" + "\n".join(lines) + "\n"
    )


class TestBinary(ReaderSuite):
    suffix = ".raw"
    dtypes = ("<c16", "<f8")
    shapes = ((0,), (1,), (7,), (1000,))

    def make_reader(self) -> Reader:
        return reader_named("spice")

    def write(self, path: Path, variables: Arrays) -> None:
        table = np.stack(list(variables.values()), axis=1)
        flags = "complex" if table.dtype.kind == "c" else "real"
        path.write_bytes(head(variables, flags).encode() + self.values(table))

    def values(self, table: Any) -> bytes:
        return b"Binary:\n" + table.tobytes()

    def expected(self, variables: Arrays) -> Arrays:
        table = np.stack(list(variables.values()), axis=1)
        return {f"P/{name}": table[:, n].copy() for n, name in enumerate(variables)}


class TestText(TestBinary):
    def values(self, table: Any) -> bytes:
        text = "Values:\n"
        for number, row in enumerate(table.tolist()):
            cells = [
                f"{one.real!r},{one.imag!r}" if isinstance(one, complex) else repr(one)
                for one in row
            ]
            text += f"{number}\t" + "\n\t".join(cells) + "\n"
        return text.encode()


def test_plots_as_ngspice_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "t.raw"
    path.write_text(TEXT)
    voltage, none = (("type", "voltage"),), (("type", "notype"),)
    assert told(path, "spice") == {
        "AC Analysis/frequency": ("<f8", (2,), (("type", "frequency"),), [10, 1000]),
        "AC Analysis/v(out)": (
            *("<c16", (2,), voltage),
            [0.9960676824071726 - 0.06258477827057168j, 0.02470452303185763 - 0.1552230961346476j],
        ),
        "DC transfer characteristic/v(v-sweep)": ("<f8", (2,), voltage, [0.5, 1]),
        "DC transfer characteristic/w": ("<f8", (1,), none, [5]),
        "DC transfer characteristic/z": ("<f8", (2, 3), none, [0, 1, 2, 3, 4, 5]),
    }


def test_plots_of_one_name_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.raw"
    one = {"a": np.arange(3.0)}
    plot = head(one, "real").encode() + b"Binary:\n" + one["a"].tobytes()
    path.write_bytes(plot + plot)
    assert [*told(path, "spice")] == ["P[0]/a", "P[1]/a"]


def test_the_content_tells_a_rawfile_from_raw_binary(tmp_path: Path) -> None:
    rawfile, other = tmp_path / "a.raw", tmp_path / "b.raw"
    rawfile.write_text(TEXT)
    other.write_bytes(np.arange(4.0).tobytes())
    assert find_in(rawfile).files[0].reader.name == "spice"
    assert find_in(other).files[0].reader.name == "raw"
    assert find_in(tmp_path, format_name="raw").files[0].reader.name == "raw"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1.000000000000000e+03,9.497738837129807e-197", "1.0e+03", "not of two numbers"),
        ("1\t\t1.0", "2\t\t1.0", "not numbered from 0"),
        ("9.9606", "9.96O6", "is not a number"),
        ("No. Points: 2", "No. Points: 3", "does not hold 3 points"),
        ("Flags: real", "Flags: real unpadded", "which are not read"),
        ("Flags: real", "Flags: real forward", "which are not read"),
        ("Dimensions: 2,3", "Dimensions: 2,4", "of other dimensions"),
        ("dims=2", "dims=9", "vectors of 9 elements and 6 points"),
        ("Dimensions:", "Offset:", "a line that is not known: 'Offset: 2,3'"),
        ("\t1\tw", "\t3\tw", "where variable 1 is expected"),
        ("Title: rc", "Nothing: rc", "line 1: has a line that is not known"),
    ],
)
def test_what_does_not_follow_the_format(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "t.raw"
    assert old in TEXT
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(CiwrapError, match=message):
        told(path, "spice")
