"""The small goldens of a test file: written, moved, killed at every step, merged and damaged."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from dying_process import DyingProcess
from golden_pairs import value_of, variable, write

from ciwrap import _core
from ciwrap.base.errors import (
    CorruptGoldenError,
    GoldenMissingError,
    UnsupportedFormatError,
    WriteFailedError,
)
from ciwrap.golden import shared_file as shared_lines
from ciwrap.golden.goldens_of_tests import ModuleStore
from ciwrap.golden.manifest import Acceptance, BinaryFile, Manifest, rows_of
from ciwrap.golden.places import LOCK_NAME, Place
from ciwrap.golden.show import UnusedGolden, delete_goldens, stored_places
from ciwrap.golden.store import GoldenStore, GoldenStores
from ciwrap.model import VariableId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECK = "test_a"


@pytest.fixture
def store(tmp_path: Path) -> ModuleStore:
    (tmp_path / "golden").mkdir()
    return ModuleStore(tmp_path / "golden/test_it")


def files(store: ModuleStore) -> list[str]:
    top = store.folder.parent
    return sorted(one.relative_to(top).as_posix() for one in top.rglob("*") if one.is_file())


def read(store: GoldenStore, check: str = CHECK) -> float | None:
    try:
        return value_of(store.read(check))
    except GoldenMissingError:
        return None


def large(value: float) -> _core.GoldenVariable:
    array = np.full(1000, value)
    tree = _core.build_tree(_core.TreeParameters("<f8", atol=1e-3), array)
    return _core.GoldenVariable("x", array.shape, tree, data=array.tobytes())


def put(store: GoldenStore, one: _core.GoldenVariable, check: str = CHECK) -> None:
    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            check=check,
            binary=BinaryFile("any", root, byte_count),
            variables=rows_of([one], {}),
            environment={"cpu": "one"},
            accepted=(Acceptance("now", "me", "why", root),),
        )

    with store.locked():
        store.write(check, [one], make_manifest)


def test_many_goldens_are_one_file(store: ModuleStore) -> None:
    for number in range(20):
        write(store, f"test_it[{number}]", float(number))
    assert files(store) == ["test_it.goldens"]
    assert [read(store, f"test_it[{number}]") for number in range(20)] == [*range(20)]
    text = store.path("test_it[3]").read_text()
    # Only where they were made stands there once for all of them.
    assert (text.count('"variables"'), text.count('{"environment": {')) == (20, 1)
    assert stored_places(store.folder.parent) == sorted(
        Place("test_it", f"test_it[{number}]") for number in range(20)
    )


def test_a_golden_is_read_as_it_was_given(store: ModuleStore) -> None:
    labels = {VariableId("u", 3, 1): (("dims", "x"), ("units", "K"))}
    parts = []
    for name, dtype, values in (
        ("u", "<f4", [1.5, np.nan, -0.0]),
        ("n", "<i8", [2**62 + 1, -1]),
        ("t", "<U2", ["ab", "é"]),
        ("none", "<f8", []),
    ):
        array = np.array(values, dtype=dtype)
        fills = (2**62 + 1,) if dtype == "<i8" else (-999.5, 2.0) if dtype == "<f4" else ()
        tree = _core.build_tree(_core.TreeParameters(dtype, atol=1e-3, fill_values=fills), array)
        place = {"iteration": 3, "rank": 1} if name == "u" else {}
        parts.append(_core.GoldenVariable(name, array.shape, tree, data=array.tobytes(), **place))
    root = _core.golden_root(_core.encode_golden(parts)).hex()
    log = (
        Acceptance("then", "you", "é \u2028 first", "0" * 32, commit="abc"),
        Acceptance("now", "me", "b", root, None, "0" * 32, 2.5, ("u: a -> b",), "ann", "https://x"),
    )

    def make_manifest(root: str, byte_count: int) -> Manifest:
        return Manifest(
            "a/é [x]", BinaryFile("x", root, byte_count), rows_of(parts, labels), {"os": "L"},
            log, ignored=("wall*",),
        )  # fmt: skip

    with store.locked():
        written = store.write("a/é [x]", parts, make_manifest)
    assert written.is_shared
    found = ModuleStore(store.folder).read("a/é [x]")
    assert found.manifest == written.manifest
    assert found.manifest.accepted == log
    assert found.manifest.labels == {
        **{VariableId(one): () for one in ("n", "t", "none")}, **labels
    }  # fmt: skip
    assert _core.encode_golden(list(found.variables)) == _core.encode_golden(parts)


def test_what_is_large_or_keeps_no_data_has_files_of_its_own(store: ModuleStore) -> None:
    put(store, large(1.0))
    array = np.arange(10.0)
    parameters = _core.TreeParameters("<f8", atol=1e-3, residue_levels=15)
    tree = _core.build_tree(parameters, array)
    put(store, _core.GoldenVariable("x", array.shape, tree), "test_residues")
    assert files(store) == [
        f"test_it/{name}.golden{more}"
        for name in (CHECK, "test_residues")
        for more in ("", ".yaml")
    ]


# --- killed at every step


def grow(store: ModuleStore) -> None:
    put(store, large(2.0))


def shrink(store: ModuleStore) -> None:
    put(store, variable(2.0))


def remove(store: ModuleStore) -> None:
    with store.locked():
        store.remove(CHECK)


def steps_of(store: ModuleStore, act: Callable[[ModuleStore], None]) -> int:
    top = store.folder.parent.with_name("rehearsal")
    shutil.copytree(store.folder.parent, top)
    with DyingProcess(top) as process:
        act(ModuleStore(top / store.folder.name))
    shutil.rmtree(top)
    return len(process.steps)


def killed_everywhere(
    store: ModuleStore, act: Callable[[ModuleStore], None]
) -> Iterator[tuple[ModuleStore, DyingProcess]]:
    for number in range(steps_of(store, act)):
        top = store.folder.parent.with_name(f"killed-{number}")
        shutil.copytree(store.folder.parent, top)
        with DyingProcess(top, number) as process:
            act(ModuleStore(top / store.folder.name))
        assert process.is_dead
        yield ModuleStore(top / store.folder.name), process
        shutil.rmtree(top)


@pytest.mark.parametrize("has_lost_power", [False, True], ids=["killed", "power lost"])
@pytest.mark.parametrize(
    ("before", "act", "after"),
    [
        (None, shrink, 2.0),
        (variable(1.0), shrink, 2.0),
        (variable(1.0), grow, 2.0),
        (large(1.0), shrink, 2.0),
        (large(1.0), grow, 2.0),
        (variable(1.0), remove, None),
        (large(1.0), remove, None),
    ],
)
def test_a_kill_leaves_the_old_golden_or_the_new_one(
    store: ModuleStore,
    before: _core.GoldenVariable | None,
    act: Callable[[ModuleStore], None],
    after: float | None,
    has_lost_power: bool,
) -> None:
    put(store, variable(7.0), "test_other")
    if before is not None:
        put(store, before)
    old = read(store)
    count = 0
    for killed, process in killed_everywhere(store, act):
        count += 1
        if has_lost_power:
            process.lose_power()
        try:
            seen = read(killed)
        except CorruptGoldenError:
            # A pair of files of which one is gone, as when any golden is removed.
            assert (act, before is not None) == (remove, True)
            seen = old
        assert seen in (old, after), process.steps
        assert read(killed, "test_other") == 7.0
        # The next one to write finishes what was begun, whatever that was.
        put(killed, variable(8.0), "test_next")
        if act is not remove:
            assert read(killed) == seen, process.steps
        assert read(killed, "test_other") == 7.0
        put(killed, variable(3.0))
        assert read(killed) == 3.0
        assert killed.leftover is None
        names = [name for name in files(killed) if not name.endswith(".whole.next")]
        assert names == ["test_it.goldens"], process.steps
    assert count >= 3


@pytest.mark.parametrize(
    ("act", "after"), [(grow, 2.0), (shrink, 2.0), (remove, None)], ids=["grow", "shrink", "remove"]
)
def test_a_kill_brings_back_no_golden_of_before_a_move(
    store: ModuleStore, act: Callable[[ModuleStore], None], after: float | None
) -> None:
    """The shared file has its older lines until the journal of the move is put in place."""
    put(store, variable(1.0))
    kept = ModuleStore(store.folder, is_kept=True)
    put(kept, large(4.0))
    for killed, process in killed_everywhere(store, act):
        # Of a pair of files one may be gone, as when any golden is removed.
        with contextlib.suppress(*((CorruptGoldenError,) if act is remove else ())):
            assert read(killed) in (4.0, after), process.steps


def test_another_journal_of_the_same_inode_is_read_from_its_beginning(
    store: ModuleStore, tmp_path: Path
) -> None:
    """As when all goldens were removed, the journal with them, and then others were written."""
    other = ModuleStore(tmp_path / "other" / store.folder.name, is_kept=True)
    for name in ("test_b", "test_c", "test_d"):
        write(other, name, 2.0)
    kept = ModuleStore(store.folder, is_kept=True)
    write(kept, CHECK, 1.0)
    assert kept.leftover is not None
    assert other.leftover is not None
    inode = kept.leftover.stat().st_ino
    kept.leftover.write_bytes(other.leftover.read_bytes())
    assert kept.leftover.stat().st_ino == inode
    assert [read(kept, f"test_{one}") for one in "abcd"] == [None, 2.0, 2.0, 2.0]
    other.close()


def test_a_journal_of_an_earlier_release_counts(store: ModuleStore) -> None:
    """It has no head of its own, and goes on without one."""
    kept = ModuleStore(store.folder, is_kept=True)
    write(kept, CHECK, 1.0)
    assert kept.leftover is not None
    head, _, rest = kept.leftover.read_bytes().partition(b"\n")
    assert head.startswith(b'{"ciwrap goldens":3,"journal":')
    kept.leftover.write_bytes(rest)
    others = [ModuleStore(store.folder, is_kept=True) for _ in range(2)]
    for number, one in enumerate(others):
        write(one, f"test_{number}", 2.0)
        assert [read(other, f"test_{number}") for other in others] == [2.0, 2.0]
    assert read(kept) == 1.0
    others[0].close()
    assert [read(store, one) for one in (CHECK, "test_0", "test_1")] == [1.0, 2.0, 2.0]


def test_a_journal_counts_and_is_put_in_place(store: ModuleStore) -> None:
    write(store, CHECK, 1.0)
    kept = ModuleStore(store.folder, is_kept=True)
    write(kept, CHECK, 2.0)
    write(kept, "test_b", 3.0)
    # Another process, while this one writes, or after it was killed.
    assert (read(store), read(store, "test_b")) == (2.0, 3.0)
    assert store.leftover is not None
    with store.leftover.open("ab") as stream:
        stream.write(b'["test_c","half a li')
    assert read(store, "test_c") is None
    write(store, "test_d", 4.0)
    assert files(store) == ["test_it.goldens"]
    assert [read(kept, f"test_{one}") for one in "abcd"] == [2.0, 3.0, None, 4.0]
    # The one that was writing goes on.
    write(kept, CHECK, 5.0)
    kept.close()
    assert read(store) == 5.0
    assert files(store) == ["test_it.goldens"]
    assert not store.folder.exists()


def test_writing_is_linear(store: ModuleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what already exists, a write looks at nothing again."""
    counted = []
    original = shared_lines.body_of
    monkeypatch.setattr(shared_lines, "body_of", lambda line: counted.append(1) or original(line))
    kept = ModuleStore(store.folder, is_kept=True)
    for number in range(50):
        write(kept, f"test[{number}]", float(number))
        assert read(kept, f"test[{number}]") == number
    # A line for each golden, one for its reason, two that all have in common, and the head.
    assert len(counted) <= 2 * 50 + 3
    kept.close()


def test_a_failed_write_leaves_what_was_there(
    store: ModuleStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, CHECK, 1.0)
    kept = ModuleStore(store.folder, is_kept=True)
    write(kept, "test_b", 1.0)
    assert kept.leftover is not None
    before = kept.leftover.read_bytes()

    def full(descriptor: int, data: bytes, start: int) -> int:
        import os

        os.lseek(descriptor, start, 0)
        os.write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("ciwrap.golden.goldens_of_tests.os.pwrite", full)
        with pytest.raises(WriteFailedError, match="No space left"):
            write(kept, CHECK, 2.0)
    assert kept.leftover.read_bytes() == before
    assert (read(kept), read(kept, "test_b")) == (1.0, 1.0)
    kept.close()


def test_a_file_that_cannot_be_written_leaves_its_goldens_in_the_journal(
    store: ModuleStore,
) -> None:
    """What counts is said, and said once: a second end of writing has nothing to say."""
    write(store, CHECK, 1.0)
    kept = ModuleStore(store.folder, is_kept=True)
    write(kept, CHECK, 2.0)
    in_the_way = store.folder.with_name("test_it.goldens.whole.next")
    in_the_way.mkdir()
    with pytest.raises(
        WriteFailedError, match=r"lies in test_it\.goldens\.next beside it, and counts"
    ) as raised:
        kept.close()
    assert "untouched" not in str(raised.value)
    kept.close()
    assert read(ModuleStore(store.folder)) == 2.0
    in_the_way.rmdir()
    ModuleStore(store.folder).put_in_place()
    assert files(store) == ["test_it.goldens"]
    assert read(ModuleStore(store.folder)) == 2.0


def test_the_end_of_one_store_does_not_wait_for_another(tmp_path: Path) -> None:
    stores = GoldenStores(tmp_path, is_kept=True)
    for folder in ("test_a", "test_b"):
        write(stores.at(Place(folder, CHECK)), CHECK, 1.0)
    (tmp_path / "test_a.goldens.whole.next").mkdir()
    with pytest.raises(WriteFailedError, match=r"test_a\.goldens"):
        stores.close()
    assert (tmp_path / "test_b.goldens").exists()
    assert not list(tmp_path.rglob(".ciwrap.lock"))


# --- damage, and what git does to the file


def two(store: ModuleStore) -> Path:
    write(store, CHECK, 1.0)
    write(store, "test_b", 2.0)
    return store.path(CHECK)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"\n",
    "cut": lambda data: data[:-3],
    "cut at a line": lambda data: data[: data.rindex(b"\n", 0, -1) + 1],
    "head": lambda data: data[data.index(b"\n") + 1 :],
    "a number": lambda data: data.replace(b'["test_b",{', b'["test_b", {'),
    "a slot": lambda data: data.replace(b"\n0a\n", b"\n0z\n"),
    "a reason": lambda data: data.replace(b"because of 2.0", b"because of 3.0"),
    "a merge": lambda data: data.replace(b'["test_b"', b'<<<<<<< ours\n["test_b"'),
    "renamed": lambda data: data.replace(b'["test_b"', b'["test_c"'),
    "another kind": lambda data: data.replace(
        b'{"end"', shared_lines.line_of(b'{"what":1}') + b'{"end"'
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_of_every_golden(store: ModuleStore, damage: str) -> None:
    path = two(store)
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    assert path.read_bytes() != whole
    for check in (CHECK, "test_b", "test_never"):
        # What is damaged is not missing.
        assert store.contains(check)
        with pytest.raises(CorruptGoldenError, match="none of the goldens in it can be used"):
            store.read(check)
    with pytest.raises(CorruptGoldenError):
        stored_places(store.folder.parent)
    faults: list[Exception] = []
    assert stored_places(store.folder.parent, faults) == []
    assert len(faults) == 1
    if damage == "emptied":
        with pytest.raises(CorruptGoldenError):
            write(store, CHECK, 5.0)
        path.unlink()
    if damage == "a merge":
        # Which side is right nobody but the user knows.
        before = path.read_bytes()
        with pytest.raises(CorruptGoldenError, match="delete the marks of the merge"):
            write(store, CHECK, 5.0)
        assert path.read_bytes() == before
        path.write_bytes(whole)
    write(store, CHECK, 5.0)
    assert read(store) == 5.0
    # Lines that are whole have stayed.
    is_whole = damage in ("cut", "cut at a line", "head", "a merge", "another kind", "a slot")
    assert read(store, "test_b") == (2.0 if is_whole else None)


def test_a_line_that_is_lost_is_no_golden(store: ModuleStore) -> None:
    path = two(store)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(one for one in lines if not one.startswith(b'["test_b"')))
    assert (read(store), read(store, "test_b")) == (1.0, None)
    assert not store.contains("test_b")


def test_an_environment_that_another_branch_took_away_is_unknown(store: ModuleStore) -> None:
    put(store, variable(1.0))
    assert store.read(CHECK).manifest.environment == {"cpu": "one"}
    path = store.path(CHECK)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(one for one in lines if not one.startswith(b'{"environment"')))
    assert read(store) == 1.0
    assert store.read(CHECK).manifest.environment == {}
    write(store, "test_b", 2.0)
    assert (read(store), read(store, "test_b")) == (1.0, 2.0)


# As releases before formats 2 and 3 wrote it: what goldens share stands in lines of its own; and
# all data in base64.
DATA = Path(__file__).resolve().parents[1] / "data"
FORMAT_1 = DATA / "first_format.goldens"
FORMAT_2 = DATA / "second_format.goldens"


def test_a_file_of_the_first_format_is_read_and_written_anew(store: ModuleStore) -> None:
    path = store.folder.parent / "test_it.goldens"
    first = FORMAT_1.read_text()
    path.write_text(first)
    assert [read(store, one) for one in store.checks()] == [1.0, 2.0, 3.0]
    before = {one: store.read(one).manifest for one in store.checks()}
    assert [one.why for one in before["test_b"].accepted] == ["first golden", "another"]
    write(store, "test_d", 4.0)
    text = path.read_text()
    assert text.startswith('{"ciwrap goldens":3,')
    assert not any(f'{{"{kind}":' in text.replace(" ", "") for kind in ("accepted", "form"))
    assert {one: store.read(one).manifest for one in before} == before
    assert read(store, "test_d") == 4.0
    # A common line of the first format that is lost takes the golden with it.
    path.write_text("".join(one for one in first.splitlines(True) if "another" not in one))
    with pytest.raises(CorruptGoldenError, match=r"test_b.*is not there"):
        ModuleStore(store.folder).read("test_b")


def test_a_file_of_the_second_format_is_read_and_written_anew(store: ModuleStore) -> None:
    path = store.folder.parent / "test_it.goldens"
    path.write_bytes(FORMAT_2.read_bytes())
    before = {one: store.read(one) for one in store.checks()}
    text, numbers = before["test_a-v"].variables
    assert np.frombuffer(text.data or b"", "<U9").tolist() == ["two\nlines"]
    assert str(np.frombuffer(numbers.data or b"").tolist()) == "[0.1, 2.75, nan]"
    assert [one.why for one in before["test_a-v"].manifest.accepted] == [
        "first golden",
        "another factor",
    ]
    write(store, "test_c", 4.0)
    assert path.read_text().startswith('{"ciwrap goldens":3,')
    assert {one: store.read(one).manifest for one in before} == {
        one: golden.manifest for one, golden in before.items()
    }


def test_few_numbers_are_plain_in_the_line_and_many_are_packed(store: ModuleStore) -> None:
    write(store, CHECK, 0.1)
    assert '"values":"0.1 0.1' in (store.folder.parent / "test_it.goldens").read_text()


def test_other_numbers_than_were_accepted(store: ModuleStore) -> None:
    """A line that was made by hand, check sum and all."""
    path = two(store)
    text = path.read_bytes()
    (line,) = [one for one in text.splitlines(keepends=True) if one.startswith(b'["test_b"')]
    name, form, by, data = json.loads(line.rpartition(b" ")[0])
    made = json.dumps([name, form, [{"by": by, "new_root": "0" * 32}], data]).encode()
    path.write_bytes(text.replace(line, shared_lines.line_of(made)))
    with pytest.raises(CorruptGoldenError, match="other numbers than were accepted"):
        store.read("test_b")


def test_two_goldens_of_one_check_are_told(store: ModuleStore) -> None:
    """As a merge leaves them: one branch has moved it into the file, the other has changed it."""
    write(GoldenStore(store.folder), CHECK, 1.0)
    pair = {one: one.read_bytes() for one in store.folder.iterdir()}
    write(store, CHECK, 2.0)
    assert files(store) == ["test_it.goldens"]
    assert not store.folder.exists()
    store.folder.mkdir()
    for path, data in pair.items():
        path.write_bytes(data)
    with pytest.raises(CorruptGoldenError, match=r"holds a golden of 'test_a', and test_a\.golden"):
        store.read(CHECK)
    write(store, CHECK, 3.0)
    assert read(store) == 3.0
    assert files(store) == ["test_it.goldens"]


def test_earlier_pairs_are_read_and_move_when_they_are_written(store: ModuleStore) -> None:
    pairs = GoldenStore(store.folder)
    write(pairs, CHECK, 1.0)
    write(pairs, "test_b", 2.0)
    assert (read(store), read(store, "test_b")) == (1.0, 2.0)
    write(store, CHECK, 3.0)
    assert files(store) == [
        "test_it.goldens",
        "test_it/test_b.golden",
        "test_it/test_b.golden.yaml",
    ]
    assert store.checks() == [CHECK, "test_b"]


def test_what_two_branches_add_is_merged_by_lines(store: ModuleStore) -> None:
    path = two(store)
    base = path.read_bytes().splitlines(keepends=True)
    write(store, "test_aa", 3.0)
    ours = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(base))
    write(store, "test_c", 4.0)
    theirs = path.read_bytes().splitlines(keepends=True)
    # What git merges: all lines of both, in either order, and some of them twice.
    middle = [*ours[1:-1], *theirs[1:-1]]
    path.write_bytes(b"".join([base[0], *middle, base[-1]]))
    assert store.checks() == ["test_a", "test_aa", "test_b", "test_c"]
    assert [read(store, one) for one in store.checks()] == [1.0, 3.0, 2.0, 4.0]


def test_pointers_and_newer_formats_say_so(store: ModuleStore) -> None:
    path = two(store)
    whole = path.read_bytes()
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n")
    with pytest.raises(CorruptGoldenError, match="git lfs pull"):
        store.read(CHECK)
    with pytest.raises(CorruptGoldenError, match="Git LFS"):
        write(store, CHECK, 1.0)
    newer = shared_lines.HEADER.replace(b":3,", b":4,")
    path.write_bytes(
        whole.replace(shared_lines.line_of(shared_lines.HEADER), shared_lines.line_of(newer))
    )
    with pytest.raises(UnsupportedFormatError, match="update ciwrap"):
        store.read(CHECK)


@pytest.mark.parametrize("folder", ["", "tests/test_a"])
def test_a_kept_store_in_which_nothing_was_written_leaves_nothing(
    tmp_path: Path, folder: str
) -> None:
    stores = GoldenStores(tmp_path / "golden")
    with stores.kept():
        store = stores.at(Place(folder, "mesh"))
        for _ in range(2):
            with store.locked():
                assert (store.folder / LOCK_NAME).exists()
    assert not store.folder.exists()


def test_names_in_two_folders_and_in_other_cases(tmp_path: Path) -> None:
    stores = GoldenStores(tmp_path)
    places = [Place("a/test_it", "x"), Place("b/test_it", "x"), Place("a/test_it", "X")]
    with stores.kept():
        for number, place in enumerate(places):
            write(stores.at(place), place.name, float(number))
    assert stored_places(tmp_path) == sorted(places)
    assert [read(stores.at(place), place.name) for place in places] == [0.0, 1.0, 2.0]
    unused = [
        UnusedGolden(one.folder, one.name, stores.at(one).root_of(one.name)) for one in places
    ]
    assert delete_goldens(tmp_path, unused[:2]) == [
        f"{tmp_path}/a/test_it.goldens (x)",
        f"{tmp_path}/b/test_it.goldens (x)",
    ]
    assert stored_places(tmp_path) == [places[2]]
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == ["test_it.goldens"]


def test_a_folder_is_never_called_as_a_shared_file(tmp_path: Path) -> None:
    from ciwrap.golden.places import escape_name, unescape_name

    assert escape_name("x.goldens") == "x%2Egoldens"
    assert unescape_name("x%2Egoldens") == "x.goldens"
