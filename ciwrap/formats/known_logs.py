"""Which program a log is of, where rules are shipped for it: by what its logs begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.base.errors import CiwrapError
from ciwrap.formats.reader import first_bytes

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_BYTES = 64 << 10
# By preset: the program's name, and one of these stands near the beginning.
_SIGNS = {
    "qe": ("Quantum ESPRESSO", (b"Program PWSCF ",)),
    "cp2k": ("CP2K", (b"CP2K| ",)),
    "lammps": ("LAMMPS", (b"LAMMPS (",)),
    "pyscf": ("PySCF", (b"PySCF version", b"from pyscf import")),
}


def preset_of(path: Path) -> str | None:
    """The name of the shipped rules for a log; None for any other file."""
    try:
        head = first_bytes(path, _FIRST_BYTES)
    except CiwrapError:
        return None  # whoever opens it says why
    return next((one for one, (_, signs) in _SIGNS.items() if any(s in head for s in signs)), None)


def program_of(preset: str) -> str:
    """The name of the program that rules are for."""
    return _SIGNS[preset][0]
