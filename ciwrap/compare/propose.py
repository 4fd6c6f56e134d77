"""What checks found that does not match, kept for review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciwrap.compare.accept import origin_here, prepare
from ciwrap.errors import CiwrapError, LockBusyError, WriteFailedError
from ciwrap.golden.pending import propose
from ciwrap.golden.places import Place
from ciwrap.trees.build import DEFAULT_RESOURCES, Resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ciwrap.config import Check
    from ciwrap.golden.pending import PendingStore
    from ciwrap.golden.store import GoldenStore


def propose_all(
    checks: Iterable[Check],
    store: GoldenStore,
    pending: PendingStore,
    documents: Mapping[str, str],
    *,
    resources: Resources = DEFAULT_RESOURCES,
) -> dict[str, str | None]:
    """Captures the outputs of checks as pending goldens; why not, by the check's name, or None.

    documents: the results of the checks that do not match. Those that match leave nothing, and what
    waited of them is gone. Raises WriteFailedError, LockBusyError.
    """
    found: dict[str, str | None] = {}
    origin = None
    for check in checks:
        place = Place("", check.name)
        document = documents.get(check.name)
        if document is None:
            pending.discard(place)
            continue
        try:
            candidate = prepare(check, store, resources=resources)
        except CiwrapError as error:
            if isinstance(error, (WriteFailedError, LockBusyError)):
                raise
            pending.discard(place)
            found[check.name] = str(error)
            continue
        origin = origin or origin_here(check.root)
        base_root = candidate.old_root if candidate.old_problem is None else ""
        pending.write(
            place,
            candidate.variables,
            propose(base_root, origin.commit),
            origin.environment,
            document,
            candidate.labels,
        )
        found[check.name] = None
    return found
