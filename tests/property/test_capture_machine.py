"""Captures over time: runs that change, are captured, captured against each other, and compared.

Whatever happens in whatever order, comparing two runs says what the contract's oracle says of their
files. A capture may only save work. The machine writes new checkpoints, writes in place, gives
files their old times back, loses captures, captures with residues and against other runs, is killed
in the middle of a capture, and compares, with captures and without.

Captures are also taken away from their runs: copied to where no data are, while the run goes on, is
captured again, or is deleted. These fingerprints are compared with one another and with runs. What
they say holds for the data that they were made of, of which the machine keeps a copy of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from oracle.contract import Bound, differs_scalar

from ciwrap.arrays.values import Signature
from ciwrap.base.errors import CiwrapError, CorruptCaptureError, UsageError
from ciwrap.formats.catalog import Rules
from ciwrap.formats.find_outputs import find_in
from ciwrap.golden.trees import Resources
from ciwrap.model import CheckResult, ErrorBound, VariableId, VariableSettings, Verdict
from ciwrap.recording.recorded_run import fingerprint_of
from ciwrap.runs.capture import CaptureOptions, capture_run
from ciwrap.runs.compare_runs import compare_histories
from ciwrap.runs.questions import rules_between
from ciwrap.runs.sides import Run, open_fingerprint, open_run

if TYPE_CHECKING:
    from collections.abc import Iterator

# Values by name and iteration.
Held = dict[tuple[str, int], list[Any]]
RUNS = ("a", "b", "c")
NAMES = ("x", "n")
ITERATIONS = (1, 2)
ATOL = 1.0
# Cells of this bound are 1 wide with k = 15 residues in each: values that round alike, values that
# do not, and values just within and just beyond the bound of each other.
VALUES = (0.0, 0.05, 0.35, 0.5, 0.99, 1.0, 1.05, 1.3, 1.36, 2.0, -0.4, 1e300, float("nan"))
LAYOUT = "iter_{iteration:d}/{name}.npy"
SERIAL = Resources(backend="serial", threads=1)


class KilledError(BaseException):
    """Stands for the end of the process."""


def rules_of(atol: float | None) -> Rules:
    def settings_for(identity: Any, what: Any) -> VariableSettings:
        bound = ErrorBound(atol or 0.0) if np.dtype(what.dtype).kind == "f" else ErrorBound()
        return VariableSettings(bound=bound)

    return Rules(settings_for, lambda _: False, bounds_are_given=atol is not None)


@contextmanager
def suppress_if(pattern: str, *kinds: type[CiwrapError]) -> Iterator[None]:
    """Suppresses errors of those kinds that say what is expected of them."""
    try:
        yield
    except kinds as error:
        if not re.search(pattern, str(error)):
            raise


class CaptureMachine(RuleBasedStateMachine):
    """The state is what lies in the folder; the oracle reads nothing but the .npy files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ciwrap-machine-"))
        # What each run held when its capture last came to an end without being killed.
        self.captured: dict[str, Held] = {}
        # Of each fingerprint that was taken away.
        self.printed: dict[str, Held] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def path(self, run: str, iteration: int, name: str) -> Path:
        return self.folder / run / f"iter_{iteration}" / f"{name}.npy"

    def capture_path(self, run: str) -> Path:
        return self.folder / run / ".ciwrap.tree"

    @initialize()
    def begin(self) -> None:
        for run in RUNS:
            for iteration in ITERATIONS:
                self.path(run, iteration, "x").parent.mkdir(parents=True)
                np.save(self.path(run, iteration, "x"), np.full(40, 0.35))
                np.save(self.path(run, iteration, "n"), np.arange(40))

    @rule(
        run=st.sampled_from(RUNS),
        iteration=st.sampled_from(ITERATIONS),
        name=st.sampled_from(NAMES),
        at=st.integers(0, 39),
        value=st.sampled_from(VALUES),
        count=st.sampled_from([1, 40]),
        how=st.sampled_from(["new file", "in place", "in place, old times"]),
    )
    def write(
        self, run: str, iteration: int, name: str, at: int, value: float, count: int, how: str
    ) -> None:
        path = self.path(run, iteration, name)
        if not path.exists():
            return
        values = np.load(path)
        stop = min(40, at + count)
        values[at:stop] = value if name == "x" else int(np.nan_to_num(value, posinf=7) % 5)
        before = path.stat()
        if how == "new file":
            new = path.with_name("new")
            with new.open("wb") as file:
                np.save(file, values)
            new.replace(path)
            return
        with path.open("r+b") as file:
            np.save(file, values)
        if how == "in place, old times":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(run=st.sampled_from(RUNS), iteration=st.sampled_from(ITERATIONS))
    def lose_a_variable(self, run: str, iteration: int) -> None:
        self.path(run, iteration, "n").unlink(missing_ok=True)

    @rule(run=st.sampled_from(RUNS), iteration=st.sampled_from(ITERATIONS))
    def write_it_again(self, run: str, iteration: int) -> None:
        np.save(self.path(run, iteration, "n"), np.arange(40))

    @rule(one=st.sampled_from(RUNS), other=st.sampled_from(RUNS))
    def copy_a_run(self, one: str, other: str) -> None:
        if one != other:
            shutil.rmtree(self.folder / other)
            shutil.copytree(self.folder / one, self.folder / other)
            if one in self.captured:
                self.captured[other] = dict(self.captured[one])
            else:
                self.captured.pop(other, None)

    @rule(one=st.sampled_from(RUNS), other=st.sampled_from(RUNS))
    def copy_a_run_without_its_times(self, one: str, other: str) -> None:
        """As archives do that are the same bytes whenever they are made."""
        self.copy_a_run(one, other)
        for path in (self.folder / other).rglob("*.npy"):
            os.utime(path, (0, 0))

    @rule(run=st.sampled_from(RUNS), as_folder=st.booleans())
    def take_the_capture_away(self, run: str, as_folder: bool) -> None:
        if run not in self.captured or not self.capture_path(run).exists():
            return
        target = self.folder / "prints" / run
        shutil.rmtree(target.parent / run, ignore_errors=True)
        target.mkdir(parents=True)
        shutil.copy(self.capture_path(run), target / (".ciwrap.tree" if as_folder else "t.tree"))
        self.printed[run] = self.captured[run]

    @rule(run=st.sampled_from(RUNS))
    def lose_an_iteration(self, run: str) -> None:
        """Its files alone: a capture that knew them still does until it is made again."""
        for name in NAMES:
            self.path(run, 2, name).unlink(missing_ok=True)
        if not any(self.path(run, 1, name).exists() for name in NAMES):
            np.save(self.path(run, 1, "x"), np.full(40, 0.35))

    @rule(run=st.sampled_from(RUNS), value=st.sampled_from(VALUES))
    def write_an_iteration(self, run: str, value: float) -> None:
        for name in NAMES:
            if not self.path(run, 2, name).exists():
                np.save(
                    self.path(run, 2, name), np.full(40, value) if name == "x" else np.arange(40)
                )

    @rule(
        one=st.sampled_from(RUNS),
        other=st.sampled_from(RUNS),
        residues=st.booleans(),
        atol=st.sampled_from([ATOL, ATOL, None]),
    )
    def compare_with_fingerprints(
        self, one: str, other: str, residues: bool, atol: float | None
    ) -> None:
        for run in (one, other):
            if run not in self.printed:
                self._capture(run, residues, None, atol, rebuild=True)
                self.take_the_capture_away(run, as_folder=residues)
        for ours, theirs in ((True, True), (True, False), (False, True)):
            self._compare_fingerprints((one, ours), (other, theirs))

    def _compare_fingerprints(self, *places: tuple[str, bool]) -> None:
        """Each place is a run, and whether its fingerprint is meant."""
        sides: list[Run] = []
        held = [self.printed[run] if is_print else self._held(run) for run, is_print in places]
        try:
            for run, is_print in places:
                sides.append(self._fingerprint(run) if is_print else self._open(run))
            check = compare_histories(
                "machine",
                sides[0],
                sides[1],
                rules_of(None),
                golden_path=places[0][0],
                source_path=places[1][0],
                resources=SERIAL,
            )
            bounds = rules_between(rules_of(None), sides[0], sides[1])
        finally:
            for side in sides:
                side.close()
        self._hold_fingerprints_against_oracle(held[0], held[1], check, bounds)

    def _fingerprint(self, run: str) -> Run:
        folder = self.folder / "prints" / run
        path = folder if (folder / ".ciwrap.tree").exists() else folder / "t.tree"
        found = fingerprint_of(path)
        assert found is not None
        return open_fingerprint(path, found)

    def _held(self, run: str) -> Held:
        paths = {
            (name, iteration): self.path(run, iteration, name)
            for name in NAMES
            for iteration in ITERATIONS
        }
        return {key: np.load(path).tolist() for key, path in paths.items() if path.exists()}

    def _hold_fingerprints_against_oracle(
        self, ours: Held, theirs: Held, check: CheckResult, bounds: Rules
    ) -> None:
        """No match that the values refute, no difference where they are equal."""
        results = {(v.name, v.iteration): v for v in check.variables}
        assert results.keys() == ours.keys() | theirs.keys()
        for key, result in results.items():
            if key not in ours or key not in theirs:
                assert result.verdict is Verdict.NOT_COMPARABLE, result
                continue
            name, iteration = key
            dtype = "<f8" if name == "x" else "<i8"
            atol = bounds.settings_for(VariableId(name, iteration), Signature(dtype, ())).bound.atol
            wanted = sum(
                map(partial(differs_scalar, bound=Bound(atol=atol)), *(ours[key], theirs[key]))
            )
            near = Bound(atol=0.87 * atol)
            beyond = sum(map(partial(differs_scalar, bound=near), ours[key], theirs[key]))
            if result.verdict is Verdict.MATCH:
                assert not wanted, result
            if result.verdict.is_alarm:
                assert beyond, result
            if repr(ours[key]) == repr(theirs[key]) and result.verdict is not Verdict.MATCH:
                assert "was made" in str(result.reason), result

    @rule(run=st.sampled_from(RUNS))
    def lose_the_capture(self, run: str) -> None:
        self.capture_path(run).unlink(missing_ok=True)

    @rule(
        run=st.sampled_from(RUNS),
        residues=st.booleans(),
        against=st.sampled_from((None, *RUNS)),
        atol=st.sampled_from([None, ATOL, ATOL, 2.0]),
        checksums=st.booleans(),
        rebuild=st.booleans(),
    )
    def capture(
        self,
        run: str,
        residues: bool,
        against: str | None,
        atol: float | None,
        checksums: bool,
        rebuild: bool,
    ) -> None:
        self._capture(run, residues, against, atol, checksums=checksums, rebuild=rebuild)

    @rule(
        run=st.sampled_from(RUNS),
        residues=st.booleans(),
        against=st.sampled_from((None, *RUNS)),
        step=st.integers(0, 12),
    )
    def be_killed_while_capturing(
        self, run: str, residues: bool, against: str | None, step: int
    ) -> None:
        left = [step]

        def dying(real: Any) -> Any:
            def call(*arguments: Any, **more: Any) -> Any:
                if left[0] == 0:
                    raise KilledError
                left[0] -= 1
                return real(*arguments, **more)

            return call

        with ExitStack() as stack:
            for target, name in ((os, "pwrite"), (os, "fsync"), (os, "ftruncate")):
                patched = mock.patch.object(target, name, dying(getattr(target, name)))
                stack.enter_context(patched)
            stack.enter_context(suppress(KilledError))
            # Whether its last commit still came about is open.
            self.captured.pop(run, None)
            self._capture(run, residues, against, ATOL)

    def _capture(
        self,
        run: str,
        residues: bool,
        against: str | None,
        atol: float | None,
        *,
        checksums: bool = False,
        rebuild: bool = False,
    ) -> None:
        other = None if against is None else self.capture_path(against)
        if other is not None and (against == run or not other.exists()):
            return
        folder, target = self.folder / run, self.capture_path(run)
        options = CaptureOptions(
            chunk_bytes=None if other is not None else 64,
            residues=residues,
            against=other,
            checksums=checksums,
            settle_seconds=0,
        )
        found = find_in(folder, layout=LAYOUT, exclude=(".ciwrap.tree*",))
        # The mistakes that this machine makes; what a killed capture left is no capture of a run.
        told = r"has no residues|was captured with|not a capture of a run|ever completed|--rebuild"
        with suppress_if(told, UsageError, CorruptCaptureError):
            report = capture_run(
                folder, found, target, rules_of(atol), options, rebuild=rebuild, resources=SERIAL
            )
            assert not report.left_alone
            self.captured[run] = self._held(run)

    @rule(
        one=st.sampled_from(RUNS),
        other=st.sampled_from(RUNS),
        atol=st.sampled_from([ATOL, ATOL, 2.0, 0.0]),
        use_captures=st.booleans(),
        verify_checksums=st.booleans(),
    )
    def compare(
        self, one: str, other: str, atol: float, use_captures: bool, verify_checksums: bool
    ) -> None:
        told = "has no checksums" if use_captures and verify_checksums else "never"
        with suppress_if(told, UsageError):
            check = self._compare(
                one, other, atol, use_captures=use_captures, verify_checksums=verify_checksums
            )
            self._hold_against_oracle(one, other, atol, check)

    @invariant()
    def a_and_b_are_told_apart(self) -> None:
        if any(path.exists() for path in (self.path("a", 1, "x"), self.path("a", 1, "n"))):
            check = self._compare("a", "b", ATOL, use_captures=True, verify_checksums=False)
            self._hold_against_oracle("a", "b", ATOL, check)

    def _open(self, run: str, **how: bool) -> Run:
        folder = self.folder / run
        found = find_in(folder, layout=LAYOUT, exclude=(".ciwrap.tree*",))
        return open_run(folder, found, **how)

    def _compare(
        self, one: str, other: str, atol: float, *, use_captures: bool, verify_checksums: bool
    ) -> CheckResult:
        sides = [
            self._open(run, use_capture=use_captures, verify_checksums=verify_checksums)
            for run in (one, other)
        ]
        try:
            return compare_histories(
                "machine",
                sides[0],
                sides[1],
                rules_of(atol),
                golden_path=one,
                source_path=other,
                resources=SERIAL,
            )
        finally:
            for side in sides:
                side.close()

    def _hold_against_oracle(self, one: str, other: str, atol: float, check: CheckResult) -> None:
        results = {(v.name, v.iteration): v for v in check.variables}
        for iteration in ITERATIONS:
            for name in NAMES:
                paths = [self.path(run, iteration, name) for run in (one, other)]
                there = [path.exists() for path in paths]
                if not any(there):
                    assert (name, iteration) not in results
                    continue
                result = results[name, iteration]
                if not all(there):
                    assert result.verdict is Verdict.NOT_COMPARABLE
                    continue
                g, v = (np.load(path).tolist() for path in paths)
                # Over the reals: 1.05 and 0.05, as doubles hold them, are more than 1 apart.
                bound = Bound(atol=atol if name == "x" else 0.0)
                wanted = sum(map(partial(differs_scalar, bound=bound), g, v))
                assert result.verdict is (Verdict.DIFFER if wanted else Verdict.MATCH), result
                assert result.differing_count == wanted, result


TestCaptures = CaptureMachine.TestCase
TestCaptures.settings = settings(
    max_examples=max(8, settings().max_examples // 8),
    stateful_step_count=40,
    deadline=None,
    # Shrinking a story of forty steps takes minutes, and the story itself is what one reads.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@pytest.mark.parametrize("third", ["refreshed", "another"])
def test_a_run_captured_against_one_baseline_is_not_held_against_another(
    third: str, tmp_path: Path
) -> None:
    """The baselines round to the same cells, so their coarse roots are equal; the residues tell."""
    machine = CaptureMachine()
    try:
        machine.begin()
        for run, value in (("a", 0.35), ("b", 1.30), ("c", 0.05)):
            for iteration in ITERATIONS:
                np.save(machine.path(run, iteration, "x"), np.full(40, value))
        baseline = "a" if third == "refreshed" else "c"
        if third == "another":
            np.save(machine.path("c", 1, "x"), np.full(40, 0.35))
            np.save(machine.path("a", 1, "x"), np.full(40, 0.05))
        machine._capture(baseline, True, None, ATOL)
        machine._capture("b", False, baseline, ATOL)
        if third == "refreshed":
            np.save(machine.path("a", 1, "x"), np.full(40, 0.05))
        machine._capture("a", True, None, ATOL)
        check = machine._compare("a", "b", ATOL, use_captures=True, verify_checksums=False)
        machine._hold_against_oracle("a", "b", ATOL, check)
        assert check.verdict is Verdict.DIFFER
    finally:
        machine.teardown()
