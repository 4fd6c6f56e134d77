"""Check names to file names: injective, harmless, and aware of case-insensitive file systems."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.golden.places import escape_name, stored_stems, unescape_name
from ciwrap.golden.store import GoldenStore

names = st.text(min_size=1, max_size=60)


@given(names)
def test_names_come_back(name: str) -> None:
    stem = escape_name(name)
    if "~" not in stem:
        assert unescape_name(stem) == name


@given(names, names)
def test_two_names_never_share_a_file(one: str, other: str) -> None:
    assert (escape_name(one) == escape_name(other)) == (one == other)


@given(names)
def test_a_name_stays_in_its_folder(name: str) -> None:
    store = GoldenStore("golden")
    path = store.path(name)
    assert path.parent == Path("golden")
    assert len(store.manifest_path(name).name) < 250
    assert path.name.isascii()
    assert not path.name.startswith(".")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("mesh", "mesh"),
        ("a/b", "a%2Fb"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("50%", "50%25"),
        ("a b", "a%20b"),
        ("dichte ä", "dichte%20%C3%A4"),
        ("con", "%63on"),
        ("NUL.x", "%4EUL.x"),
        ("console", "console"),
        ("x\0y", "x%00y"),
    ],
)
def test_escapes(name: str, stem: str) -> None:
    assert escape_name(name) == stem


def test_long_names_are_shortened_and_stay_apart() -> None:
    one, other = escape_name("x" * 300 + "1"), escape_name("x" * 300 + "2")
    assert one != other
    assert len(one) == len(other) == 180


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        escape_name("")


def test_stems_of_halves_and_wholes(tmp_path: Path) -> None:
    store = GoldenStore(tmp_path)
    for path in (store.manifest_path("a"), store.path("a"), store.path("b")):
        path.touch()
    (tmp_path / "c.golden.next").touch()
    (tmp_path / ".ciwrap.lock").touch()
    assert stored_stems(tmp_path) == ["a", "b"]
    assert stored_stems(tmp_path / "missing") == []
