"""Trees and elements decide the same question; where both were asked, neither may contradict.

Where both come from the same reading of the data, a contradiction is a defect of ciwrap or of the
machine it runs on: no verdict, but an error that ends the command loudly. Where the trees come from
a capture, that may be damaged, and then the variable was not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.trees.bounds import suspect_is_proof

if TYPE_CHECKING:
    from ciwrap import _core
    from ciwrap.compare.findings import Suspects


class ContradictionError(RuntimeError):
    """Digests and elements of one variable say different things. Not an error of the user's."""


def contradiction(
    parameters: _core.TreeParameters, suspects: Suspects, comparison: _core.Comparison
) -> str | None:
    """Why trees and elements cannot both be right; None if they can.

    An element may differ only in a chunk whose digests differ; and for kinds whose codes decide
    exactly, a chunk whose digests differ holds an element that does.
    """
    differing, suspect = int(comparison.differing_count), int(suspects.leaves.size)
    if differing and not suspect:
        return f"{differing} elements differ, although all digests agree"
    if suspect and not differing and suspect_is_proof(parameters):
        return f"{suspect} digests differ, although no element does"
    return None


def refuse_contradiction(
    name: str, parameters: _core.TreeParameters, suspects: Suspects, comparison: _core.Comparison
) -> None:
    """Raises ContradictionError if trees and elements of one reading cannot both be right."""
    why = contradiction(parameters, suspects, comparison)
    if why is not None:
        raise ContradictionError(f"{name}: {why}; this is a defect, please report it")
