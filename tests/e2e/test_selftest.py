"""`ciwrap selftest`: damage in copies of the outputs, of which none is caught by chance."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call, command
from e2e.cli_project import environment, validator
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.cli.main import run as run_cli
from ciwrap.model import ErrorBound
from ciwrap.studies.selftest import beyond

SEED = 20261122


class Project:
    """Outputs of two iterations in `out/`, and what selftest says of them."""

    def __init__(self, folder: Path, **arrays: Any) -> None:
        self.folder = folder
        for iteration in (0, 5):
            place = folder / f"out/iter_{iteration}"
            place.mkdir(parents=True)
            for name, array in arrays.items():
                np.save(place / f"{name}.npy", array)

    def configure(self, text: str, defaults: str = "atol: 1e-6") -> None:
        (self.folder / "ciwrap.yaml").write_text(
            f"version: 1\ndefaults: {{{defaults}}}\nchecks:\n  c:\n    outputs: out\n{text}"
        )

    def digest(self) -> dict[str, str]:
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.folder.rglob("*")
            if path.is_file() and path.name != "result.json"
        }

    def selftest(self, *more: str) -> tuple[int, Any, str]:
        """Nothing but the JSON document is written."""
        before = self.digest()
        left = set(Path(tempfile.gettempdir()).glob("ciwrap-selftest-*"))
        done = call(
            "selftest",
            "--json=result.json",
            *more,
            folder=self.folder,
            environment=environment(),
        )
        assert self.digest() == before
        assert set(Path(tempfile.gettempdir()).glob("ciwrap-selftest-*")) <= left
        document = json.loads((self.folder / "result.json").read_text())
        validator().validate(document)
        assert document["exit_code"] == done.returncode
        return done.returncode, document, done.stdout + done.stderr


def planted(document: Any, *, caught: bool) -> Counter[tuple[str, str]]:
    [check] = document["checks"]
    return Counter(
        (Path(one["name"]).stem, one["damage"])
        for one in check["planted"]
        if one["caught"] is caught
    )


def reasons(document: Any) -> dict[tuple[str, str], str]:
    [check] = document["checks"]
    return {
        (Path(one["name"]).stem, one["damage"]): one["reason"]
        for one in check["planted"]
        if not one["caught"]
    }


def noise(*shape: int) -> Any:
    return np.random.default_rng(SEED).normal(size=shape)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_all_is_caught_whatever_is_kept(tmp_path: Path, evidence: str) -> None:
    it = Project(
        tmp_path,
        x=noise(30, 40),
        y=noise(50).astype("f4"),
        z=noise(9) + 1j,
        n=np.arange(7),
        b=np.array([True, False]),
        s=np.array([b"ab", b"cd"]),
    )
    it.configure("", f"atol: 1e-6, evidence: {evidence}")
    code, document, text = it.selftest()
    assert code == 0, text
    found = planted(document, caught=True)
    assert found == Counter(
        {
            (name, damage): 2
            for name in "xyznbs"
            for damage in ("beyond-bound", "nan", "sign", "lost-variable", "truncated-file")
            if not (damage == "nan" and name in "nbs") and not (damage == "sign" and name in "bs")
        }
    )
    assert not planted(document, caught=False)


def test_what_is_not_caught_and_why(tmp_path: Path) -> None:
    mask = np.zeros(50, dtype=bool)
    mask[10:20] = True
    it = Project(
        tmp_path,
        masked=noise(50),
        mask=mask,
        ignored=noise(5),
        coarse=noise(6) / 100,
        fine=noise(7),
    )
    it.configure(
        "    ignore: [ignored]\n    strict: {variables: false}\n"
        "    variables: {masked: {mask: mask}, coarse: {atol: 1}}\n"
    )
    code, document, text = it.selftest()
    assert code == 1, text
    said = reasons(document)
    lost = {(name, "lost-variable") for name in ("masked", "mask", "coarse", "fine")}
    assert set(said) == lost | {
        *(("ignored", damage) for damage in ("beyond-bound", "nan", "sign", "lost-variable")),
        ("masked", "masked"),
        ("coarse", "sign"),
    }
    assert all("'strict: variables' lets" in said[one] for one in lost)
    assert all("'ignore'" in text for (name, _), text in said.items() if name == "ignored")
    assert said["masked", "masked"] == "the mask 'mask' takes the value out"
    assert "is within the bound (atol=1 rtol=0)" in said["coarse", "sign"]
    for name in ("masked", "coarse", "fine"):
        assert planted(document, caught=True)[name, "beyond-bound"] == 2
    assert "not caught:" in text
    assert "coarse: sign (2 times)" in text


def test_rows_that_are_aligned(tmp_path: Path) -> None:
    it = Project(tmp_path)
    draw = np.random.default_rng(SEED)
    for iteration in (0, 5):
        for rank, ids in enumerate(np.array_split(draw.permutation(60), 2)):
            place = tmp_path / f"out/iter_{iteration}/rank_{rank}"
            place.mkdir()
            np.save(place / "id.npy", ids)
            np.save(place / "x.npy", noise(60)[ids])
    it.configure("", "atol: 1e-6, align_by: id, across_ranks: true")
    code, document, text = it.selftest()
    assert code == 0, text
    assert planted(document, caught=True)["x", "sign"] == 4
    assert planted(document, caught=True)["id", "beyond-bound"] == 4


def test_units(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    (tmp_path / "out").mkdir()
    with h5py.File(tmp_path / "out/all.h5", "w") as file:
        file["u"] = noise(20)
        file["u"].attrs["units"] = "m"
        file["plain"] = noise(20)
    it = Project.__new__(Project)
    it.folder = tmp_path
    it.configure("    options: {attributes: [units]}\n")
    code, document, text = it.selftest()
    assert code == 0, text
    found = planted(document, caught=True)
    assert [name for name, damage in found if damage == "unit"] == ["u"]
    assert found["all", "truncated-file"] == 1


def test_what_cannot_be_tried(tmp_path: Path) -> None:
    it = Project(tmp_path, empty=np.empty((0, 3)), x=noise(3))
    it.configure("")
    code, document, text = it.selftest()
    assert "empty: it has no values" in document["checks"][0]["not_tried"][0]
    np.save(tmp_path / "out/iter_0/x.npy", noise(3))
    it.configure("    variables: {x: {mask: gone}}\n")
    code, document, text = it.selftest()
    assert code == 3
    assert "its mask 'gone' is not among the outputs" in text
    it.configure("    ensemble: runs/*\n")
    code, document, text = it.selftest()
    assert code == 3
    assert "its golden is an ensemble" in text
    it.configure("    layout: none_{iteration:d}\n")
    assert it.selftest()[0] == 3
    code, document, text = it.selftest("--check=d")
    assert code == 2


def test_it_leaves_nothing_when_it_is_ended(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for iteration in range(40):
        place = tmp_path / f"p/out/iter_{iteration}"
        place.mkdir(parents=True)
        np.save(place / "x.npy", noise(300, 300))
    (tmp_path / "p/ciwrap.yaml").write_text("version: 1\nchecks: {c: {outputs: out}}\n")
    process = subprocess.Popen(
        command("selftest"),
        cwd=tmp_path / "p",
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not list(temporary.glob("ciwrap-selftest-*/golden")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    assert process.returncode != 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_the_demonstration(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    assert run_cli(["demo", "--keep", str(folder)]) == 0
    it = Project.__new__(Project)
    it.folder = folder
    code, document, text = it.selftest()
    assert code == 0, text
    assert sum(planted(document, caught=True).values()) > 200


# --- values just beyond ---------------------------------------------------------------------------

BOUNDS = st.one_of(
    st.builds(
        ErrorBound,
        atol=st.sampled_from([0.0, 1e-300, 1e-8, 0.1, 3.0]),
        rtol=st.sampled_from([0.0, 1e-16, 1e-7, 0.3, 2.0]),
    ),
    st.builds(ErrorBound, ulps=st.integers(1, 100)),
)


def is_beyond(value: Any, found: Any, bound: ErrorBound) -> bool:
    exact = Fraction(float(value))
    allowed = Fraction(bound.atol) + Fraction(bound.rtol) * abs(exact)
    return abs(Fraction(float(found)) - exact) > allowed


@given(
    st.sampled_from(["f2", "f4", "f8"]),
    st.floats(allow_nan=False, allow_infinity=False),
    BOUNDS,
)
def test_the_nearest_float_beyond_a_bound(dtype: str, number: float, bound: ErrorBound) -> None:
    kind = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        value = kind(number)
        if not np.isfinite(value):
            return
        found = beyond(value, bound)
        if found is None:
            largest = np.finfo(kind).max
            assert bound.ulps or not any(is_beyond(value, v, bound) for v in (largest, -largest))
            return
        assert found.dtype == value.dtype
        if bound.ulps:
            steps = 0
            while value != found:
                value, steps = np.nextafter(value, found), steps + 1
            assert steps == bound.ulps + 1
            return
        assert is_beyond(value, found, bound)
        assert not is_beyond(value, np.nextafter(found, value), bound)


@given(
    st.sampled_from(["i1", "u1", "i8", "u8"]),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([ErrorBound(), ErrorBound(atol=2.5), ErrorBound(rtol=0.1), ErrorBound(ulps=3)]),
)
def test_the_nearest_integer_beyond_a_bound(dtype: str, number: int, bound: ErrorBound) -> None:
    limits = np.iinfo(dtype)
    value = np.dtype(dtype).type(max(limits.min, min(limits.max, number)))
    found = beyond(value, bound)
    assert found is not None
    away = abs(int(found) - int(value))
    allowed = Fraction(bound.atol) + Fraction(bound.rtol) * abs(int(value))
    allowed = Fraction(bound.ulps) if bound.ulps else allowed
    assert away > allowed >= away - 1


LOG = """\
started 2026-11-22 10:01:17
wall shear stress = 5.0
F = 1,234.5 N, v1.2.3, 3.0D-05 and 1.5-100
glued 0.125000-12.500000 nan -0.0
step 1 E = -1.5 took 0.51
step 2 E = -1.4 took 0.52
note 7
Elapsed: 3.2 s
"""


def test_every_place_of_a_text_has_its_turn(tmp_path: Path) -> None:
    """One number for each template and field; what is left out is named with what does so."""
    project = Project(tmp_path)
    (tmp_path / "out/run.log").write_text(LOG)
    rules = (
        "ignore: [times, dates], ignore_lines: ['note *'], ignore_places: ['step # E = # took {}']"
    )
    project.configure(f"    format: tokens\n    options: {{{rules}}}\n")
    code, document, out = project.selftest()
    [check] = document["checks"]
    numbers = [one for one in check["planted"] if one["damage"] == "beyond-bound"]
    missed = [one["reason"] for one in numbers if not one["caught"]]
    assert code == 1
    assert sum(one["caught"] for one in numbers) == 1 + 5 + 4 + 2
    started = '"started # - # - # # : # : #" number {}, line 1: left out by {}'
    assert sorted(missed) == sorted(
        [
            *(started.format(number, "dates") for number in (1, 2, 3)),
            *(started.format(number, "times") for number in (4, 5, 6)),
            '"step # E = # took #" number 3, line 5: left out by ignore_places',
            '"note #" number 1, line 7: left out by ignore_lines',
            '"Elapsed: # s" number 1, line 8: left out by times',
        ]
    )
    assert '"Elapsed: # s" number 1, line 8: left out by times' in out
    project.configure("    format: tokens\n", defaults="atol: 100, rtol: 1e-3")
    assert project.selftest()[0] == 0


def test_every_place_of_a_section_has_its_turn(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "out/run.log").write_text("Step E t\n1 -1.5 0.5\n2 -1.4 0.5\nend\n3 -1.2 0.5\n")
    place = "{place: '# # {}', section: {start: ^Step, end: end}}"
    project.configure(f"    format: tokens\n    options: {{ignore_places: [{place}]}}\n")
    code, document, _ = project.selftest()
    [check] = document["checks"]
    numbers = [one for one in check["planted"] if one["damage"] == "beyond-bound"]
    missed = [one["reason"] for one in numbers if not one["caught"]]
    assert code == 1
    # Outside of the section, the third number of such a row is a place of its own.
    assert missed == ['"# # #" number 3, line 2: left out by ignore_places']
    assert sum(one["caught"] for one in numbers) == 2 + 1
