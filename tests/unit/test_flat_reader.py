"""Elements of chunked arrays in C order: what is read, and in how many goes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ciwrap.formats.entries import FlatReader

SHAPES = st.lists(st.integers(1, 5), max_size=2).flatmap(
    lambda inner: st.integers(10, 40).map(lambda rows: (rows, *inner))
)


@settings(max_examples=examples(200), deadline=None)
@given(shape=SHAPES, chunk_rows=st.integers(0, 6) | st.just(45), data=st.data())
def test_any_stretches_in_any_order(
    shape: tuple[int, ...], chunk_rows: int, data: st.DataObject
) -> None:
    array = np.arange(np.prod(shape), dtype="<i4").reshape(shape)
    boxes: list[tuple[int, ...]] = []
    starts: list[int] = []

    def read_box(start: Any, lengths: Any) -> Any:
        boxes.append(lengths)
        starts.append(start[0])
        return array[tuple(slice(at, at + n) for at, n in zip(start, lengths, strict=True))]

    reader = FlatReader(shape, array.dtype, read_box, chunk_rows)
    for _ in range(3):
        first = data.draw(st.integers(0, array.size))
        count = data.draw(st.integers(0, array.size - first))
        boxes.clear()
        found = reader.read(first, count)
        assert found.tolist() == array.reshape(-1)[first : first + count].tolist()
        if chunk_rows:  # a chunk at both ends, and all between them
            assert len(boxes) <= 3
            assert not any(start % chunk_rows for start in starts)  # none is read twice
            row = array[0].size
            assert sum(lengths[0] for lengths in boxes) * row <= count + 2 * chunk_rows * row
