"""NumPy, loaded by whoever first uses it: importing it takes longer than most of what we do."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["numpy", "use_one_thread"]

_THREADS = "OPENBLAS_NUM_THREADS"
_is_alone = False


class _LateModule:
    """Stands for a module, and imports it when an attribute is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        # OpenBLAS looks at the environment once, when it is loaded. So the setting is withdrawn
        # again, and programs that are started later do not inherit it.
        is_ours = _is_alone and _THREADS not in os.environ
        if is_ours:
            os.environ[_THREADS] = "1"
        try:
            module = import_module(self._name)
        finally:
            if is_ours:
                os.environ.pop(_THREADS, None)
        value = getattr(module, name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import numpy
else:
    numpy = _LateModule("numpy")


def use_one_thread() -> None:
    """Lets NumPy's OpenBLAS start no threads of its own; for a process that is all ours.

    They would take a third of the time that importing NumPy takes, and no command multiplies
    matrices that are worth it. A setting of the user's own holds.
    """
    global _is_alone
    _is_alone = True
