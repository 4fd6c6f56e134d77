"""Who compares two runs: this process or the workers of an engine; and what is kept meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ciwrap.captures.container import CaptureFile
from ciwrap.compare.unit_loop import InProcess, UnitLoop
from ciwrap.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from ciwrap.captures.side import Run
    from ciwrap.compare.engines import Pool
    from ciwrap.compare.journal import Journal
    from ciwrap.compare.remote import Groups, MakesRules
    from ciwrap.compare.unit_comparer import UnitComparer
    from ciwrap.compare.unit_loop import UnitBook
    from ciwrap.compare.units import Unit
    from ciwrap.progress import Progress


class Spread(Struct):
    """How one comparison of two runs is spread.

    pool: of workers; None: this process compares. make_rules: needed with a pool. rules_text: all
    that decides verdicts, needed with a journal. journal_path: where what is done is kept; resume:
    whether one that is there goes on. list_path: where every unit lists its differences.
    has_ended_early: set once workers may still be at work on what was given up. compared_names: set
    to the names of the units of which something was compared.
    """

    pool: Pool | None = None
    make_rules: MakesRules | None = None
    rules_text: str = ""
    journal_path: Path | None = None
    resume: bool = False
    silence_seconds: float | None = None
    list_path: Path | None = None
    has_ended_early: bool = False
    compared_names: Sequence[str] = ()

    @property
    def is_by_units(self) -> bool:
        """Whether what each unit came to is told and kept by itself."""
        return self.pool is not None or self.journal_path is not None

    def journal(self, golden: Run, new: Run, opened: ExitStack) -> Journal | None:
        """The journal, which `opened` will close. Raises as `Journal` does.

        Where nobody has said a bound, that of a capture is a rule, too.
        """
        if self.journal_path is None:
            return None
        import hashlib

        from ciwrap.compare.journal import Journal, JournalRules
        from ciwrap.compare.remote import versions

        ciwrap, numpy = versions()
        headers = [one.header for one in (golden, new) if one.header is not None]
        rules = repr((self.rules_text, [(one.origin, one.bounds) for one in headers]))
        made_with = JournalRules(
            ciwrap,
            numpy,
            str(Path.cwd()),
            str(golden.path),
            str(new.path),
            hashlib.sha256(rules.encode()).hexdigest(),
        )
        journal = Journal(
            self.journal_path, made_with, resume=self.resume, list_path=self.list_path
        )
        return opened.enter_context(journal)

    def loop(self, comparer: UnitComparer, journal: Journal | None, progress: Progress) -> UnitBook:
        """Who compares units."""
        silence = self.silence_seconds
        if self.pool is None:
            return InProcess(comparer, journal=journal, silence_seconds=silence, progress=progress)
        import uuid

        from ciwrap.compare.engines import ByPool
        from ciwrap.compare.remote import Order, RunOrder, versions, what_is_seen

        assert self.make_rules is not None
        sides = comparer.golden, comparer.new

        def groups_of(unit: Unit) -> tuple[Groups, Groups]:
            ours, theirs = (
                {key: side.groups[key] for key in unit.keys if key in side.groups} for side in sides
            )
            return ours, theirs

        ours, theirs = (
            RunOrder(
                side.path,
                None if side.capture is None else side.capture.path,
                side.verify_checksums,
                side.header,
                side.is_fingerprint,
                side.is_whole,
                CaptureFile if side.capture is None else type(side.capture),
            )
            for side in sides
        )
        order = Order(
            uuid.uuid4().hex,
            str(Path.cwd()),
            (ours, theirs),
            self.make_rules,
            comparer.options,
            comparer.work.resources,
            what_is_seen(sides),
            versions(),
            self.list_path,
        )
        engine = ByPool(self.pool, order, groups_of, comparer.unless_changed)
        return UnitLoop(engine, journal=journal, silence_seconds=silence, progress=progress)
