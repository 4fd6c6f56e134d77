"""Classes that somebody has taught ciwrap: what of their objects is to be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ciwrap.base.errors import UsageError
from ciwrap.base.late import numpy as np

ARRAY = "array"
_TAUGHT: dict[type, Callable[[Any], Any] | str] = {}
_OF_PYTHON = (dict, list, tuple, str, bytes, int, float, complex, set, frozenset, type(None))


def register_type(kind: type, how: Callable[[Any], Any] | str) -> None:
    """Teaches what of the objects of a class is to be compared: of a class of your own, or of a
    library's that is refused otherwise. It holds in this process; `conftest.py` is the place.

    how: a function that takes an object, and returns a mapping, an array or any other value that
    can be checked; or "array": its objects are no more than their elements, which they hand over
    by DLPack, `__cuda_array_interface__` or `__array__`. Classes that derive from it are not meant.
    A class's own method `__ciwrap__`, which takes nothing, does the same as a function. Raises
    UsageError for anything else, and for Python's and NumPy's own types.
    """
    if not isinstance(kind, type):
        raise UsageError(f"register_type() takes a class, not {type(kind).__name__}")
    if kind in _OF_PYTHON or issubclass(kind, np.generic) or kind is np.ndarray:
        raise UsageError(f"{kind.__name__} is known already, and cannot be registered")
    if how != ARRAY and not callable(how):
        raise UsageError(
            f"{kind.__name__} is registered with neither a function nor 'array'",
            remedy="ciwrap.register_type(Mesh, lambda mesh: {'nodes': mesh.nodes})",
        )
    _TAUGHT[kind] = how


def how_taught(value: Any) -> Callable[[Any], Any] | str | None:
    """What somebody has said of the value's class; None if nobody did."""
    kind = type(value)
    found = _TAUGHT.get(kind)
    return getattr(kind, "__ciwrap__", None) if found is None else found
