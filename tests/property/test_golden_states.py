"""Goldens over time: outputs change, are checked, accepted, left pending, rejected, in any order.

Whatever is done is killed now and then, and killed again while it recovers.

The model is a dictionary of arrays and NumPy's own comparison. After each step the golden that is
read must be the model's, to the bit.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from command_line import call
from dying_process import DyingProcess
from e2e.cli_project import environment
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tiers import examples

from ciwrap.base.errors import GoldenMissingError
from ciwrap.base.files import PENDING_DIR
from ciwrap.formats.reader import as_elements
from ciwrap.golden.store import GoldenStore
from ciwrap.review.pending import PendingGoldens

if TYPE_CHECKING:
    from ciwrap.golden.store import StoredGolden

    Arrays = dict[str, np.ndarray[Any, Any]]

LONG = os.environ.get("CIWRAP_LONG") == "1"
ATOL = 1e-3
CONFIG = f"version: 1\ndefaults: {{atol: {ATOL}, evidence: data}}\nchecks:\n  c: {{outputs: out}}\n"
MATCH, DIFFER, NOT_COMPARABLE = 0, 1, 3
COMMANDS = ("accept", "check --pending", "accept --pending") * 3 + ("check", "reject --all")
# What is added to a value: within the bound, beyond it, and neither.
MOVES = {"within": 0.3 * ATOL, "beyond": 5 * ATOL, "nan": np.nan, "inf": np.inf}
CHANGES = ("none", "within", "beyond", "as accepted", "another shape", "one less", "nan", "inf")


def same(one: Arrays | None, other: Arrays | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


def verdict(golden: Arrays | None, outputs: Arrays) -> int:
    """What the contract says of outputs: within the bound, beyond it, or neither to be told."""
    if golden is None or golden.keys() != outputs.keys():
        return NOT_COMPARABLE
    codes = [MATCH]
    for name, old in golden.items():
        new = outputs[name]
        if old.shape != new.shape or old.dtype != new.dtype:
            codes.append(NOT_COMPARABLE)
            continue
        with np.errstate(invalid="ignore"):  # inf - inf
            is_close = np.abs(new - old) <= ATOL
        is_within = (old == new) | is_close | (np.isnan(old) & np.isnan(new))
        codes.append(MATCH if is_within.all() else DIFFER)
    return max(codes)


class Goldens(RuleBasedStateMachine):
    """golden: what is accepted. pending: what waits, and the golden it was made against."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="goldens-"))
        (self.folder / "out").mkdir()
        (self.folder / "ciwrap.yaml").write_text(CONFIG)
        self.store = GoldenStore(self.folder / "golden")
        self.waiting = PendingGoldens(self.folder / PENDING_DIR)
        self.outputs: Arrays = {}
        self.golden: Arrays | None = None
        self.pending: tuple[Arrays, Arrays | None] | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # --- what the outputs are

    @initialize(is_accepted=st.sampled_from([True, True, True, False]))
    def first_run(self, is_accepted: bool) -> None:
        self.save("x", np.arange(6.0))
        self.save("y", np.zeros((2, 2), np.float32))
        if is_accepted:
            self.do("none", "accept")

    def save(self, name: str, array: np.ndarray[Any, Any]) -> None:
        self.outputs[name] = array
        np.save(self.folder / "out" / f"{name}.npy", array)

    def change(self, change: str) -> None:
        """Makes the outputs those of another run. change: of CHANGES."""
        if change == "as accepted" and self.golden is not None:
            for name in self.outputs.keys() - self.golden.keys():
                (self.folder / "out" / f"{name}.npy").unlink()
            self.outputs = {}
            for name, array in self.golden.items():
                self.save(name, array)
        elif change == "another shape":
            self.save("y", np.ones(self.outputs["y"].size % 3 + 1 if "y" in self.outputs else 1))
        elif change == "one less" and "y" in self.outputs:
            del self.outputs["y"]
            (self.folder / "out" / "y.npy").unlink()
        elif change in MOVES:
            array = self.outputs["x"].copy()
            array[1] = MOVES[change] if np.isnan(array[1]) else array[1] + MOVES[change]
            self.save("x", array)

    # --- what is done about them

    @rule(change=st.sampled_from(CHANGES), command=st.sampled_from(COMMANDS))
    def do(self, change: str, command: str) -> None:
        self.change(change)
        code, golden, pending = self.expected(command)
        assert self.call(command) == code
        self.golden, self.pending = golden, pending

    @rule(
        change=st.sampled_from(CHANGES),
        command=st.sampled_from(COMMANDS),
        share=st.integers(0, 99),
        power=st.booleans(),
    )
    def do_and_be_killed(self, change: str, command: str, share: int, power: bool) -> None:
        """share: of the command's steps, in percent, that are done before it dies."""
        self.change(change)
        code, golden, pending = self.expected(command)
        with DyingProcess(self.folder, share * self.steps_of(command) // 100) as process:
            found = self.call(command)
        if not process.is_dead:
            assert found == code
            self.golden, self.pending = golden, pending
            return
        if power:
            process.lose_power()
        # It has happened or it has not: which of both is for the files to say.
        now = self.read_golden()
        assert same(now, self.golden) or same(now, golden), process.steps
        left = self.read_pending()
        known = [one[0] for one in (self.pending, pending) if one is not None]
        assert left is None or any(same(left, one) for one in known), process.steps
        bases = [one[1] for one in (pending, self.pending) if one and same(left, one[0])]
        self.golden = now
        self.pending = None if left is None else (left, bases[0])

    def expected(self, command: str) -> tuple[int, Arrays | None, Any]:
        """Exit code, and the golden and what waits thereafter."""
        outputs, golden, pending = dict(self.outputs), self.golden, self.pending
        found = verdict(golden, outputs)
        if command == "accept":
            return 0, golden if found == MATCH else outputs, pending
        if command == "check":
            return found, golden, pending
        if command == "check --pending":
            return found, golden, None if found == MATCH else (outputs, golden)
        if command == "reject --all" or pending is None:
            return 0, golden, None
        values, base = pending
        if same(values, golden) or same(base, golden):
            return 0, values, None
        return NOT_COMPARABLE, golden, pending

    def steps_of(self, command: str) -> int:
        """How many steps a command takes now, tried on a copy."""
        copy = self.folder.with_name(f"{self.folder.name}-copy")
        shutil.copytree(self.folder, copy)
        with DyingProcess(copy) as process:
            self.call(command, copy)
        shutil.rmtree(copy)
        return len(process.steps)

    def call(self, command: str, folder: Path | None = None) -> int:
        words = command.split()
        if words[0] == "accept":
            words += ["--reason", "why"]
        done = call(*words, folder=folder or self.folder, environment=environment())
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode

    # --- what is there

    def read_golden(self) -> Arrays | None:
        try:
            return arrays_of(self.store.read("c"))
        except GoldenMissingError:
            return None

    def read_pending(self) -> Arrays | None:
        goldens, faults = self.waiting.found()
        assert not faults
        assert len(goldens) <= 1
        if not goldens:
            return None
        return arrays_of(self.waiting.store(goldens[0].place).read("c"))

    @invariant()
    def the_golden_is_the_models(self) -> None:
        assert same(self.read_golden(), self.golden)

    @invariant()
    def what_waits_is_the_models(self) -> None:
        assert same(self.read_pending(), None if self.pending is None else self.pending[0])


def arrays_of(golden: StoredGolden) -> Arrays:
    found = {}
    for variable in golden.variables:
        assert variable.data is not None
        elements = as_elements(variable.data, variable.tree.parameters.dtype)
        found[variable.name] = elements.reshape(tuple(variable.shape))
    return found


TestGoldens = Goldens.TestCase
TestGoldens.settings = settings(
    max_examples=200 if LONG else examples(30),
    stateful_step_count=50 if LONG else 20,
    deadline=None,
)
