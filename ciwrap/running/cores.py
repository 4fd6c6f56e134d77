"""Which cores commands may use."""

from __future__ import annotations

import os

from ciwrap.errors import UsageError


def all_cores_but_one() -> frozenset[int]:
    """The cores of this process without the first one, which then is the operating system's.

    Raises UsageError where there is only one, or where cores cannot be chosen.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("this system does not let a program choose its cores")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise UsageError("there is only one core, so none can be reserved")
    return frozenset(cores[1:])
