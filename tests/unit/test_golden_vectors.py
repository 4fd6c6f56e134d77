"""The compiled core reads the conformance vectors of golden files, and refuses the unsound ones."""

from __future__ import annotations

import re
from typing import Any

import pytest
from oracle import golden_format as gf
from oracle import golden_vectors
from unit.core_goldens import EARLIER, FOLDER, SOUND, UNSOUND, assert_same, name_of

from ciwrap import _core


def test_the_vectors_are_what_their_generator_makes() -> None:
    made = golden_vectors.vectors()
    assert golden_vectors.index(made) == (FOLDER / "vectors.json").read_text()
    assert {path.name for path in FOLDER.glob("*.golden")} == {f"{v.name}.golden" for v in made}
    for vector in made:
        assert (FOLDER / f"{vector.name}.golden").read_bytes() == vector.file, vector.name


@pytest.mark.parametrize("vector", SOUND, ids=name_of)
def test_sound_vector(vector: dict[str, Any]) -> None:
    path = FOLDER / vector["file"]
    file = path.read_bytes()
    variables = _core.decode_golden(file, source=str(path))
    stated = gf.decode(file)
    for core, v, described in zip(variables, stated, vector["variables"], strict=True):
        assert_same(core, gf.as_allowed(v))
        assert core.tree.root.hex() == described["root"]
        assert core.evidence == described["evidence"]
    root = bytes.fromhex(vector["root"])
    assert _core.golden_root(file) == _core.read_golden_header(str(path)) == root
    anew = gf.encode(map(gf.as_allowed, stated)) if vector in EARLIER else file
    assert (anew == file) == (vector not in EARLIER)
    assert _core.encode_golden(variables) == anew
    assert _core.encode_golden(variables[::-1]) == anew
    assert _core.golden_root(anew).hex() == vector.get("root_written_anew", vector["root"])


@pytest.mark.parametrize("vector", EARLIER, ids=name_of)
def test_a_file_of_an_earlier_build_is_checked_as_the_contract_says(vector: dict[str, Any]) -> None:
    """One number more in every array that is not of floats is seen, by digests and by elements."""
    for variable in _core.decode_golden((FOLDER / vector["file"]).read_bytes()):
        p = variable.tree.parameters
        if variable.data is None or p.atol > 0:
            continue
        for at in range(0, len(variable.data), p.scalar_bytes):
            new = bytearray(variable.data)
            new[at] ^= 1
            tree = _core.build_tree(p, new)
            assert _core.diff_trees(variable.tree, tree).tolist() == [0]
            assert _core.compare_arrays(p, variable.data, new).differing_count == 1


@pytest.mark.parametrize("vector", SOUND, ids=name_of)
def test_trees_of_sound_vectors_are_those_of_their_data(vector: dict[str, Any]) -> None:
    for variable in _core.decode_golden((FOLDER / vector["file"]).read_bytes()):
        if variable.data is not None:
            tree = _core.build_tree(variable.tree.parameters, variable.data)
            assert tree.root == variable.tree.root


@pytest.mark.parametrize("vector", UNSOUND, ids=name_of)
def test_unsound_vector(vector: dict[str, Any]) -> None:
    path = FOLDER / vector["file"]
    limits = (
        {"max_decoded_bytes": vector["max_decoded_bytes"]} if "max_decoded_bytes" in vector else {}
    )
    with pytest.raises(_core.CoreError) as caught:
        _core.decode_golden(path.read_bytes(), source="some/file.golden", **limits)
    assert caught.value.code == vector["error"]
    text = str(caught.value)
    assert text.startswith("some/file.golden: ")
    assert text.isprintable()
    for part in vector["message_holds"]:
        assert part in text
    if not limits:
        with pytest.raises(gf.FormatError):
            gf.decode(path.read_bytes())


@pytest.mark.parametrize("vector", UNSOUND, ids=name_of)
def test_the_header_of_an_unsound_vector(vector: dict[str, Any]) -> None:
    """Reading the header notices, or gives the root of a directory that is right by itself."""
    path = FOLDER / vector["file"]
    file = path.read_bytes()
    try:
        expected = gf.root(file)
    except gf.FormatError:
        with pytest.raises(_core.CoreError, match=re.escape(f"{path}: ")) as caught:
            _core.read_golden_header(str(path))
        assert caught.value.code == vector["error"]
        with pytest.raises(_core.CoreError):
            _core.golden_root(file)
    else:
        assert _core.read_golden_header(str(path)) == _core.golden_root(file) == expected
