"""Keeping what checks found that does not match, until somebody accepts or rejects it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.errors import CiwrapError, LockBusyError, WriteFailedError
from ciwrap.golden.places import Place
from ciwrap.review.capture_change import capture_change
from ciwrap.review.pending_files import pending_origin
from ciwrap.review.write_change import origin_of
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ciwrap.config import Check
    from ciwrap.golden.store import GoldenStore
    from ciwrap.review.golden_change import GoldenChange
    from ciwrap.review.pending_goldens import PendingGoldens
    from ciwrap.review.write_change import Origin


def keep_unmatched(
    checks: Iterable[Check],
    store: GoldenStore,
    pending: PendingGoldens,
    documents: Mapping[str, str],
    *,
    with_snapshots: bool = True,
    resources: Resources = DEFAULT_RESOURCES,
) -> dict[str, str]:
    """Captures the outputs of checks as pending goldens; why one could not be, by its check's name.

    documents: the results of the checks that do not match. Those that match leave nothing, and what
    waited of them is gone. with_snapshots: whether what the outputs were made with is kept beside
    them. Raises WriteFailedError, LockBusyError.
    """
    problems: dict[str, str] = {}
    for check in checks:
        place = Place("", check.name)
        document = documents.get(check.name)
        if document is None:
            pending.discard(place)
            continue
        try:
            change = capture_change(check, store, with_details=False, resources=resources)
        except CiwrapError as error:
            if isinstance(error, (WriteFailedError, LockBusyError)):
                raise
            pending.discard(place)
            problems[check.name] = str(error)
            continue
        origin = origin_of(check, check.root, pending.snapshots if with_snapshots else None)
        keep(change, place, pending, origin, document)
    return problems


def keep(
    change: GoldenChange, place: Place, pending: PendingGoldens, origin: Origin, document: str
) -> None:
    """Keeps a golden that could be written, with the result it comes from.

    Raises WriteFailedError, LockBusyError.
    """
    old = change.old
    # Something lies there, if nothing that can be read.
    base_root = old.root if old.problem is None else ""
    pending.write(
        place,
        change.variables,
        pending_origin(base_root, origin.commit),
        origin.environment,
        document,
        change.labels,
        change.ignored,
    )
