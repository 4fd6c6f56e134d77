"""Trees and golden files are, to the byte, what they were when this file was written.

The hashes hold for every processor, CPU level, backend and number of threads, so a machine on which
this test passes has the digests of all others.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from core_side import parameters
from oracle import adversary
from oracle import scalars as sc
from oracle.cases import Case

from ciwrap import _core

if TYPE_CHECKING:
    from conformance.conftest import Way

CASES = [
    Case(dtype, k, bound, {"fill_values": (-1.0,)} if k == 5 else {})
    for dtype in ("<f2", "<bf2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c16")
    for k in (1, 5, 15, 255)
    for bound in (
        {"atol": 1e-3},
        {"atol": 1e-30},
        {"rtol": 1e-3},
        {"rtol": 1e-12},
        {"atol": 1e-5, "rtol": 1e-6},
        {"ulps": 4},
    )
]
CASES += [
    Case(dtype, k, {"atol": 7.0}) for dtype in ("|i1", "<i4", ">i8", "<u2", "<u8") for k in (1, 15)
]
CASES += [Case(dtype) for dtype in ("<f4", ">f8", ">u4", "|b1", "|S5", ">U3")]
SCALARS = 6_006  # several blocks of a chunk, several chunks, and a rest

INPUTS = "ed84da2e9daed1461f32aba5f4f2daff41dc13ffe0b0365eaaf4c8920e3fabba"
DIGESTS = "36a17c4ec3e0e5b6325d7a9e760285d325aca72cb3bff56aa30c717b4ac74ea4"
GOLDEN_FILES = "a0417fe200386e764ed105adb559f5a44cbf597768565d22edab5be7e235efdf"


@pytest.fixture(scope="module")
def inputs() -> list[tuple[Case, bytes, bytes]]:
    made = []
    for case in CASES:
        layout = case.plan().layout
        golden, new = adversary.pairs(case.plan(), case.rng(), SCALARS)
        made.append((case, sc.bytes_of(layout, golden), sc.bytes_of(layout, new)))
    return made


def test_the_inputs(inputs: list[tuple[Case, bytes, bytes]]) -> None:
    """If this fails, the numbers that go in differ, and the other test says nothing."""
    told = hashlib.sha256()
    for case, golden, new in inputs:
        told.update(str(case).encode() + golden + new)
    assert told.hexdigest() == INPUTS


def test_digests_residues_and_golden_files(
    inputs: list[tuple[Case, bytes, bytes]], way: Way
) -> None:
    digests, files = hashlib.sha256(), hashlib.sha256()
    for case, data, new_data in inputs:
        asked = parameters(case)
        golden = _core.build_tree(asked, data, **way._asdict())
        new = _core.build_tree(asked, new_data, golden=golden, **way._asdict())
        for part in (golden.digests, golden.residues, new.digests):
            digests.update(b"" if part is None else part.tobytes())
        shape = [SCALARS // case.plan().layout.scalars_per_element]
        variables = [
            _core.GoldenVariable("tree", shape, golden),
            _core.GoldenVariable("with data", shape, golden, data=data),
        ]
        files.update(_core.encode_golden(variables))
    assert (digests.hexdigest(), files.hexdigest()) == (DIGESTS, GOLDEN_FILES)
