"""Any order of writing, growing, removing, killing and closing, by several processes at once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
from dying_process import DyingProcess
from golden_pairs import value_of
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tiers import examples

from ciwrap import _core
from ciwrap.base.errors import CorruptGoldenError, GoldenMissingError
from ciwrap.golden.goldens_of_tests import ModuleStore
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, rows_of
from ciwrap.golden.show import stored_places
from ciwrap.golden.store import GoldenStore

# Two that differ in case only: of them one may have files of its own.
NAMES = st.sampled_from(["test_a", "test_A", "test_b[1]", "test_é"])
VALUES = st.integers(0, 5).map(float)
SIZES = st.sampled_from([3, 3, 1000])
STORES = st.integers(0, 2)


def put(store: GoldenStore, name: str, value: float, size: int) -> None:
    array = np.full(size, value)
    tree = _core.build_tree(_core.TreeParameters("<f8", atol=1e-3), array)
    one = _core.GoldenVariable("x", array.shape, tree, data=array.tobytes())

    def make_manifest(root: str, byte_count: int) -> Manifest:
        log = (Acceptance("now", "me", f"{value}", root),)
        return Manifest(name, BinaryFile("x", root, byte_count), rows_of([one], {}), {}, log)

    with store.locked():
        store.write(name, [one], make_manifest)


class ModuleStates(RuleBasedStateMachine):
    """Two kept stores and one that is not, of one folder; model: what each check's golden is."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.folder = self.top / "golden" / "test_it"
        self.stores = [ModuleStore(self.folder, is_kept=number > 0) for number in range(3)]
        self.model: dict[str, float] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.top)

    @rule(name=NAMES, value=VALUES, size=SIZES, which=STORES)
    def write(self, name: str, value: float, size: int, which: int) -> None:
        size = 3 if name == "test_A" else size
        put(self.stores[which], name, value, size)
        self.model[name] = value

    @rule(name=NAMES, value=VALUES, which=STORES)
    def write_as_earlier_releases_did(self, name: str, value: float, which: int) -> None:
        if name in self.model or name == "test_A":
            return
        put(GoldenStore(self.folder), name, value, 3)
        self.model[name] = value
        # Its own name may wait in a journal to be taken out: that comes first, in any order.
        assert value_of(self.stores[which].read(name)) == value

    @rule(name=NAMES, which=STORES)
    def remove(self, name: str, which: int) -> None:
        with self.stores[which].locked():
            self.stores[which].remove(name)
        self.model.pop(name, None)

    @rule(name=NAMES, value=VALUES, size=SIZES, step=st.integers(0, 14), has_power=st.booleans())
    def be_killed(self, name: str, value: float, size: int, step: int, has_power: bool) -> None:
        size = 3 if name == "test_A" else size
        # What the others have noted is on the disk, unless the machine dies with them.
        has_power = has_power or any(one.leftover is not None for one in self.stores[:1])
        with DyingProcess(self.top, step) as process:
            put(ModuleStore(self.folder), name, value, size)
        if process.is_dead and not has_power:
            process.lose_power()
        seen = self.seen(name)
        assert seen in (self.model.get(name), value)
        if not process.is_dead:
            assert seen == value
        if seen is not None:
            self.model[name] = seen

    @rule(name=NAMES, step=st.integers(0, 14))
    def be_killed_while_removing(self, name: str, step: int) -> None:
        with DyingProcess(self.top, step):
            store = ModuleStore(self.folder)
            with store.locked():
                store.remove(name)
        try:
            seen = self.seen(name)
        except CorruptGoldenError:
            seen = None  # one of a pair of files is gone
        assert seen in (self.model.get(name), None)
        if seen is None and name in self.model:
            # A manifest without its binary may be left: what removes it is removing it again.
            with self.stores[0].locked():
                self.stores[0].remove(name)
            del self.model[name]

    @rule(which=STORES)
    def close(self, which: int) -> None:
        self.stores[which].close()

    @rule(which=STORES)
    def put_in_place(self, which: int) -> None:
        self.stores[which].put_in_place()
        assert self.stores[which].leftover is None

    def seen(self, name: str) -> float | None:
        try:
            return value_of(ModuleStore(self.folder).read(name))
        except GoldenMissingError:
            return None

    @invariant()
    def all_stores_see_the_same(self) -> None:
        for store in (*self.stores, ModuleStore(self.folder)):
            for name, value in self.model.items():
                assert value_of(store.read(name)) == value
        found = {place.name for place in stored_places(self.top / "golden")}
        assert found == set(self.model)


TestModuleStates = ModuleStates.TestCase
TestModuleStates.settings = settings(
    max_examples=examples(40), stateful_step_count=20, deadline=None
)
