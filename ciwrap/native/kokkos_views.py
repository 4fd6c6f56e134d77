"""What is recorded of a Kokkos program that knows nothing of ciwrap: which Views, and when."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ciwrap.errors import UsageError
from ciwrap.native.library import kokkos_path

if TYPE_CHECKING:
    from collections.abc import Sequence

_VIEW = re.compile(
    r"[^=\n]+=(f2|f4|f8|c8|c16|[iu][1248]|\?)(\[[1-9][0-9]*(,[1-9][0-9]*){0,14}\])?(/left)?"
)
# Of Kokkos from 3.5 on, and before; where both are known they have to be the same.
_TOOLS = ("KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY")


def kokkos_environment(views: Sequence[str], step: str | None) -> dict[str, str]:
    """The variables under which Kokkos loads our tool; {} if no View is asked for.

    views: PATTERN=DTYPE, PATTERN=DTYPE[EXTENT,...], each with /left if the first index varies
    fastest. step: the region or kernel at whose end a checkpoint is recorded. Raises UsageError and
    NotAvailableError.
    """
    if not views and step is None:
        return {}
    if not views or not step:
        raise UsageError(
            "--view says what of a Kokkos program is recorded, and --step when",
            remedy="give both",
        )
    for text in views:
        if not _VIEW.fullmatch(text):
            raise UsageError(
                f"--view {text!r} is not understood",
                remedy="write 'temperature=f8', 'v*=f4[60,80]' or 'v*=f4[60,80]/left'",
            )
    others = [os.environ[name] for name in _TOOLS if os.environ.get(name)]
    tools = ";".join((str(kokkos_path()), *others[:1]))
    return {
        **dict.fromkeys(_TOOLS, tools),
        "CIWRAP_RECORD_VIEWS": "\n".join(views),
        "CIWRAP_RECORD_STEP": step,
    }
