"""What a killed accept leaves: read straight away, completed, killed once more, and then used.

The golden of before or the new one is there at every moment, whole, and recovery changes nothing of
what was read before it. Each test counts the steps of what it interrupts, and tries them all.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from dying_process import DyingProcess
from golden_pairs import value_of, variable, write

from ciwrap import _core
from ciwrap.base.errors import CorruptGoldenError, GoldenMissingError
from ciwrap.golden import places as paths
from ciwrap.golden.show import UnusedGolden, delete_goldens
from ciwrap.golden.store import GoldenStore, root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHECK = "mesh"
OLD, NEW, NEWER = 1.0, 2.0, 3.0
MOMENT_OF_CHANGE = ("os.rename", f"{CHECK}.golden.yaml.next")


def read(store: GoldenStore) -> float | None:
    """The value of the golden there is; None if there is none."""
    try:
        return value_of(store.read(CHECK))
    except GoldenMissingError:
        return None


def settle(store: GoldenStore) -> None:
    with store.locked():
        store.settle(CHECK)


def steps_of(store: GoldenStore, act: Callable[[GoldenStore], None]) -> list[tuple[str, str]]:
    """What an act does to the files, tried on a copy."""
    folder = store.folder.with_name("rehearsal")
    shutil.copytree(store.folder, folder)
    with DyingProcess(folder) as process:
        act(GoldenStore(folder))
    shutil.rmtree(folder)
    return process.steps


def killed_everywhere(
    store: GoldenStore, act: Callable[[GoldenStore], None]
) -> Iterator[tuple[GoldenStore, DyingProcess]]:
    """A copy of the store for each step of an act, of a process that died there."""
    for number in range(len(steps_of(store, act))):
        folder = store.folder.parent / f"{store.folder.name}-{number}"
        shutil.copytree(store.folder, folder)
        with DyingProcess(folder, number) as process:
            act(GoldenStore(folder))
        assert process.is_dead
        yield GoldenStore(folder), process
        shutil.rmtree(folder)


@pytest.fixture(params=[None, OLD], ids=["first", "replaced"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> GoldenStore:
    """A store without a golden, and one with."""
    store = GoldenStore(tmp_path / "golden")
    store.folder.mkdir()
    if request.param is not None:
        write(store, CHECK, OLD)
    return store


def names(store: GoldenStore) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir())


PAIR = [f"{CHECK}.golden", f"{CHECK}.golden.yaml"]


def accept(store: GoldenStore) -> None:
    write(store, CHECK, NEW)


def test_an_accept_takes_these_steps(store: GoldenStore) -> None:
    staged, staged_manifest = f"{CHECK}.golden.next", f"{CHECK}.golden.yaml.next"
    assert steps_of(store, accept) == [
        ("write", staged),
        ("write the rest", staged),
        ("flush", staged),
        ("open", staged_manifest),
        ("flush", staged_manifest),
        ("flush", "rehearsal"),
        MOMENT_OF_CHANGE,
        ("flush", "rehearsal"),
        ("os.rename", staged),
        ("flush", "rehearsal"),
    ]


@pytest.mark.parametrize("lost_names", [None, 0, 1, 2])
def test_a_killed_accept_has_happened_or_has_not(
    store: GoldenStore, lost_names: int | None
) -> None:
    """lost_names: the power fails as well, and so many names are lost that were not flushed."""
    old = read(store)
    for after, process in killed_everywhere(store, accept):
        if lost_names is not None:
            process.lose_power(lost_names)
        has_happened = MOMENT_OF_CHANGE in process.steps[:-1]
        if process.steps[-1] == ("flush", after.folder.name) and lost_names:
            # The rename was done and not flushed: it may be lost, too.
            assert read(after) in (old, NEW)
        else:
            assert read(after) == (NEW if has_happened else old)
        seen = read(after)
        settle(after)
        assert read(after) == seen, process.steps
        assert names(after) == ([] if seen is None else PAIR)


def test_what_recovery_has_completed_is_told_of_until_then(store: GoldenStore) -> None:
    interrupted = []
    for after, process in killed_everywhere(store, accept):
        if read(after) is None:
            continue
        if after.read(CHECK).was_interrupted:
            interrupted.append(process.steps[-1][0])
        settle(after)
        assert not after.read(CHECK).was_interrupted
    # The flush of the manifest's name, and the binary's rename.
    assert interrupted == ["flush", "os.rename"]


def test_a_second_crash_while_recovering(store: GoldenStore) -> None:
    for after, process in killed_everywhere(store, accept):
        seen = read(after)
        for again, _ in killed_everywhere(after, settle):
            assert read(again) == seen, process.steps
            settle(again)
            assert read(again) == seen, process.steps
            assert names(again) == ([] if seen is None else PAIR)


def test_a_second_crash_in_the_next_accept(store: GoldenStore) -> None:
    for after, _ in killed_everywhere(store, accept):
        seen = read(after)
        for again, process in killed_everywhere(after, lambda there: write(there, CHECK, NEWER)):
            found = read(again)
            assert found == (NEWER if MOMENT_OF_CHANGE in process.steps[:-1] else seen)
            settle(again)
            assert read(again) == found
            write(again, CHECK, 4.0)
            assert read(again) == 4.0
            assert names(again) == PAIR


def test_a_failure_that_is_no_death_leaves_nothing(store: GoldenStore) -> None:
    """Whatever fails before the moment of change: the old golden, and no files beside it."""
    before = {path.name: path.read_bytes() for path in store.folder.iterdir()}

    def fails(root: str, byte_count: int) -> None:
        assert root_of(paths.staged(store.path(CHECK))) == root
        assert paths.staged(store.path(CHECK)).stat().st_size == byte_count
        raise KeyboardInterrupt

    with store.locked(), pytest.raises(KeyboardInterrupt):
        store.write(CHECK, [variable(NEW)], fails)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in store.folder.iterdir()} == before


# --- settling, for every way in which the roots of manifest and files may lie


@pytest.mark.parametrize(
    ("manifest", "usual", "staged", "read_before", "read_after"),
    [
        # The binary's rename was not done yet: it is done.
        (NEW, OLD, NEW, NEW, NEW),
        (NEW, None, NEW, NEW, NEW),
        # The manifest's rename was not done yet: the new binary goes.
        (OLD, OLD, NEW, OLD, OLD),
        (None, None, NEW, None, None),
        # Accepted again with the same numbers: both are the one that the manifest names.
        (OLD, OLD, OLD, OLD, OLD),
        # Never made by a crash of ours: of three ages. What is damaged stays damaged.
        (NEWER, OLD, NEW, "torn", "torn"),
        (NEWER, None, NEW, None, None),
        (None, OLD, NEW, "torn", "torn"),
        (None, OLD, OLD, "torn", "torn"),
    ],
)
def test_settling(
    tmp_path: Path,
    manifest: float | None,
    usual: float | None,
    staged: float,
    read_before: object,
    read_after: object,
) -> None:
    store = GoldenStore(tmp_path / "golden")
    store.folder.mkdir()
    if manifest is not None:
        write(store, CHECK, manifest)
        store.path(CHECK).unlink()
    for value, path in (
        (usual, store.path(CHECK)),
        (staged, paths.staged(store.path(CHECK))),
    ):
        if value is not None:
            _core.write_golden(str(path), [variable(value)])

    def seen() -> object:
        try:
            return read(store)
        except CorruptGoldenError:
            return "torn"

    assert seen() == read_before
    settle(store)
    assert seen() == read_after
    assert not paths.staged(store.path(CHECK)).exists()
    settle(store)
    assert seen() == read_after


@pytest.mark.parametrize("damage", [b"", b"no manifest", b"\xff\xfe", b"a: b: c"])
def test_settling_beside_a_damaged_manifest_deletes_no_golden(
    tmp_path: Path, damage: bytes
) -> None:
    store = GoldenStore(tmp_path / "golden")
    write(store, CHECK, OLD)
    store.manifest_path(CHECK).write_bytes(damage)
    _core.write_golden(str(paths.staged(store.path(CHECK))), [variable(NEW)])
    settle(store)
    assert names(store) == PAIR
    assert (
        root_of(store.path(CHECK)) == _core.golden_root(_core.encode_golden([variable(OLD)])).hex()
    )


@pytest.mark.parametrize("keep", [0, 10, 100])
def test_settling_beside_a_staged_binary_that_was_cut(store: GoldenStore, keep: int) -> None:
    old = read(store)
    path = paths.staged(store.path(CHECK))
    path.write_bytes(_core.encode_golden([variable(NEW)])[:keep])
    paths.staged(store.manifest_path(CHECK)).write_text("half a mani")
    assert read(store) == old
    settle(store)
    assert read(store) == old
    assert names(store) == ([] if old is None else PAIR)


def test_a_killed_deletion_is_completed_by_the_next(store: GoldenStore) -> None:
    """Also by one who knows the golden by its root alone, as test runs note unused ones."""
    write(store, CHECK, OLD)
    unused = UnusedGolden("", CHECK, store.root_of(CHECK))
    assert unused.root is not None

    def delete(store: GoldenStore) -> None:
        assert delete_goldens(store.folder, [unused])

    count = 0
    for left, process in killed_everywhere(store, delete):
        if left.contains(CHECK):
            delete(left)
        assert names(left) == [], process.steps
        count += 1
    assert count > 1


def test_a_deletion_leaves_a_golden_whose_manifest_is_of_another(store: GoldenStore) -> None:
    write(store, CHECK, OLD)
    unused = UnusedGolden("", CHECK, store.root_of(CHECK))
    write(store, CHECK, NEW)
    store.pair_path(CHECK).unlink()
    assert delete_goldens(store.folder, [unused]) == []
    store.manifest_path(CHECK).write_text("format_version: [")
    assert store.root_of(CHECK) is None
    assert delete_goldens(store.folder, [unused]) == []
    assert names(store) == [f"{CHECK}.golden.yaml"]
