"""The JSON document: strict, versioned, complete, and readable back."""

from __future__ import annotations

import copy
import json
import math
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from result_schema import SCHEMA, validator

from ciwrap.base.documents import DocumentError
from ciwrap.base.errors import WriteFailedError
from ciwrap.model import (
    CheckResult,
    ChunkRange,
    CommandOutcome,
    Details,
    DifferingElement,
    DifferingInSeries,
    EnvironmentDifference,
    ErrorBound,
    Evidence,
    Message,
    MessageLevel,
    MovedElement,
    NewValues,
    NumberInText,
    RunResult,
    SeriesResult,
    VariableId,
    VariableResult,
    Verdict,
)
from ciwrap.model.results import ProjectOptions
from ciwrap.model.variable_result import (
    Cause,
    ChunkMap,
    DifferingNumbers,
    Explanation,
    IndexBox,
    Picture,
    ShareMap,
    TextPlace,
    TextResult,
    TreeLevel,
    UnpairedLines,
    cells_text,
)
from ciwrap.report.document import document_text, from_document, to_document, write_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def match(name: str = "x", **more: Any) -> VariableResult:
    return VariableResult(
        name,
        Verdict.MATCH,
        evidence=Evidence.DATA,
        element_count=10,
        differing_count=0,
        suspect_chunks=0,
        **more,
    )


def full_result() -> RunResult:
    """A result in which every field of every kind of record is used."""
    differing = VariableResult(
        name="density",
        verdict=Verdict.DIFFER,
        iteration=10,
        rank=0,
        evidence=Evidence.DATA,
        dtype="<f8",
        golden_dtype="<f4",
        shape=(4, 5),
        golden_shape=(20,),
        labels=(("units", "kg/m3"), ("dims", "y, x")),
        golden_labels=(("units", "g/cm3"), ("dims", "y, x")),
        bound=ErrorBound(1e-6),
        bound_scale="1e-12*max",
        golden_bound="atol=1e-5 rtol=0",
        mask="land",
        aligned_by="id",
        combine="both",
        expectation="expect",
        period=(10.0,),
        source_path="out/density.npy",
        golden_root="0" * 32,
        root="f" * 32,
        byte_count=160,
        element_count=20,
        masked_count=4,
        flipped_count=0,
        has_fill_values=True,
        differing_count=2,
        first_index=(0, 3),
        first_differences=(
            DifferingElement((0, 3), "1.0", "nan"),
            DifferingElement((1, 1), "1.0", "2.0", 1.0, math.inf),
        ),
        chunk_count=1,
        suspect_chunks=1,
        suspect_ranges=(ChunkRange(0, 19, (0, 0), (3, 4), 1),),
        suspect_range_count=1,
        solved_chunks=1,
        moved_elements=(
            MovedElement((0, 3), "nan", "1.0", "1.5", "real", 0.5, math.inf, is_beyond=True),
        ),
        max_abs_difference=1.0,
        max_abs_index=(1, 1),
        mean_abs_difference=0.05,
        max_rel_difference=1.0,
        max_rel_index=(1, 1),
        mean_rel_difference=0.05,
        max_bound_share=math.inf,
        bound_share_histogram=(18, *[0] * 32, 2),
        nan_mismatch_count=1,
        inf_mismatch_count=0,
        missing_mismatch_count=0,
        not_finite_count=1,
        max_drift_share=math.inf,
        differing_box=IndexBox((0, 1), (1, 3)),
        text=TextResult(
            lines=(5, 6),
            unpaired_lines=(0, 1),
            ignored_lines=(2, 0),
            numbers=9,
            differing=1,
            ignored=3,
            places=(
                DifferingNumbers(
                    "E= #", 1, 1, TextPlace(3, 4, "1.0"), TextPlace(4, 4, "1.5"), 0.5, math.inf
                ),
            ),
            place_count=1,
            unpaired=(UnpairedLines("done", 0, 1, None, TextPlace(6, 1, "done"), ("paths",)),),
            unpaired_count=1,
            not_utf8=("new",),
        ),
        explanations=(Explanation(Cause.CONSTANT_OFFSET, 3, 3, (1.0,)),),
        series=SeriesResult(
            (20, 20),
            DifferingInSeries(NumberInText("1.0", 7, 3), NumberInText("nan", 8, 3), 4),
            2,
            is_too_fine=True,
        ),
        details=Details(
            chunk_map=ChunkMap(20, 1, 1, (0, 1)),
            tree_levels=(TreeLevel(1, 1),),
            worst_elements=(DifferingElement((1, 1), "1.0", "2.0", 1.0, math.inf, 1.0, 1 << 52),),
            share_maps=(ShareMap(1, 1, 2, cells_text(bytes((0, 33))), row_axis=0),),
            picture=Picture(
                column_axis=1,
                rows=1,
                columns=2,
                index=(0, 0),
                low=0.0,
                high=2.0,
                golden=cells_text(bytes((0, 254))),
                new=cells_text(bytes((0, 255))),
                classes=cells_text(bytes((0, 33))),
                row_axis=0,
            ),
        ),
    )
    unsure = VariableResult(
        name="vx",
        verdict=Verdict.UNDECIDED,
        evidence=Evidence.RESIDUES,
        element_count=100,
        differing_count_at_least=0,
        differing_count_at_most=64,
        chunk_count=2,
        suspect_chunks=1,
        residue_levels=15,
        guaranteed_share=0.87,
        least_share=14.0,
        max_drift_share=0.5,
        drift_histogram=(30, 6, 0, 0, 0, 0, 0, 0),
        drift_share_from=0.0,
        drift_share_to=0.25,
        new_values=NewValues(8, 1, 1, 0.5, 2.5, 1.5),
    )
    missing = VariableResult(name="y", verdict=Verdict.NOT_COMPARABLE, reason="is not there")
    single = match("scalar", shape=(), max_abs_index=(), max_abs_difference=0.0)
    check = CheckResult(
        "mesh",
        Verdict.NOT_COMPARABLE,
        variables=(differing, unsure, missing, single),
        golden_path="golden/mesh.golden",
        source_path="out",
        bounds_from="given",
        missing_variables=(VariableId("y"),),
        extra_variables=(VariableId("z", 1, 2),),
        ignored_variables=(VariableId("t", 0),),
        left_out_variables=(VariableId("t", 0),),
        excluded_files=2,
        attributes="none",
        messages=(Message(MessageLevel.ERROR, "bad", "corrupt-file", "a.npy", "y"),),
        golden_root="0" * 32,
        root="1" * 32,
        engine="io_uring",
        backend="openmp",
        seconds=0.5,
        bytes_read=160,
        golden_bytes=1000,
        command=CommandOutcome("make", "/", None, 1.0, timed_out=True, output_tail="..."),
        label="linux",
        golden_environment={"cpu": "other"},
        environment={"cpu": "some"},
        environment_differences=(EnvironmentDifference("cpu", "cpu", "other", "some", "do it"),),
        accept_options=ProjectOptions("a.yaml", "golden/arm"),
    )
    return RunResult(
        Verdict.NOT_COMPARABLE,
        (check,),
        kind="run",
        messages=(Message(MessageLevel.NOTE, "hello"),),
        command=CommandOutcome("make", "/", 0, 1.0),
        environment={"cpu": "some"},
        ciwrap_version="0.1.0",
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.0,
    )


def test_every_field_fits_the_schema_and_comes_back() -> None:
    result = full_result()
    document = json.loads(document_text(to_document(result)))
    validator().validate(document)
    assert from_document(document) == result


def spoilt(node: Any) -> Iterator[str]:
    """What is done to the document that the node belongs to, before it is undone: each value is
    gone, of another kind, or beside one that is not known.
    """
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        value = node[key]
        if isinstance(value, dict | list):
            yield from spoilt(value)
        for other in (None, -1, "no such word", {"unknown": 1}, [[]]):
            node[key] = other
            yield f"{key}: {other}"
        node[key] = value
        if isinstance(node, dict):
            del node[key]
            yield f"no {key}"
            node[key] = value


def test_the_compiled_validator_refuses_what_the_reference_does() -> None:
    document = json.loads(document_text(to_document(full_result())))
    reference = jsonschema.Draft202012Validator(SCHEMA)
    refused = 0
    for number, what in enumerate(spoilt(document)):
        is_refused = not validator().is_valid(document)
        refused += is_refused
        if number % 97 == 0:  # the reference takes its time
            assert is_refused is not reference.is_valid(document), what
    assert refused > 1000
    validator().validate(document)


def test_full_result_uses_every_field_of_the_model() -> None:
    check = full_result().checks[0]
    for name in VariableResult.__struct_fields__:
        values = [getattr(variable, name) for variable in check.variables]
        assert any(value not in (None, ()) for value in values), name
    for name in CheckResult.__struct_fields__:
        if name not in ("test_id", "variant", "history", "unlisted", "ensemble"):
            assert getattr(check, name) not in (None, (), {}), name


def test_the_fields_every_reader_asks_for_are_always_there() -> None:
    document = to_document(RunResult(Verdict.NOT_COMPARABLE))
    validator().validate(document)
    assert (document["verdict"], document["exit_code"]) == ("not_comparable", 3)
    variable = to_document(full_result())["checks"][0]["variables"][2]
    wanted = {
        "name",
        "iteration",
        "rank",
        "verdict",
        "evidence",
        "element_count",
        "differing_count",
        "max_abs_difference",
        "first_index",
        "suspect_chunks",
        "max_drift_share",
    }
    assert wanted <= set(variable)


def test_numbers_that_json_lacks_are_strings() -> None:
    text = document_text(to_document(full_result()))
    assert "Infinity" not in text
    assert "NaN" not in text
    assert json.loads(text)["checks"][0]["variables"][0]["max_bound_share"] == "inf"


def test_a_usage_error_keeps_its_exit_code() -> None:
    document = to_document(RunResult(Verdict.NOT_COMPARABLE, kind="compare"), exit_code=2)
    validator().validate(document)
    assert document["exit_code"] == 2


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("schema_version",), True),
        (("verdict",), "fine"),
        (("verdict",), "suspect"),
        (("checks",), {}),
        (("checks", 0, "verdict"), None),
        (("checks", 0, "variables", 0, "iteration"), "10"),
        (("checks", 0, "variables", 0, "iteration"), True),
        (("checks", 0, "variables", 0, "max_abs_difference"), "Infinity"),
        (("checks", 0, "variables", 0, "first_index"), [1.5]),
        (("checks", 0, "variables", 0, "bound"), {"atol": -1.0}),
        (("checks", 0, "variables", 2, "reason"), ""),
        (("environment",), {"cpu": 1}),
        (("checks", 0, "variables", 3, "differing_count"), 1),
        (("checks", 0, "variables", 3, "masked_count"), 10),
        (("checks", 0, "variables", 0, "labels"), [["units", 1]]),
    ],
)
def test_malformed_documents_are_refused(path: tuple[Any, ...], value: Any) -> None:
    document: Any = copy.deepcopy(to_document(full_result()))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(DocumentError):
        from_document(document)


def test_a_match_over_a_mismatch_is_refused() -> None:
    document = to_document(full_result())
    document["verdict"] = "match"
    with pytest.raises(DocumentError):
        from_document(document)


@pytest.mark.parametrize("document", [None, [], "x", 1])
def test_other_json_is_refused(document: Any) -> None:
    with pytest.raises(DocumentError):
        from_document(document)


def test_fields_of_later_releases_are_passed_over() -> None:
    document = to_document(full_result())
    document["new_field"] = 1
    document["checks"][0]["new_field"] = {}
    assert from_document(document) == full_result()


def test_writing_replaces_atomically_and_leaves_no_litter(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")
    write_document(to_document(full_result()), str(target))
    assert from_document(json.loads(target.read_text())) == full_result()
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_writing_where_one_cannot_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(WriteFailedError, match="could not be written"):
        write_document({}, str(tmp_path / "missing" / "result.json"))
    with pytest.raises(WriteFailedError):
        write_document({}, str(tmp_path))
    assert list(tmp_path.iterdir()) == []
