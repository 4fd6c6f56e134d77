"""Rows that the core reads, against the same rows read in Python, and a file that both share."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap import _core
from ciwrap.base.errors import CiwrapError
from ciwrap.formats.tables import TextReader

_NUMBERS = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.floats(width=64).map(repr),
    st.floats(width=64).map(lambda one: f"{one:+.6E}".replace("E", "D")),
    st.sampled_from(
        ["0x1F", "-00", "-0", "+7", "5.", ".5", "1.5-100", "1d5", "1e400", "1e-400", "1_0", "1.0+5"]
    ),
    st.sampled_from(["nan", "-inf", "infinity"]),
    st.sampled_from(["", " ", "\t3 ", "1 2", "1\x1c2", "a\x1f1", "9007199254740993"]),
)
_WORDS = st.text(string.ascii_letters + "#-.5 ", min_size=1, max_size=20)
_CELLS = st.one_of(_NUMBERS, _NUMBERS, _NUMBERS, _WORDS)


def _read(path: Path, options: dict[str, Any]) -> Any:
    try:
        with TextReader().open(path, options=options) as source:
            return [
                (
                    one.name,
                    one.dtype,
                    one.shape,
                    source.read(one.name, 0, one.element_count).tobytes(),
                )
                for one in source.variables
            ]
    except CiwrapError as error:
        return type(error)  # of two faults in a file either may be named first


@settings(max_examples=examples(150))
@given(
    rows=st.lists(st.lists(_CELLS, min_size=3, max_size=3), min_size=1, max_size=12),
    mark=st.sampled_from([",", ";", "\t", " "]),
    options=st.sampled_from(
        [{}, {"header": "yes"}, {"types": {"col_1": "float"}, "header": "no"}, {"header": "no"}]
    ),
    comment=st.sampled_from(["", "# note\n", "\n", "\r\n"]),
)
def test_the_core_reads_rows_as_python_does(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[list[str]],
    mark: str,
    options: dict[str, Any],
    comment: str,
) -> None:
    """The first lines are a block of their own, which Python reads; the core sees the others."""
    path = tmp_path_factory.getbasetemp() / "table.csv"
    head = mark.join(["1.5", "word" if "header" in options else "2", "3"]) + "\n"
    text = head + comment.join(mark.join(row) + "\n" for row in rows)
    path.write_bytes(text.encode())
    options = {**options, "delimiter": "space" if mark == " " else mark}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ciwrap.formats.tables.BLOCK_BYTES", len(head))
        by_core = _read(path, options)
        patch.setattr("ciwrap._core.scan_table", lambda *_: None)
        patch.setattr("ciwrap._core.read_table", lambda *_: None)
        assert _read(path, options) == by_core


def test_a_large_table_is_the_core_s(tmp_path: Path) -> None:
    """And it is read to the last bit, words and empty cells among it."""
    rng = np.random.default_rng(20261129)
    values = rng.standard_normal(20_000) * 10.0 ** rng.integers(-300, 300, 20_000)
    rows = "".join(f"{n},{one!r},w{n % 7},\n" for n, one in enumerate(values.tolist()))
    path = tmp_path / "t.csv"
    path.write_text(f"n,x,word,gap\n{rows}", encoding="ascii")
    with TextReader().open(path) as source:
        assert source.read("x", 0, values.size).tobytes() == values.tobytes()
        assert source.read("n", 0, values.size).tolist() == list(range(values.size))
        assert source.read("word", 8, 1).tolist() == ["w1"]
        assert np.isnan(source.read("gap", 0, values.size)).all()


def test_arrays_without_a_place_for_each_row_are_refused() -> None:
    for arrays in ([np.empty(1)], [np.empty(2, np.float32)], [np.empty(0)]):
        with pytest.raises(CiwrapError):
            _core.read_table(b"1\n2\n", ",", [], 2, arrays)
    with pytest.raises(CiwrapError):
        _core.read_table(b"", ",", [], 0, [])
    assert _core.read_table(b"1\n2\n", ",", [], 1, [np.empty(1)]) is None
