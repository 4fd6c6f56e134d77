"""What explains differences, loaded where something differs: most comparisons find nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from ciwrap import _core
    from ciwrap.arrays.values import Values
    from ciwrap.catalog.catalog import Catalog
    from ciwrap.compare.parts import ReadBoth
    from ciwrap.compare.work import Explainer, Pieces
    from ciwrap.model import VariableId, VariableResult


def explainer() -> Explainer:
    """Of results that reports draw."""
    return _Explainer()


def explainer_without_pictures() -> Explainer:
    """Of results of which nothing is drawn."""
    return _Explainer(with_pictures=False)


class _Explainer(Struct, frozen=True):
    """As `ciwrap.compare.work.Explainer`."""

    with_pictures: bool = True

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
        from ciwrap.compare.details import element_details

        return element_details(
            result,
            comparison,
            leaves,
            tree,
            shape,
            pieces,
            read,
            with_pictures=self.with_pictures,
        )

    def chunks(
        self,
        result: VariableResult,
        leaves: NDArray[np.int64],
        tree: _core.Tree,
        shape: tuple[int, ...],
        new: Values,
    ) -> VariableResult:
        from ciwrap.compare.details import suspect_details
        from ciwrap.compare.new_values import new_values_of
        from ciwrap.compare.pictures import make_new_picture

        parameters = tree.parameters
        picture = make_new_picture(
            parameters, shape, leaves, lambda *piece: new.read(*piece).reshape(-1)
        )
        details = suspect_details(leaves, tree, shape, new.element_count)
        return replace(
            result,
            new_values=new_values_of(parameters, new, leaves),
            details=replace(details, picture=picture),
        )

    def together(self, results: list[VariableResult]) -> list[VariableResult]:
        from ciwrap.compare.hints import with_id_named
        from ciwrap.compare.one_bound import with_one_bound
        from ciwrap.compare.one_rank import with_one_rank

        return with_id_named(with_one_rank(with_one_bound(results)))

    def from_elsewhere(
        self,
        results: list[VariableResult],
        golden: Mapping[VariableId, _core.GoldenVariable],
        outputs: Catalog,
        judge: Callable[[VariableResult, VariableId], VariableResult],
    ) -> None:
        from ciwrap.compare.across_ranks import explain_ranks, parts_of_golden
        from ciwrap.compare.over_checkpoints import first_difference, with_other_iteration

        at = first_difference(results)
        if at is not None:
            first = results[at]
            results[at] = with_other_iteration(first, golden, lambda other: judge(first, other))
        explain_ranks(results, lambda first: parts_of_golden(golden, outputs, first))
