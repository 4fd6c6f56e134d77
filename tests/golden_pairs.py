"""Goldens of one small array each, for tests of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ciwrap import _core
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, VariableRow

if TYPE_CHECKING:
    from ciwrap.golden.store import GoldenStore, StoredGolden


def variable(value: float, atol: float = 1e-3) -> _core.GoldenVariable:
    array = np.full(10, value)
    parameters = _core.TreeParameters("<f8", atol=atol)
    tree = _core.build_tree(parameters, array)
    return _core.GoldenVariable("x", array.shape, tree, data=array.tobytes())


def value_of(golden: StoredGolden) -> float:
    """The value that `write` was given."""
    (found,) = golden.variables
    assert found.data is not None
    values = set(np.frombuffer(found.data))
    assert len(values) == 1
    return float(values.pop())


def write(store: GoldenStore, check: str, value: float) -> None:
    """Makes or replaces the golden of a check; takes the lock."""
    variables = (variable(value),)

    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check=check,
            binary=BinaryFile(store.path(check).name, root, byte_count),
            variables=tuple(VariableRow.of(one) for one in variables),
            environment={},
            accepted=(Acceptance("now", "me", f"because of {value}", root),),
        )

    with store.locked():
        store.write(check, variables, make_manifest)
