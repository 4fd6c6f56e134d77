"""Lists of differences of units: their names, and which of them are a comparison's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ciwrap.errors import WriteFailedError

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path

    from ciwrap.compare.units import Unit


def list_of_unit(path: Path, unit: Unit) -> Path:
    """`differences.7.csv`."""
    return list_named(path, unit.name)


def list_named(path: Path, unit_name: str) -> Path:
    """The list of the unit of that name."""
    return path.with_name(f"{path.stem}.{unit_name}{path.suffix}")


def stamp_of_list(path: Path, unit: Unit) -> tuple[int, ...] | None:
    """Size, time and inode of a unit's list, to know it again; None if it is not there."""
    try:
        status = list_of_unit(path, unit).stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def has_name_of_list(path: Path, other: Path) -> bool:
    """Whether the other one, of the same folder, is called as the list, or that of a unit, is."""
    name = f"{re.escape(path.stem)}(\\.[0-9]+(-[0-9]+)?)?{re.escape(path.suffix)}"
    return re.fullmatch(name, other.name, re.ASCII) is not None


def remove_former_lists(path: Path, kept: Container[Path]) -> None:
    """Removes the lists that an earlier comparison wrote under this name: beside those that are
    kept they would look like this one's. What is not a list of ours stays. Raises WriteFailedError.
    """
    from ciwrap.compare.differences import is_list

    try:
        for one in sorted(path.parent.iterdir()):
            if one not in kept and has_name_of_list(path, one) and is_list(one):
                one.unlink()
    except OSError as error:
        raise WriteFailedError(
            f"a list of an earlier comparison cannot be removed: {error.strerror or error}",
            file=error.filename or path,
        ) from error
