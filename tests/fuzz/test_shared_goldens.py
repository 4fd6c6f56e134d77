"""Files of small goldens that we did not write: read, or refused as damaged; nothing else."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from golden_pairs import write
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ciwrap.base.errors import CorruptGoldenError, UnsupportedFormatError
from ciwrap.golden.goldens_of_tests import ModuleStore
from ciwrap.golden.shared_file import HEADER, SLOTS, line_of, read_shared, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = Path("golden/test_it.goldens")
REFUSED = (CorruptGoldenError, UnsupportedFormatError)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of three goldens."""
    top = tmp_path_factory.mktemp("shared") / "golden"
    top.mkdir()
    store = ModuleStore(top / "test_it")
    for number, name in enumerate(("test_a", "test_b", "test_c[1]")):
        write(store, name, float(number))
    store.close()
    (path,) = top.rglob("*.goldens")
    return path.read_bytes()


@contextlib.contextmanager
def refused_or_read() -> Iterator[None]:
    with contextlib.suppress(*REFUSED):
        yield


def told(data: bytes) -> dict[str, tuple[object, bytes | None]]:
    """Manifest and data of each golden in a file."""
    return {
        one.manifest.check: (
            structs.replace(one.manifest, environment={}),  # a line of its own, which may be lost
            one.variables[0].data,
        )
        for one in read_shared(data, PATH)
    }


def bodies(whole: bytes) -> list[bytes]:
    """Of all lines but the marks between them, which are not needed to read the others."""
    lines = [line for line in whole.splitlines() if line not in SLOTS]
    return [line.rpartition(b" ")[0] for line in lines]


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    with refused_or_read():
        assert read_shared(data, PATH) == []


@given(st.data())
def test_changed_bytes_are_never_read_as_other_goldens(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda one: one != whole[at]))
    changed = whole[:at] + bytes([other]) + whole[at + 1 :]
    with refused_or_read():
        assert told(changed) == told(whole)


@given(st.data())
def test_lines_lost_doubled_or_moved(whole: bytes, data: st.DataObject) -> None:
    lines = [line for line in whole.splitlines(keepends=True) if line[:-1] not in SLOTS]
    drawn = data.draw(st.lists(st.sampled_from(lines), max_size=2 * len(lines)))
    known = told(whole)
    with refused_or_read():
        found = told(b"".join(drawn))
        assert found == {name: known[name] for name in found}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(st.data())
def test_lines_of_others_with_right_check_sums(whole: bytes, data: st.DataObject) -> None:
    """Whoever writes a line can sum it up, too."""
    kept = bodies(whole)
    at = data.draw(st.integers(1, len(kept) - 1))
    value = json.loads(kept[at])
    for _ in range(data.draw(st.integers(1, 3))):
        value = _with_change(value, data)
    body = json.dumps(value).encode()
    with refused_or_read():
        read_shared(b"".join(line_of(one) for one in (*kept[:at], body, *kept[at + 1 :])), PATH)


def _with_change(value: object, data: st.DataObject) -> object:
    """The value with one of its parts replaced, at any depth."""
    if isinstance(value, list) and value and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], _with_change(value[at], data), *value[at + 1 :]]
    if isinstance(value, dict) and value and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: _with_change(value[key], data)}
    return data.draw(json_values)


def _alone(body: bytes) -> bytes:
    return text_of({"x": body})


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b"[" * 200_000 + b"]" * 200_000,
        b'{"form": ' + b"[" * 100_000,
        b'{"environment": ' + b'{"a": ' * 100_000,
        b'["x", ' + b"9" * 100_000 + b"]",
        b'["\xff"]',
        b'["\\ud800"]',
        b"{}",
        b"null",
        b"",
    ],
)
def test_bombs_with_right_check_sums(body: bytes) -> None:
    with refused_or_read():
        assert read_shared(_alone(body), PATH) == []
    with pytest.raises(REFUSED):
        read_shared(line_of(HEADER) + line_of(body), PATH)
