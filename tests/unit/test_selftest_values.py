"""Values that differ by as little as can be, of texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ciwrap.model import ErrorBound
from ciwrap.studies.selftest import beyond


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.array(["ab"])[0], "bb"),
        (np.array(["ba"], ">U4")[0], "aa"),
        (np.array(["", "a"])[0], "a"),
        (np.array([b"ab"])[0], b"bb"),
        (np.array([b"", b"a"])[0], b"a"),
        (np.array([0x110000, ord("x")], "<u4").view("<U2")[0], "ax"),  # no character
    ],
)
def test_another_text(value: Any, wanted: str | bytes) -> None:
    assert beyond(value, ErrorBound()) == wanted
