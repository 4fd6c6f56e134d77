"""Snapshots to test with, made by hand."""

from __future__ import annotations

from typing import Any

from ciwrap.snapshot.records import LoadedObject, Snapshot


def loaded(path: str, kind: str, build: str) -> LoadedObject:
    """An object whose build ID is that of a letter."""
    return LoadedObject(path, kind, 1000, build_id=build.encode().hex() * 8)


OBJECTS = (
    loaded("/usr/lib/libm.so.6", "maths", "m"),
    loaded("/usr/lib/libstdc++.so.6", "runtime", "s"),
    loaded("{packages}/numpy.libs/libopenblas64_-aaaa.so", "maths", "o"),
    loaded("{packages}/numpy/_core.so", "object", "c"),
)


def snapshot(**changes: Any) -> Snapshot:
    """A whole snapshot, but for the fields that are given."""
    fields: dict[str, Any] = {
        "seen": "program",
        "machine": {
            "cpu": "CPU A",
            "cpu_flags": "avx avx2",
            "kernel": "Linux 6",
            "os": "Debian 12",
        },
        "versions": {"python": "CPython 3.11", "ciwrap": "0.1.0"},
        "variables": {"OMP_NUM_THREADS": "1", "LANG": "C"},
        "packages": {"numpy": "2.1.0", "scipy": "1.14.0"},
        "objects": OBJECTS,
        "repository": {"commit": "0" * 40, "dirty": "no"},
        "command": "python sim.py",
        **changes,
    }
    return Snapshot(**fields)
