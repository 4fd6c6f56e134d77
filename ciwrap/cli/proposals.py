"""Pending goldens as the commands see them: where they lie, which are meant, accepting them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.cli.project import near
from ciwrap.compare.accept import Candidate, Origin, Status, write
from ciwrap.compare.proposed import candidate_of
from ciwrap.config import find_config, load_config
from ciwrap.config.settings import DEFAULT_GOLDEN_DIR
from ciwrap.documents import DocumentError
from ciwrap.errors import ConfigMissingError, PendingConflictError, UsageError
from ciwrap.golden.pending import PENDING_DIR, WORK_DIR, PendingGolden, PendingStore
from ciwrap.golden.places import check_matches
from ciwrap.golden.store import GoldenStore
from ciwrap.report.document import from_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.golden.places import Place
    from ciwrap.golden.store import StoredGolden
    from ciwrap.model import CheckResult


@dataclass(frozen=True, slots=True)
class Workplace:
    """A project's folder, its goldens, and those that wait. is_own: whether they were made here."""

    root: Path
    golden_dir: Path
    pending: PendingStore
    is_own: bool = True

    @property
    def golden_dir_text(self) -> str:
        return self.golden_dir.absolute().relative_to(self.root.absolute()).as_posix()

    def goldens(self) -> list[PendingGolden]:
        """All that wait. Raises CorruptGoldenError for what looks like one and is none."""
        goldens, faults = self.pending.found()
        if faults:
            raise faults[0]
        return goldens

    def select(self, patterns: Sequence[str]) -> list[PendingGolden]:
        """Those that any of the patterns means; all without a pattern. Raises UsageError for a
        pattern that means none.
        """
        goldens = self.goldens()
        if not patterns:
            return goldens
        names = sorted({golden.check for golden in goldens})
        for pattern in patterns:
            if not any(check_matches(pattern, name) for name in names):
                near_names = difflib.get_close_matches(pattern, names, 1, 0.5)
                hint = f"did you mean {near_names[0]!r}?" if near_names else "see `ciwrap review`"
                raise UsageError(f"no pending golden is called {pattern!r}", remedy=hint)
        return [
            golden
            for golden in goldens
            if any(check_matches(pattern, golden.check) for pattern in patterns)
        ]


@dataclass(frozen=True, slots=True)
class Proposed:
    """One pending golden, and what accepting it would change. waits_in: its place among those that
    wait; `golden.place` is where it goes.
    """

    golden: PendingGolden
    stored: StoredGolden
    candidate: Candidate
    waits_in: Place


def find_workplace(config_path: str | None, golden_dir: str | None) -> Workplace:
    """The project around here. Raises ConfigError, UsageError."""
    try:
        path = find_config(Path.cwd()) if config_path is None else Path(config_path)
        config = load_config(path)
    except ConfigMissingError:
        if config_path is not None:
            raise
        config = None
    root = _root_without_config() if config is None else config.root
    pending = PendingStore(near(root / PENDING_DIR))
    named = pending.golden_dir()
    if golden_dir is not None:
        folder = Path(golden_dir)
    elif named is not None:
        folder = root / named
    else:
        folder = root / DEFAULT_GOLDEN_DIR if config is None else config.golden_dir
    if not _is_below(folder, root):
        raise UsageError(f"the golden folder must lie in the project's, {root}", file=folder)
    return Workplace(near(root), near(folder), pending)


def _is_below(folder: Path, root: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _root_without_config() -> Path:
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / WORK_DIR).is_dir() or (folder / ".git").exists():
            return folder
    return here


def proposed(place: Workplace, golden: PendingGolden) -> Proposed:
    """Reads and verifies a pending golden, and finds out what it changes.

    Raises CorruptGoldenError and the like; PendingConflictError if it was made against another
    golden than the one that lies there.
    """
    stored = place.pending.store(golden.place).read(golden.place.name)
    store = GoldenStore(golden.place.under(place.golden_dir))
    recorded = _recorded(place, golden)
    candidate = candidate_of(stored, store, place.root, recorded)
    _refuse_stale(golden, candidate)
    return Proposed(golden, stored, candidate, golden.place)


def _refuse_stale(golden: PendingGolden, candidate: Candidate) -> None:
    if candidate.status is Status.SAME:
        return
    proposal = golden.proposal
    is_repair = proposal.kind == "changed" and proposal.base_root is None
    fits = (
        candidate.old_problem is not None
        if is_repair
        else proposal.base_root == candidate.old_root and candidate.old_problem is None
    )
    if not fits:
        raise PendingConflictError(
            "the golden there is another one than it was when this one was made",
            file=candidate.path,
            variable=golden.check,
            remedy="run the check again",
        )


def _recorded(place: Workplace, golden: PendingGolden) -> CheckResult | None:
    """What the run found; None if its document is not there or is none."""
    try:
        run = from_document(place.pending.read_result(golden.place))
    except DocumentError:
        return None
    return run.checks[0] if len(run.checks) == 1 else None


def demand_reason(candidates: Sequence[Candidate], reason: str | None) -> None:
    """Raises UsageError if one of them replaces a golden and nobody says why."""
    replaced = [one.check.name for one in candidates if one.status is Status.REPLACED]
    if replaced and reason is None:
        raise UsageError(
            f"replacing the golden of {', '.join(replaced)} needs a reason; nothing was written",
            remedy="add --reason 'why the new numbers are right' (--dry-run shows what changes)",
        )


def accept_one(place: Workplace, one: Proposed, reason: str | None) -> None:
    """Makes a pending golden the golden of its check. Raises PendingConflictError, if another
    process was quicker, WriteFailedError, LockBusyError.
    """
    store = GoldenStore(one.golden.place.under(place.golden_dir))
    manifest = one.stored.manifest
    origin = Origin(one.golden.proposal.commit, manifest.environment)
    with store.locked():
        # Looked at again under the lock: what was shown is what is done.
        current = candidate_of(one.stored, store, place.root, None)
        _refuse_stale(one.golden, current)
        if current.needs_writing:
            write(one.candidate, store, reason, origin)
    if place.is_own:
        place.pending.discard(one.waits_in)
