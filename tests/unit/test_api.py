"""The Python API as its documentation promises it."""

from __future__ import annotations

import array
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import ciwrap
from ciwrap.api import Golden, build_tree, check_array, compare_arrays, make_golden, read_golden
from ciwrap.arrays.handover import named_bfloat16
from ciwrap.arrays.values import text_literals, widen_bfloat16
from ciwrap.base.errors import (
    CorruptGoldenError,
    GoldenMissingError,
    InvalidBoundError,
    UnsupportedDtypeError,
    UsageError,
    VariableMissingError,
    WriteFailedError,
)
from ciwrap.model import Evidence, Verdict

if TYPE_CHECKING:
    from pathlib import Path

VALUES = np.linspace(0, 1, 1000).reshape(10, 100)


class OnlyDlpack:
    """An array of another library: no NumPy protocol but DLPack."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


class OnDevice(OnlyDlpack):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("on a device")


for kind in (OnlyDlpack, OnDevice):
    ciwrap.register_type(kind, "array")


def test_trees_of_equal_values_have_equal_roots() -> None:
    first = build_tree(VALUES, atol=1e-6)
    assert len(first.root) == 16
    assert build_tree(VALUES.copy(), atol=1e-6).root == first.root
    assert build_tree(np.asfortranarray(VALUES), atol=1e-6).root == first.root
    assert build_tree(VALUES + 1, atol=1e-6).root != first.root
    assert build_tree(VALUES, atol=1e-6, residue_levels=15).residues is not None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda values: OnlyDlpack(values),
        lambda values: memoryview(values),
        lambda values: array.array("d", values.reshape(-1)),
        lambda values: values.tolist(),
        lambda values: values[::-1][::-1],
    ],
)
def test_arrays_of_other_makes(wrap: Any) -> None:
    assert build_tree(wrap(VALUES)).root == build_tree(VALUES).root


def test_comparing_two_arrays() -> None:
    new = VALUES.copy()
    new[3, 7] += 1e-3
    result = compare_arrays(VALUES, new, atol=1e-6, name="t")
    assert (result.verdict, result.name) == (Verdict.DIFFER, "t")
    assert (result.differing_count, result.first_index) == (1, (3, 7))
    assert compare_arrays(VALUES, new, atol=1e-2).verdict is Verdict.MATCH
    assert compare_arrays(VALUES, VALUES[:-1]).verdict is Verdict.NOT_COMPARABLE
    assert compare_arrays([np.nan], [np.nan], equal_nan=False).verdict is Verdict.DIFFER
    assert compare_arrays([-9.0], [-9.0], fill_values=[-9.0]).verdict is Verdict.MATCH


@pytest.mark.parametrize(
    ("fill_value", "dtype"), [(0.1, "<f4"), (1e20, ">f4"), (-1e18, "<f2"), (2.5, "<i4"), (1, "|b1")]
)
def test_fill_values_are_as_the_type_holds_them(fill_value: float, dtype: str) -> None:
    """As the configuration has it: rounded, and without a meaning where nothing can equal them."""
    holds_it = dtype[1:] == "f4"
    values = np.array([1, 1]).astype(dtype)
    if holds_it:
        values[0] = fill_value
    other = values.copy()
    other[0] = 0
    asked: dict[str, Any] = {"atol": 1e30 if holds_it else 0.0, "fill_values": fill_value}
    assert compare_arrays(values, values, **asked).verdict is Verdict.MATCH
    result = compare_arrays(values, other, **asked)
    assert (result.differing_count, result.missing_mismatch_count) == (1, int(holds_it))
    golden = make_golden({"x": values}, evidence="tree", **asked)
    assert golden.check("x", values).verdict is Verdict.MATCH
    assert golden.check("x", other).verdict is Verdict.DIFFER
    assert build_tree(values, **asked).root == golden.variables[0].tree.root


def test_goldens_there_and_back(tmp_path: Path) -> None:
    golden = make_golden({"t": VALUES, "n": np.arange(5)}, atol=1e-6, iteration=10, rank=0)
    assert golden.names == ["n", "t"]
    path = tmp_path / "a.golden"
    root = golden.write(path)
    assert len(root) == 32
    again = read_golden(path)
    assert again.to_bytes() == golden.to_bytes() == path.read_bytes()
    assert Golden.from_bytes(path.read_bytes()).names == ["n", "t"]
    assert again.check("t", VALUES + 1e-7, iteration=10, rank=0).verdict is Verdict.MATCH
    result = check_array(VALUES + 1, again.variable("t", iteration=10, rank=0))
    assert (result.verdict, result.evidence) == (Verdict.DIFFER, Evidence.DATA)
    with pytest.raises(VariableMissingError):
        again.variable("t")
    with pytest.raises(KeyError):
        again.check("nothing", VALUES)


def test_goldens_can_be_joined() -> None:
    one = make_golden({"a": VALUES}, atol=1e-6)
    other = make_golden({"b": VALUES}, evidence="tree")
    joined = Golden.from_bytes(Golden(one.variables + other.variables).to_bytes())
    assert joined.names == ["a", "b"]
    assert joined.check("b", VALUES).evidence is Evidence.TREE


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"atol": -1}, InvalidBoundError),
        ({"rtol": float("nan")}, InvalidBoundError),
        ({"atol": 1.0, "ulps": 1}, ValueError),
        ({"residue_levels": 4}, UsageError),
        ({"chunk_bytes": 1}, UsageError),
        ({"fill_values": ["missing"]}, UsageError),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        build_tree(VALUES, **arguments)


def test_wrong_goldens(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="evidence"):
        make_golden({"a": VALUES}, evidence="photo")
    with pytest.raises(UsageError):
        make_golden({})
    with pytest.raises(UsageError, match="by name"):
        make_golden(VALUES)
    with pytest.raises(GoldenMissingError):
        read_golden(tmp_path / "no.golden")
    with pytest.raises(CorruptGoldenError):
        Golden.from_bytes(b"something else")
    with pytest.raises(WriteFailedError) as caught:
        make_golden({"a": VALUES}).write(tmp_path / "no" / "a.golden")
    assert str(caught.value).count("a.golden") == 1


@pytest.mark.parametrize(
    "values",
    [
        np.array([object()]),
        np.zeros(3, [("a", "f8")]),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        OnDevice(VALUES),
    ],
)
def test_arrays_without_a_defined_comparison(values: Any) -> None:
    with pytest.raises(UnsupportedDtypeError):
        compare_arrays(values, values)


def test_differences_modulo_a_period() -> None:
    golden, new = [0.01, 180.0], [359.99, 180.0]
    assert compare_arrays(golden, new, atol=0.1).verdict is Verdict.DIFFER
    assert compare_arrays(golden, new, atol=0.1, period=360).verdict is Verdict.MATCH
    boxes = ([[0.01, 0.01]], [[9.99, 9.99]])
    assert compare_arrays(*boxes, atol=0.1, period=[10, 10]).differing_count == 0
    assert compare_arrays(*boxes, atol=0.1, period=[10, 0]).first_index == (0, 1)
    kept = make_golden({"angle": golden}, atol=0.1)
    assert kept.check("angle", new).verdict is Verdict.DIFFER
    assert kept.check("angle", new, period=360).verdict is Verdict.MATCH
    assert check_array([0.5, 180.0], kept.variables[0], period=360).differing_count == 1
    without_data = make_golden({"angle": golden}, atol=0.1, evidence="residues")
    assert without_data.check("angle", golden, period=360).verdict is Verdict.NOT_COMPARABLE


@pytest.mark.parametrize("evidence", ["data", "residues"])
def test_two_precisions(evidence: str) -> None:
    single = VALUES.astype("f4")
    assert compare_arrays(single, VALUES).verdict is Verdict.NOT_COMPARABLE
    assert compare_arrays(single, VALUES, mixed_precision=True).verdict is Verdict.MATCH
    assert compare_arrays(single, VALUES + 1e-3, mixed_precision=True).differing_count == 1000
    golden = make_golden({"x": single}, atol=1e-6, evidence=evidence)
    assert golden.check("x", VALUES).verdict is Verdict.NOT_COMPARABLE
    assert golden.check("x", VALUES, mixed_precision=True).verdict is Verdict.MATCH
    assert golden.check("x", VALUES + 1e-3, mixed_precision=True).verdict.is_alarm


@pytest.mark.parametrize("evidence", ["data", "residues", "tree"])
def test_a_golden_is_checked_by_what_it_was_made_with(evidence: str) -> None:
    """NaN, fill values, chunks and levels are the golden's own, whatever the defaults are."""
    values = VALUES.copy()
    values[0, :3] = np.nan, -999, 5
    golden = make_golden(
        {"x": values},
        atol=1e-3,
        evidence=evidence,
        equal_nan=False,
        fill_values=-999,
        chunk_bytes=256,
        residue_levels=31,
    )
    assert golden.check("x", values).verdict.is_alarm  # NaN is not NaN here
    values[0, 0] = 5
    golden = make_golden({"x": values}, atol=1e-3, evidence=evidence, fill_values=[-999])
    assert golden.check("x", values, mixed_precision=True).verdict is Verdict.MATCH
    values[0, 1] = -999.0001
    assert golden.check("x", values).verdict is Verdict.DIFFER


@pytest.mark.parametrize(
    ("dtype", "asked", "told"),
    [
        ("<f4", {"atol": 1, "rtol": 2}, "atol=1 rtol=2"),
        (">c16", {"ulps": 3}, "ulps=3"),
        ("<i4", {"atol": 1, "rtol": 2}, "atol=1 rtol=0"),
        ("|u1", {"ulps": 3}, "atol=0 rtol=0"),
        ("|b1", {"atol": 1, "rtol": 2}, "atol=0 rtol=0"),
        ("|S4", {"atol": 1, "rtol": 2}, "atol=0 rtol=0"),
        ("<U4", {"ulps": 1}, "atol=0 rtol=0"),
    ],
)
def test_a_result_names_the_bound_that_the_type_allows(
    dtype: str, asked: dict[str, Any], told: str
) -> None:
    array = np.zeros(100, dtype=dtype)
    assert str(compare_arrays(array, array, **asked).bound) == told
    for evidence in ("data", "tree"):
        found = make_golden({"x": array}, evidence=evidence, **asked).check("x", array)
        assert str(found.bound) == told


def test_integers_on_a_circle_have_no_rtol_to_refuse() -> None:
    found = compare_arrays(
        np.array([1, 359], "i4"), np.array([359, 1], "i4"), atol=2, rtol=0.5, period=360
    )
    assert (found.verdict, str(found.bound)) == (Verdict.MATCH, "atol=2 rtol=0")


def test_a_single_date_of_numpy() -> None:
    one, other = np.datetime64("2026-01-01"), np.datetime64("2026-01-02")
    assert compare_arrays(one, one).verdict is Verdict.MATCH
    assert compare_arrays(one, other).verdict is Verdict.DIFFER
    assert compare_arrays(one, np.datetime64("2026-01-01", "s")).verdict is Verdict.NOT_COMPARABLE


def test_texts_that_damage_has_made_no_texts() -> None:
    codes = np.array([[65, 0], [0x110000, 66]], "<u4")
    texts = codes.view("<U2").reshape(-1)
    other = codes.copy()
    other[1] = 0x7FFFFFFF, 0
    result = compare_arrays(texts, other.view("<U2").reshape(-1))
    assert result.verdict is Verdict.DIFFER
    (first,) = result.first_differences
    assert (first.golden, first.new) == ("'\\U00110000B'", "'\\U7fffffff'")
    assert compare_arrays(texts, texts.copy()).verdict is Verdict.MATCH
    swapped = codes.astype(">u4").view(">U2").reshape(-1)
    assert text_literals(swapped) == text_literals(texts) == ["'A'", "'\\U00110000B'"]
    assert text_literals(np.array(["it's", "a\tb", ""])) == ['"it\'s"', "'a\\tb'", "''"]
    assert text_literals(np.array([b"ab"])) == ["b'ab'"]


def test_bfloat16_of_ml_dtypes_in_either_byte_order() -> None:
    # Its arrays look so to NumPy; ml_dtypes itself is not installed here.
    class Bfloat16:
        def __init__(self, order: str) -> None:
            self._bits = np.array([0x3F80, 0x4000], f"{order}u2")
            self.dtype = SimpleNamespace(kind="V", names=None, name="bfloat16", str=f"{order}V2")

        def view(self, dtype: str) -> Any:
            return self._bits.view(dtype)

    for order in "<>":
        values: Any = named_bfloat16(cast("Any", Bfloat16(order)))
        assert values.dtype == f"{order}bf2"
        assert widen_bfloat16(values.read(0, 2)).tolist() == [1.0, 2.0]


def test_arrays_of_objects_without_elements_keep_their_shape() -> None:
    golden, new = np.empty((0, 3), object), np.empty((0, 4), object)
    assert compare_arrays(golden, new).verdict is Verdict.NOT_COMPARABLE
    assert compare_arrays(golden, golden.copy()).verdict is Verdict.MATCH


def test_a_time_zone_beside_the_numbers_is_part_of_what_is_compared() -> None:
    arrow = pytest.importorskip("pyarrow")
    utc, berlin = (
        arrow.array([1], arrow.timestamp("s", zone)) for zone in ("UTC", "Europe/Berlin")
    )
    assert compare_arrays(utc, berlin).verdict is Verdict.NOT_COMPARABLE
    assert compare_arrays(utc, utc).verdict is Verdict.MATCH


def test_uncertainties_are_not_dropped() -> None:
    nddata = pytest.importorskip("astropy.nddata")
    values = nddata.NDDataArray([1.0], uncertainty=nddata.StdDevUncertainty([0.5]))
    with pytest.raises(UnsupportedDtypeError, match="more than one array"):
        compare_arrays(values, values)
    assert compare_arrays(nddata.NDDataArray([1.0]), [1.0]).verdict is Verdict.MATCH


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *((5, {}), (None, {}), ("\ud800", {})),
        *(("x", {"iteration": 1.5}), ("x", {"iteration": 1 << 70})),
        *(("x", {"rank": "a"}), ("x", {"rank": True})),
    ],
)
def test_names_and_places_that_are_none(name: Any, place: Any) -> None:
    with pytest.raises(UsageError, match="must be a"):
        make_golden({name: VALUES}, **place)
    golden = make_golden({"x": VALUES}, iteration=cast("int", np.int64(3)))
    assert golden.check("x", VALUES, iteration=3).verdict is Verdict.MATCH
