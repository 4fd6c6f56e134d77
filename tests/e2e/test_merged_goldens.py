"""Two branches accept goldens of tests of one file, and git merges them: with git itself."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest
from golden_pairs import value_of, write

from ciwrap.base.errors import CorruptGoldenError
from ciwrap.golden.goldens_of_tests import ModuleStore
from ciwrap.golden.shared_file import slot_of

if TYPE_CHECKING:
    from pathlib import Path


class History:
    """A repository with the goldens of one test file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.path = root / "golden/test_it.goldens"
        (root / "golden").mkdir()

    def git(self, *words: str, is_checked: bool = True) -> int:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(("git", *settings, *words), cwd=self.root, capture_output=True)
        assert done.returncode == 0 or not is_checked, done.stderr.decode()
        return done.returncode

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "goldens", "--allow-empty")

    def change(self, goldens: dict[str, float | None]) -> None:
        """Writes these goldens; None takes one away."""
        store = ModuleStore(self.root / "golden/test_it")
        for name, value in goldens.items():
            if value is not None:
                write(store, name, value)
            else:
                with store.locked():
                    store.remove(name)
        store.close()

    def branch(self, name: str, goldens: dict[str, float | None]) -> None:
        self.git("checkout", "-q", "-b", name, "main")
        self.change(goldens)
        self.commit()

    @property
    def found(self) -> dict[str, float]:
        store = ModuleStore(self.root / "golden/test_it")
        return {name: value_of(store.read(name)) for name in store.checks()}


def start(tmp_path: Path, names: list[str]) -> History:
    history = History(tmp_path)
    history.change(dict.fromkeys(names, 1.0))
    history.commit()
    return history


NAMES = [f"test_{number:02}" for number in range(20)]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"test_00": 2.0}, {"test_19": 3.0}),
        ({"test_07": 2.0}, {"test_08": 3.0}),
        ({"test_20": 2.0}, {"test_21": 3.0}),
        ({"test_20": 2.0}, {"test_19": None}),
        ({"test_00": None}, {"test_01": None}),
    ],
    ids=["first and last", "neighbours", "two are added", "added and gone", "two are gone"],
)
def test_what_two_branches_do_to_different_tests_is_merged(
    tmp_path: Path, ours: dict[str, float | None], theirs: dict[str, float | None]
) -> None:
    history = start(tmp_path, NAMES)
    history.branch("ours", ours)
    history.branch("theirs", theirs)
    history.git("merge", "-q", "--no-edit", "ours")
    want = {**dict.fromkeys(NAMES, 1.0), **ours, **theirs}
    assert history.found == {name: value for name, value in want.items() if value is not None}


def test_two_goldens_of_one_test_are_a_conflict_and_never_two_lines(tmp_path: Path) -> None:
    history = start(tmp_path, NAMES)
    history.branch("ours", {"test_07": 2.0})
    history.branch("theirs", {"test_07": 3.0})
    assert history.git("merge", "-q", "--no-edit", "ours", is_checked=False) != 0
    with pytest.raises(CorruptGoldenError, match="delete the marks of the merge"):
        _ = history.found
    # Marks alone gone: two goldens of one test.
    lines = history.path.read_bytes().splitlines(keepends=True)
    marks = (b"<<<<<<<", b"=======", b">>>>>>>")
    history.path.write_bytes(b"".join(one for one in lines if not one.startswith(marks)))
    with pytest.raises(CorruptGoldenError, match="is a second golden of 'test_07'"):
        _ = history.found


def _drawn(dice: random.Random, names: list[str], fresh: list[str]) -> dict[str, float | None]:
    """What a branch does: changes, deletions and additions of a few tests."""
    found: dict[str, float | None] = {}
    for _ in range(dice.randint(1, 4)):
        word = dice.choice(("change", "delete", "add"))
        if word == "add":
            found[dice.choice(fresh)] = float(dice.randint(2, 9))
        elif names:
            found[dice.choice(names)] = None if word == "delete" else float(dice.randint(2, 9))
    return found


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 200))]
)
def test_random_histories_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    names = [f"test_{number}" for number in range(dice.randint(1, 12))]
    fresh = [f"test_new_{number}" for number in range(12)]
    history = start(tmp_path, names)
    sides = [_drawn(dice, names, fresh) for _ in range(dice.randint(2, 3))]
    for number, side in enumerate(sides):
        history.branch(f"side{number}", side)
    want: dict[str, float | None] = dict.fromkeys(names, 1.0)
    history.git("checkout", "-q", "main")
    done: dict[str, float | None] = {}
    for number, side in enumerate(sides):
        is_merged = history.git("merge", "-q", "--no-edit", f"side{number}", is_checked=False) == 0
        # The same change on both sides is none; another one of the same line is a conflict.
        same = {name for name in side if name in done}
        near = {slot_of(name) for name in side} & {slot_of(name) for name in done}
        empty = all(value is None for value in {**want, **side}.values())
        if not is_merged:
            assert same or near or empty
            history.git("merge", "--abort")
            continue
        assert all(side[name] == done[name] for name in same)
        want |= side
        done |= side
        assert history.found == {name: one for name, one in want.items() if one is not None}
