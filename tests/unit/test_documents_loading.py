"""YAML and JSON of which nothing is trusted: plain values, or one line, in little memory."""

from __future__ import annotations

import json
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.base import documents as json_loading
from ciwrap.base import yaml_documents as yaml_loading
from ciwrap.base.documents import DocumentError, load_json
from ciwrap.base.yaml_documents import MOST_DEPTH, load_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH = 60_000
MOST_BYTES = 8 << 20

NINE_TIMES = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
YAML_BOMBS = {
    "lists": ("[" * DEPTH + "]" * DEPTH, "more than 8 levels deep (line 1)"),
    "lists on lines": ("a:\n" + " [\n" * DEPTH, "more than 8 levels deep (line 9)"),
    "mappings": ("{a: " * DEPTH, "more than 8 levels deep"),
    "block lists": ("- " * DEPTH + "x", "more than 8 levels deep"),
    "block keys": ("? " * DEPTH + "x", "has a key that is not text"),
    "aliases": (f"a0: &a0 lol\n{NINE_TIMES}", "an anchor or an alias (line 1)"),
    "merge keys": ("a: &a {b: 1}\nc: {<<: [*a, *a]}", "an anchor or an alias"),
    "an alias to itself": ("&a [*a]", "an anchor or an alias"),
    "a tag": ("!!python/object/apply:os.system [id]", "uses a tag"),
    "a harmless tag": ("a: !!str b", "uses a tag"),
    "two documents": ("a: b\n---\na: c", "more than one document (line 2)"),
    "a key twice": ("a: 1\nb: 2\na: 3", "has the key 'a' twice (line 3)"),
    "a key twice, quoted": ("{a: 1, 'a': 2}", "has the key 'a' twice"),
    "a key twice further down": ("- {a: 1}\n- {a: 1, b: 2, b: 3}", "has the key 'b' twice"),
    "a long integer": ("9" * 10_000, "a number that is too long"),
    "a long float": ("1." + "9" * 10_000, "a number that is too long"),
    "a base of sixty": ("a: " + "1:" * 100 + "1\nb: [", "is not valid YAML"),
    "a conflict": ("<<<<<<< HEAD\na: 1\n=======\na: 2\n", "a merge conflict was left in it"),
}


def refusal(load: Callable[[bytes], Any], data: bytes) -> str:
    """Why a document is refused; it takes little memory beyond its own text to find out."""
    tracemalloc.start()
    try:
        with pytest.raises(DocumentError) as caught:
            load(data)
        assert tracemalloc.get_traced_memory()[1] < len(data) * 2 + MOST_BYTES
    finally:
        tracemalloc.stop()
    text = str(caught.value)
    assert len(text) < 200
    return text


@pytest.mark.parametrize("loader", ["libyaml", "Python"])
@pytest.mark.parametrize("name", YAML_BOMBS)
def test_yaml_that_is_refused(name: str, loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if loader == "Python":
        monkeypatch.setattr(yaml_loading, "_LOADER", yaml.SafeLoader)
    text, words = YAML_BOMBS[name]
    assert words in refusal(load_yaml, text.encode())


def test_the_deepest_yaml() -> None:
    assert load_yaml(("[" * MOST_DEPTH + "]" * MOST_DEPTH).encode()) == [[[[[[[[]]]]]]]]
    assert "levels deep" in refusal(load_yaml, ("[" * 9 + "]" * 9).encode())
    assert load_yaml(b"[[[[[[[[]]]]]]],[[[[[[[a]]]]]]],{a: {}}]") is not None


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loading, "MOST_NODES", 5)
    assert load_yaml(b"[1, 2, 3, 4]") == [1, 2, 3, 4]
    assert "more than 5 values" in refusal(load_yaml, b"[1, 2, 3, 4, 5]")
    assert load_json(b"[1, 2, 3, 4]", most_values=4) == [1, 2, 3, 4]
    with pytest.raises(DocumentError, match="more than 4 values"):
        load_json(b"[1, 2, 3, 4, 5]", most_values=4)


def test_plain_scalars_are_what_the_core_schema_says() -> None:
    text = "[~, null, , true, False, 12, -3, 010, 1e-6, .5, 5., -.inf, yes, 0x1, 1_0, '12', 1:30]"
    assert load_yaml(text.replace(", ,", ", '',").encode()) == [
        *(None, None, "", True, False, 12, -3, 10, 1e-6, 0.5, 5.0, float("-inf")),
        *("yes", "0x1", "1_0", "12", "1:30"),
    ]
    found = load_yaml(b"[.nan]")
    assert found[0] != found[0]
    assert load_yaml(b"") is None
    assert load_yaml(b"{1: a, null: b, true: c}") == {"1": "a", "null": "b", "true": "c"}


JSON_BOMBS = {
    "lists": ("[" * DEPTH + "]" * DEPTH, "is nested too deeply"),
    "objects": ('{"a":' * DEPTH, "is nested too deeply"),
    "a long integer": ("[" + "1" * 1_000_000 + "]", "a number that is too long"),
    "a large float": ('{"a": 1e999}', "a number that is too large: 1e999"),
    "NaN": ('{"a": NaN}', "holds NaN, which JSON does not know"),
    "infinity": ('{"a": -Infinity}', "holds -Infinity"),
    "a key twice": ('{"a": 1, "b": 2, "a": 1}', "has the key 'a' twice"),
    "a key twice further down": ('[{"a": {"b": 2, "b": 2}}]', "has the key 'b' twice"),
    "no JSON": ("{a: 1}", "is not JSON: Expecting property name enclosed in double quotes in line"),
    "nothing": ("", "is not JSON"),
}


@pytest.mark.parametrize("name", JSON_BOMBS)
def test_json_that_is_refused(name: str) -> None:
    text, words = JSON_BOMBS[name]
    assert words in refusal(load_json, text.encode())


def test_json_that_is_not_text() -> None:
    assert refusal(load_json, b'"\xff"') == "it is not UTF-8 text"
    assert refusal(load_yaml, b'"\xff"') == "it is not UTF-8 text"


@pytest.mark.parametrize("limit", [200, 5000])
def test_json_is_refused_at_any_depth_of_the_stack(limit: int) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        assert refusal(load_json, b"[" * DEPTH) == "it is nested too deeply"
    finally:
        sys.setrecursionlimit(before)


_JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=30,
)


@given(_JSON)
def test_json_is_read_as_python_reads_it(value: Any) -> None:
    text = json.dumps(value)
    assert repr(load_json(text.encode())) == repr(value)


@given(st.text(max_size=60))
def test_texts_come_back_from_yaml(text: str) -> None:
    quoted = json.dumps(text, ensure_ascii=True)
    if any(0xD800 <= ord(char) <= 0xDFFF or ord(char) > 0xFFFF for char in text):
        return
    assert load_yaml(f"[{quoted}]".encode()) == [text]


assert json_loading.MOST_VALUES == yaml_loading.MOST_NODES
