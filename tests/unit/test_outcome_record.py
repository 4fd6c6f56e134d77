"""Outcomes on their way through JSON: nothing is lost, nothing changes."""

from __future__ import annotations

import math

import pytest

from ciwrap.base.errors import ConfigError, CorruptFileError, all_errors
from ciwrap.check.two_sides import Findings, PartSums
from ciwrap.model import (
    DifferingElement,
    DifferingInSeries,
    ErrorBound,
    NumberInText,
    SeriesResult,
    VariableId,
    VariableResult,
    Verdict,
)
from ciwrap.runs.journal import Answer, answer_of, to_text

RESULT = VariableResult(
    "x",
    Verdict.DIFFER,
    iteration=3,
    shape=(2, 3),
    labels=(("units", "m"),),
    bound=ErrorBound(atol=0.1 + 0.2),
    period=(1.5, 0.0),
    max_abs_difference=math.inf,
    max_bound_share=math.nan,
    mean_abs_difference=-0.0,
    max_rel_difference=5e-324,
    bound_share_histogram=(1, 2),
    series=SeriesResult(
        (3, 4),
        DifferingInSeries(NumberInText("-0.1", 3, 5), NumberInText("0,2"), 8),
        12,
        is_too_fine=True,
    ),
    first_differences=(DifferingElement((0, 1), "nan", "b'a'", abs_difference=math.nan),),
)
FULL = Findings(
    results=[RESULT],
    missing=[RESULT],
    extra=[RESULT],
    ignored=[VariableId("y", None, 2)],
    left_out=[VariableId("y", 1)],
    uncommon=1,
    errors=[CorruptFileError("is broken", file="a.npy", variable="x", remedy="mend it")],
    notes=["a \N{GREEK SMALL LETTER BETA} \udc80"],
    stale=[("A", (1, None), "gone")],
    unused=["why"],
    lost=[((None, None), "died")],
    sums=[PartSums(VariableId("y", 1), 4, math.inf, 3, 0.1 + 0.2, 2)],
    capture_bytes_read=1 << 40,
    data_bytes_read=3,
    attributes_left_out=5,
    engine="pread",
    ended_by="SIGTERM",
)


def test_every_field_comes_back() -> None:
    plain = Findings()
    assert all(getattr(FULL, name) != getattr(plain, name) for name in Findings.__struct_fields__)
    text = to_text(Answer("1", FULL))
    assert b"\n" not in text
    back = answer_of(text, "1")
    for name in Findings.__struct_fields__:
        if name == "errors":
            [error] = back.errors
            assert type(error) is CorruptFileError
            assert str(error) == str(FULL.errors[0])
        else:
            # NaN is no equal of itself.
            assert repr(getattr(back, name)) == repr(getattr(FULL, name)), name
    assert to_text(Answer("1", back)) == text


@pytest.mark.parametrize("slug", all_errors())
def test_every_error_comes_back(slug: str) -> None:
    kind = all_errors()[slug]
    error = kind("no", file="f", remedy="do it")
    if isinstance(error, ConfigError):
        error.line, error.column, error.key, error.suggestion = 3, 4, "a.b", "c"
    text = to_text(Answer("1", error=error))
    with pytest.raises(kind) as caught:
        answer_of(text, "1")
    assert type(caught.value) is kind
    assert str(caught.value) == str(error)
    assert caught.value.exit_code is error.exit_code
