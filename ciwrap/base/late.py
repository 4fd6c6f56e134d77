"""NumPy, futures and the compiled core, each loaded on first use: they take long to import."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["futures", "numpy", "use_one_thread"]

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
    from concurrent import futures

    import numpy
else:
    futures = _LateModule("concurrent.futures")
    numpy = _LateModule("numpy")


def use_one_thread() -> None:
    """Lets NumPy's OpenBLAS start no threads of its own; for a process that is all ours.

    They would take a third of the time that importing NumPy takes, and no command multiplies
    matrices that are worth it. A setting of the user's own holds.
    """
    global _is_alone
    _is_alone = True


WAIT_POLICY = "OMP_WAIT_POLICY"


@cache
def load_core() -> ModuleType:
    """Imports `ciwrap._core`, whose OpenMP threads then sleep while they wait for each other.

    Threads that spin, which is what libgomp's do by default, take the time of whatever else runs on
    the machine (`python -m benchmarks --only busy-machine`). libgomp looks at the environment once,
    when it is loaded; so the setting is withdrawn again, and programs that are started later, such
    as a simulation, do not inherit it. A setting of the user's own holds.

    With OMP_PLACES or OMP_PROC_BIND, libgomp also binds the thread that loads it to one core. Each
    program that this thread starts would inherit that, so it is taken back.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    is_ours = WAIT_POLICY not in os.environ
    if is_ours:
        os.environ[WAIT_POLICY] = "passive"
    try:
        return import_module("ciwrap._core")
    finally:
        if is_ours:
            os.environ.pop(WAIT_POLICY, None)
        if cores is not None and os.sched_getaffinity(0) != cores:
            os.sched_setaffinity(0, cores)


class _LateCore:
    """Stands for `ciwrap._core`: what only shows results may run where no core was built."""

    def __getattr__(self, name: str) -> Any:
        return getattr(load_core(), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(load_core(), name, value)


core = _LateCore()
