"""NumPy, futures and the compiled core, each loaded on first use: they take long to import."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["futures", "numpy", "use_one_thread"]

WAIT_POLICY = "OMP_WAIT_POLICY"

# Two threads that withdraw one setting at the same time would withdraw it twice. The handler of a
# signal may load something while its own thread does.
_one_at_a_time = RLock()
_is_alone = False


def _load_with(setting: str, value: str, name: str) -> ModuleType:
    """Imports a module that looks at a variable of the environment once, when it is loaded.

    The setting is withdrawn again, and programs that are started later, such as a simulation, do
    not inherit it. A setting of the user's own holds.
    """
    with _one_at_a_time:
        if setting in os.environ:
            return import_module(name)
        os.environ[setting] = value
        try:
            return import_module(name)
        finally:
            os.environ.pop(setting, None)


class _LateModule(ModuleType):
    """Stands for the module of its name, and imports it when an attribute is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if _is_alone:
            module = _load_with("OPENBLAS_NUM_THREADS", "1", self.__name__)
        else:
            module = import_module(self.__name__)
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


@cache
def load_core() -> ModuleType:
    """Imports `ciwrap._core`, whose OpenMP threads then sleep while they wait for each other.

    Threads that spin, which is what libgomp's do by default, take the time of whatever else runs on
    the machine (`python -m benchmarks --only busy-machine`).

    With OMP_PLACES or OMP_PROC_BIND, libgomp also binds the thread that loads it to one core. Each
    program that this thread starts would inherit that, so it is taken back.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        return _load_with(WAIT_POLICY, "passive", "ciwrap._core")
    finally:
        if cores is not None and os.sched_getaffinity(0) != cores:
            os.sched_setaffinity(0, cores)


class _LateCore:
    """Stands for `ciwrap._core`: what only shows results may run where no core was built."""

    def __getattr__(self, name: str) -> Any:
        return getattr(load_core(), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(load_core(), name, value)


_core = _LateCore()
