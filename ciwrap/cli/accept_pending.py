"""Accepting goldens that wait: those made here, and those that a CI run left in an artifact."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from ciwrap.cli.acceptance import DRY_RUN, render_acceptance
from ciwrap.cli.proposals import Proposed, Workplace, accept_one, demand_reason, proposed
from ciwrap.compare.proposed import named_for_people
from ciwrap.environment import DIRTY, git_commit
from ciwrap.errors import ArtifactError, PendingConflictError, UsageError
from ciwrap.golden.artifact import opened
from ciwrap.review.accept_document import accept_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ciwrap.cli.session import Session


def accept_pending(
    session: Session,
    place: Workplace,
    patterns: Sequence[str],
    *,
    reason: str | None,
    dry_run: bool,
    variant: str | None = None,
    allow_wider: bool = True,
) -> int:
    """Accepts the pending goldens that are meant. All are read and verified before one is written.

    variant: the kind of machine they are to be goldens for, if not what they were made as.
    """
    looked = [proposed(place, golden) for golden in place.select(patterns)]
    if variant is not None:
        looked = [_as_variant(place, one, variant) for one in looked]
    if not allow_wider:
        _refuse_wider(looked)
    shown = [named_for_people(one.candidate, one.golden.check) for one in looked]
    if not looked:
        session.console.print("nothing waits for review")
        return 0
    if not dry_run:
        demand_reason(shown, reason)
        for one in looked:
            accept_one(place, one, reason)
        if place.is_own:
            place.pending.write_index(place.golden_dir_text)
    session.emit_record(accept_document(shown, reason=reason, dry_run=dry_run))
    render_acceptance(shown, session.console, dry_run=dry_run, verbose=session.verbose)
    if dry_run:
        session.console.print(DRY_RUN)
    return 0


def _as_variant(place: Workplace, one: Proposed, variant: str) -> Proposed:
    """The same numbers as the golden of one kind of machine; raises UsageError if there is one."""
    from ciwrap.compare.proposed import candidate_of
    from ciwrap.golden.store import GoldenStore

    target = one.golden.place.for_variant(variant)
    if not target.folder.rpartition("/")[0]:
        raise UsageError(
            f"{one.golden.check!r} is no check of a test; only those have goldens for one kind of"
            " machine"
        )
    store = GoldenStore(target.under(place.golden_dir))
    candidate = candidate_of(one.stored, store, place.root, None)
    base = candidate.old_root
    golden = replace(
        one.golden,
        place=target,
        proposal=structs.replace(
            one.golden.proposal, base_root=base, kind="changed" if base else "new"
        ),
    )
    return replace(one, golden=golden, candidate=candidate)


def _refuse_wider(looked: Sequence[Proposed]) -> None:
    for one in looked:
        for change in one.candidate.changes:
            if change.is_bound_wider:
                raise ArtifactError(
                    f"it widens a bound: {change.bound_change}",
                    file=one.golden.path,
                    variable=change.identity.text,
                    remedy="if that is meant, add --allow-wider",
                )


@contextlib.contextmanager
def artifact_workplace(place: Workplace, source: str, commit: str | None) -> Iterator[Workplace]:
    """The pending goldens of an artifact, checked, in a folder of their own.

    commit: what the caller says they were made from; None: it has to be what is checked out here.
    Raises ArtifactError, PendingConflictError.
    """
    with opened(Path(source)) as pending:
        named = pending.golden_dir()
        if named is None:
            raise ArtifactError("its pending.json names no golden folder", file=source)
        if named != place.golden_dir_text:
            raise PendingConflictError(
                f"its goldens are for the folder {named!r}, those of this project lie in"
                f" {place.golden_dir_text!r}",
                file=source,
                remedy="name the folder with --golden-dir, if it is the right one",
            )
        there = replace(place, pending=pending, is_own=False)
        _check_commits(there, source, commit)
        yield there


def _check_commits(there: Workplace, source: str, commit: str | None) -> None:
    here = git_commit(there.root)
    wanted = commit if commit is not None else here
    for golden in there.goldens():
        made_from = golden.proposal.commit
        if _is_same_commit(made_from, wanted, whole=commit is None):
            continue
        raise PendingConflictError(
            f"it was made from commit {made_from or '(none)'}, checked out here is"
            f" {here or '(none)'}",
            file=source,
            variable=golden.check,
            remedy="check that commit out, or say --commit with it if these numbers are meant",
        )


def _is_same_commit(made_from: str | None, wanted: str | None, *, whole: bool) -> bool:
    """Whether they name one commit; changes that were not committed are no part of it."""
    if made_from is None or wanted is None:
        return made_from is wanted
    plain, asked = made_from.removesuffix(DIRTY), wanted.removesuffix(DIRTY).lower()
    if whole:
        return plain == asked
    return len(asked) >= 7 and plain.startswith(asked)
