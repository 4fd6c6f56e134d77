"""Modules that take long to import and that not every call needs, each loaded on first use."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec

__all__ = [
    "csv",
    "futures",
    "getpass",
    "hashlib",
    "json",
    "numpy",
    "shutil",
    "use_one_thread",
    "yaml",
]

WAIT_POLICY = "OMP_WAIT_POLICY"

# Two threads that withdraw one setting at the same time would withdraw it twice. The handler of a
# signal may load something while its own thread does.
_one_at_a_time = RLock()


@contextmanager
def _with_setting(setting: str, value: str) -> Iterator[None]:
    """For a module that looks at a variable of the environment once, when it is loaded.

    The setting is withdrawn again, and programs that are started later, such as a simulation, do
    not inherit it. A setting of the user's own holds.
    """
    if setting in os.environ:
        yield
        return
    os.environ[setting] = value
    try:
        yield
    finally:
        os.environ.pop(setting, None)


class _LateModule(ModuleType):
    """Stands for the module of its name, and imports it when an attribute is first asked for."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import csv
    import getpass
    import hashlib
    import json
    import shutil
    from concurrent import futures

    import numpy
    import yaml
else:
    csv = _LateModule("csv")
    futures = _LateModule("concurrent.futures")
    getpass = _LateModule("getpass")
    hashlib = _LateModule("hashlib")
    json = _LateModule("json")
    numpy = _LateModule("numpy")
    shutil = _LateModule("shutil")
    yaml = _LateModule("yaml")


class _NumPyOfOneThread:
    """Finds NumPy for whoever imports it first: a reader, h5py, a plugin."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "numpy" else None
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_with_one_thread(module: ModuleType) -> None:
                with _with_setting("OPENBLAS_NUM_THREADS", "1"):
                    load(module)

            vars(spec.loader)["exec_module"] = load_with_one_thread
        return spec


def use_one_thread() -> None:
    """Lets NumPy's OpenBLAS start no threads of its own; for a process that is all ours.

    They would take a third of the time that importing NumPy takes, and no command multiplies
    matrices that are worth it. A setting of the user's own holds.
    """
    sys.meta_path.insert(0, _NumPyOfOneThread)


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
        with _one_at_a_time, _with_setting(WAIT_POLICY, "passive"):
            return import_module("ciwrap._core")
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
