"""Labels: names of dimensions and attributes as short, canonical texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ciwrap.formats.reader import MOST_CHARACTERS, labels_of, text_of


def test_labels_are_pairs_in_order() -> None:
    found = labels_of(["x", "y"], {"units": "K", "_FillValue": np.float32(9.96921e36)})
    assert found == (("_FillValue", "9.96921e+36"), ("dims", "x y"), ("units", "K"))
    assert hash(found) == hash(tuple(found))


def test_what_a_file_does_not_say_is_no_label() -> None:
    assert labels_of(None) == labels_of([]) == labels_of(["", None]) == ()
    assert labels_of(["x", None]) == (("dims", "x -"),)


def test_blanks_within_names_are_told_from_those_between() -> None:
    assert labels_of(["a b", "c"]) != labels_of(["a", "b c"])
    assert labels_of(["a\\", "b"]) != labels_of(["a\\ b"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.1), "0.1"),
        (np.float32(0.1), "0.10000000149011612"),
        (np.float16(0.1), "0.0999755859375"),
        (np.float32(1.5), "1.5"),
        (np.array([1.5], ">f8"), "1.5"),
        (np.array([1, 2], ">i2"), "1 2"),
        (np.int8(-127), "-127"),
        (np.float32("nan"), "nan"),
        ("m s-1", "m s-1"),
        (b"m s-1", "m s-1"),
        (np.array([b"K"]), "K"),
        (np.array(["a", "b"], dtype=object), "a b"),
        ("a\nb\x1b", "a\\nb\\x1b"),
        (b"\xff", "\\udcff"),
        (True, "True"),
    ],
)
def test_canonical_texts(value: Any, text: str) -> None:
    assert text_of(value) == text


def test_long_texts_stay_apart() -> None:
    one, other = "a" * 1000 + "b", "a" * 1000 + "c"
    assert text_of(one) != text_of(other)
    assert max(len(text_of(one)), len(text_of("\n" * 1000))) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32(0.1), 0.1),
        (np.float32(1e20), 1e20),
        ("a\nb", "a\\nb"),
        (b"\xff", "\\xff"),
        (np.array(["a b", "c"], dtype=object), np.array(["a", "b c"], dtype=object)),
    ],
)
def test_other_values_give_other_texts(one: Any, other: Any) -> None:
    assert text_of(one) != text_of(other)


def test_what_has_no_name_is_not_called_so() -> None:
    assert labels_of(["x", None]) != labels_of(["x", "-"])
    assert labels_of(["x", "-"]) != labels_of(["x", "\\-"])


@pytest.mark.parametrize("name", ["_FillValue", "missing_value", "valid_max", "flag_values"])
def test_numbers_of_the_variables_own_type_are_the_same_in_another_precision(name: str) -> None:
    """A run in float32 is compared with one in float64 by `mixed_precision`."""
    one, other = (labels_of(None, {name: kind(1e20)}) for kind in (np.float32, np.float64))
    assert one == other == ((name, "1e+20"),)
    assert labels_of(None, {name: np.float32(1.1e20)}) != one
