"""Classes of one's own: their objects are compared by what somebody has said counts, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ciwrap
from ciwrap.base.errors import CiwrapError, UsageError
from ciwrap.pytest_plugin.fixture import catalog_of

X = np.array([1.0, 2.0])


def names_of(value: Any) -> list[str]:
    with catalog_of(value, "x") as catalog:
        return sorted(identity.name for identity in catalog.entries)


class Mesh:
    def __init__(self, said: Any) -> None:
        self.said = said

    def __ciwrap__(self) -> Any:
        return self.said


class Derived(Mesh):
    pass


class Plain:
    said: Any = X

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.said


@pytest.mark.parametrize(
    ("said", "names"),
    [
        (X, ["x"]),
        ({"a": X, "b": {"c": 1.0}}, ["a", "b/c"]),
        ([X, 1.0], ["0", "1"]),
        ("text", ["x"]),
        (Derived({"a": Mesh(X)}), ["a"]),
        (np.ma.array(X, mask=[0, 1]), ["x", "x.mask"]),
    ],
)
def test_what_a_class_says_of_itself_is_compared(said: Any, names: list[str]) -> None:
    assert names_of(Mesh(said)) == names
    inner = ["k" if name in ("x", "") else name for name in names]
    found = names_of({"k": Mesh(said)})
    assert len(found) == len(inner)
    assert all(name.startswith("k") for name in found)


def test_what_a_class_says_is_no_object_of_itself() -> None:
    with pytest.raises(UsageError, match="one of the same class"):
        names_of(Mesh(Mesh(X)))


def test_a_registered_class_and_none_that_derives_from_it() -> None:
    class Other:
        nodes = X

    class More(Other):
        step = 0.1

    with pytest.raises(CiwrapError, match=r"type Other has no defined comparison.*register_type"):
        names_of(Other())
    ciwrap.register_type(Other, lambda one: {"nodes": one.nodes})
    assert names_of(Other()) == ["nodes"]
    assert names_of([Other(), Other()]) == ["0/nodes", "1/nodes"]
    with pytest.raises(CiwrapError, match="type More has no defined comparison"):
        names_of(More())


def test_a_class_that_is_no_more_than_its_elements() -> None:
    with pytest.raises(CiwrapError, match="type Plain has no defined comparison"):
        names_of(Plain())
    ciwrap.register_type(Plain, "array")
    assert names_of(Plain()) == ["x"]
    assert ciwrap.build_tree(Plain()).root == ciwrap.build_tree(X).root
    masked = Plain()
    masked.said = np.ma.array(X, mask=[1, 0])
    assert names_of(masked) == ["x", "x.mask"]


@pytest.mark.parametrize(
    ("kind", "how"),
    [(Plain(), "array"), (dict, "array"), (np.ndarray, "array"), (np.float64, len), (Mesh, "list")],
)
def test_what_cannot_be_registered(kind: Any, how: Any) -> None:
    with pytest.raises(UsageError):
        ciwrap.register_type(kind, how)


class Tensor:
    """As PyTorch has it."""

    __module__ = "torch"
    is_quantized = False
    layout = "torch.strided"

    def __init__(self, values: Any, *names: str) -> None:
        self.values, self.names = np.asarray(values), names or (None,) * np.ndim(values)

    def detach(self) -> Tensor:
        return self

    def rename(self, _: None) -> Tensor:
        return Tensor(self.values)

    resolve_conj = resolve_neg = detach

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.values


def test_tensors() -> None:
    assert names_of(Tensor(X)) == ["x"]
    assert names_of([Tensor(1.0), Tensor(2.0)]) == ["x"]
    assert names_of([Tensor(X), Tensor([1.0])]) == ["0", "1"]
    with catalog_of(Tensor(np.eye(2), "rows", "columns"), "x") as catalog:
        (entry,) = catalog.entries.values()
    assert dict(entry.info.labels) == {"dims": "rows columns"}
    scattered = Tensor(X)
    scattered.layout = "torch.sparse_coo"
    with pytest.raises(CiwrapError, match=r"sparse or quantized.*to_dense"):
        names_of(scattered)
