"""The few numbers of a golden that stand in its line as people read them."""

from __future__ import annotations

import hypothesis.extra.numpy as xnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base.documents import DocumentError
from ciwrap.golden.plain_numbers import MOST_PLAIN, numbers_of, plain_numbers

KINDS = st.one_of(
    xnp.boolean_dtypes(),
    xnp.integer_dtypes(endianness="?"),
    xnp.unsigned_integer_dtypes(endianness="?"),
    xnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    xnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    xnp.unicode_string_dtypes(endianness="?", max_len=5),
)


@given(KINDS.flatmap(lambda kind: xnp.arrays(kind, st.integers(0, 5))))
def test_elements_read_back_to_the_byte(array: np.ndarray) -> None:
    plain = plain_numbers(array.tobytes(), array.dtype.str)
    if plain is not None:
        assert numbers_of(plain, array.dtype.str) == array.tobytes()
    elif array.dtype.kind != "U":  # where half of a surrogate pair may stand
        assert array.dtype.kind in "fc"
        assert np.isnan(array).any()


@given(st.binary(min_size=8, max_size=80).map(lambda data: data[: len(data) // 8 * 8]))
@pytest.mark.parametrize("dtype", ["<f8", "<f4", "<c8", "<U2", "|b1", "<bf2", "|S4"])
def test_any_bytes_read_back_or_are_refused(dtype: str, data: bytes) -> None:
    plain = plain_numbers(data, dtype)
    assert plain is None or numbers_of(plain, dtype) == data


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([0.1, -0.0, np.nan, np.inf]), "0.1 -0.0 nan inf"),
        (np.float32(0.1), "0.1"),
        (np.array([2**63], np.uint64), "9223372036854775808"),
        (np.array([True, False]), "True False"),
        (np.array(1 + 2j), "(1+2j)"),
        (np.array(["two\nlines", "é"]), ("two\nlines", "é")),
        (np.array([], np.int8), ""),
        (np.array([b"ab"]), None),
        (np.zeros(MOST_PLAIN), " ".join(["0.0"] * MOST_PLAIN)),
        (np.zeros(MOST_PLAIN + 1), None),
    ],
    ids=str,
)
def test_as_people_read_them(values: np.ndarray, said: object) -> None:
    assert plain_numbers(values.tobytes(), values.dtype.str) == said


@pytest.mark.parametrize(
    ("plain", "dtype"),
    [("1.5", "<i8"), ("300", "|i1"), ("yes", "|b1"), ("a", "<U1"), (("a",), "<f8"), ("x", "<f8")],
)
def test_what_is_no_number_is_refused(plain: str, dtype: str) -> None:
    with pytest.raises(DocumentError, match="holds no values of"):
        numbers_of(plain, dtype)
