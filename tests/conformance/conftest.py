"""All ways in which this machine can compute digests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from core_side import WAYS

from ciwrap import _core

if TYPE_CHECKING:
    from collections.abc import Iterator


class Way(NamedTuple):
    backend: str
    threads: int


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(map(str, way)))
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    level, backend, threads = request.param
    _core.set_cpu_level(level)
    yield Way(backend, threads)
    _core.set_cpu_level("auto")
