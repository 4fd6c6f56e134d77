"""How a comparison works: what the core may use, whom it tells; and how much it has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ciwrap.progress import NO_PROGRESS, Progress
from ciwrap.structs import Struct
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.compare.parts import ReadBoth
    from ciwrap.model import VariableId, VariableResult

    # (first element, golden, new) of the pieces that hold all differing elements, in order.
    Pieces: TypeAlias = Callable[[], Iterator[tuple[int, NDArray[Any], NDArray[Any]]]]


class Explainer(Protocol):
    """Says of values that differ where they lie and what they have in common. Each method gives
    back results that say more than those it was given.
    """

    def elements(
        self,
        result: VariableResult,
        comparison: _core.Comparison,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        pieces: Pieces,
        read: ReadBoth,
    ) -> VariableResult:
        """Of elements that differ. leaves: of the tree, that do not match. shape: the golden's."""

    def chunks(
        self,
        result: VariableResult,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        new: Values,
    ) -> VariableResult:
        """Of chunks that do not match the golden's, of which there are no data."""

    def together(self, results: list[VariableResult]) -> list[VariableResult]:
        """Of one checkpoint, beside the others of its variable, and beside ids."""

    def from_elsewhere(
        self,
        results: list[VariableResult],
        golden: Mapping[VariableId, _core.GoldenVariable],
        outputs: Catalog,
        judge: Callable[[VariableResult, VariableId], VariableResult],
    ) -> None:
        """Says in the list whether the numbers of the first difference belong to another iteration
        or rank. judge: compares its values with another variable of the golden.
        """


class Work(Struct):
    """The first argument of everything that compares. Not for several threads at once.

    engine: that read files ("io_uring", "pread"), None as long as none did. data_bytes_read: of
    both sides' data. explain: loads what explains differences, asked only where something differs;
    None if nobody wants to know.
    """

    resources: Resources = DEFAULT_RESOURCES
    progress: Progress = NO_PROGRESS
    engine: str | None = None
    data_bytes_read: int = 0
    explain: Callable[[], Explainer] | None = None
