"""Which cores commands may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

_TOPOLOGY = Path("/sys/devices/system/cpu")


def all_cores_but_one() -> frozenset[int]:
    """The cores of this process without the first one, which then is the operating system's.

    Raises UsageError where there is only one, or where cores cannot be chosen.
    """
    cores = sorted(own_cores())
    if len(cores) < 2:
        raise UsageError("there is only one core, so none can be reserved")
    return frozenset(cores[1:])


def halves_of_cores(
    cores: Collection[int] | None = None,
) -> tuple[frozenset[int], frozenset[int]]:
    """Two equally large sets of cores; of an odd number one is in neither. The hardware threads of
    one core are in the same set, as far as that goes.

    cores: those to share out; None for all of this process. Raises UsageError where there are fewer
    than two, or where cores cannot be chosen.
    """
    found = sorted(own_cores() if cores is None else cores, key=_place_of)
    half = len(found) // 2
    if not half:
        raise UsageError("there is only one core, so two commands cannot have one each")
    return frozenset(found[:half]), frozenset(found[half : 2 * half])


def own_cores() -> set[int]:
    """The cores that this thread may use. Raises UsageError where cores cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("this system does not let a program choose its cores")
    return os.sched_getaffinity(0)


def _place_of(cpu: int) -> tuple[int, int, int]:
    """Socket, core and hardware thread, by which threads of one core lie side by side."""
    try:
        folder = _TOPOLOGY / f"cpu{cpu}" / "topology"
        names = ("physical_package_id", "core_id")
        socket, core = (int((folder / name).read_text()) for name in names)
    except (OSError, ValueError):  # another system, or one that hides its processors
        return 0, cpu, cpu
    return socket, core, cpu
