"""The manifest: the same text for the same facts, and nothing but a whole one is read."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ciwrap.base.documents import DocumentError
from ciwrap.golden.manifest import (
    Acceptance,
    BinaryFile,
    Manifest,
    PendingOrigin,
    VariableRow,
    dump_manifest,
    load_manifest,
    scalar,
)

ROW = VariableRow(
    name="density",
    iteration=10,
    rank=0,
    dtype="<f8",
    shape=(32, 64),
    bound="atol=1e-6 rtol=0",
    evidence="residues k=15",
    root="00" * 16,
)
LABELS = {"units": "m s-1", "dims": "x y", "long name": "Dichte: {a, b} # nicht: \u2028"}
ENTRY = Acceptance("2026-01-02T03:04:05Z", "A <a@b.c>", "first golden", "11" * 16, "c0ffee")
MANIFEST = Manifest(
    check="mesh",
    binary=BinaryFile("mesh.golden", "12345678901234567890123456789012", 1234),
    variables=(ROW, replace(ROW, name="no", iteration=None, rank=None, shape=(), labels=LABELS)),
    environment={"cpu": "Some CPU @ 3 GHz", "OMP_NUM_THREADS": "2"},
    accepted=(ENTRY, replace(ENTRY, old_root="11" * 16, largest_bound_share=0.25, why="x: y # z")),
    pending=PendingOrigin("changed", "2026-01-02T03:04:05Z", None, "11" * 16),
)


def reread(manifest: Manifest) -> Manifest:
    return load_manifest(dump_manifest(manifest).encode())


def test_round_trip() -> None:
    assert reread(MANIFEST) == MANIFEST


def test_text_is_one_line_for_each_variable() -> None:
    text = dump_manifest(MANIFEST)
    lines = [line for line in text.splitlines() if "density" in line]
    assert lines == [
        '- {name: density, iteration: 10, rank: 0, dtype: "<f8", shape: [32, 64],'
        ' bound: atol=1e-6 rtol=0, evidence: residues k=15, root: "' + "00" * 16 + '"}'
    ]


texts = st.text(max_size=40)


@given(texts)
def test_any_text_survives_yaml(text: str) -> None:
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        return
    assert yaml.safe_load(f"key: {scalar(text)}") == {"key": text}
    assert yaml.safe_load(f"[{scalar(text)}, 1]") == [text, 1]
    assert yaml.safe_load(f"{{a: {scalar(text)}, b: 1}}") == {"a": text, "b": 1}
    assert "\n" not in scalar(text)


@pytest.mark.parametrize("word", ["yes", "No", "null", "~", "1", "1.5", "1e3", ".inf", "on", "-"])
def test_words_that_yaml_takes_for_something_else_stay_text(word: str) -> None:
    assert yaml.safe_load(f"key: {scalar(word)}") == {"key": word}


@given(st.floats(allow_nan=False))
def test_numbers_survive_yaml(value: float) -> None:
    assert yaml.safe_load(f"key: {scalar(value)}") == {"key": value}


@given(texts, texts, texts)
def test_any_texts_in_a_manifest_come_back(name: str, who: str, why: str) -> None:
    if any(0xD800 <= ord(char) <= 0xDFFF for char in name + who + why):
        return
    manifest = replace(
        MANIFEST,
        check=name,
        variables=(replace(ROW, name=name, labels={why: who}),),
        environment={who: name},
        accepted=(replace(ENTRY, who=who, why=why),),
    )
    assert reread(manifest) == manifest


GOOD = dump_manifest(MANIFEST)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("format: 3", "format: 4", "update ciwrap"),
        ("format: 3", "format: 0", "format 0, which does not exist"),
        ("format: 3\n", "", "`format` is missing"),
        ("format: 3", "format: one", "must be an integer"),
        ("format: 3", "format: true", "must be an integer"),
        ("check: mesh", "check: 5", "`check` must be text, not an integer"),
        ("  bytes: 1234", "  bytes: lots", "binary.bytes"),
        ("binary:", "binary: 1\nother:", "`binary` must be a mapping, not an integer"),
        ("shape: [32, 64]", "shape: 32", "must be a list"),
        ("shape: [32, 64]", "shape: [32, x]", "shape.1.` must be an integer, not text"),
        ("rank: 0,", "rank: zero,", "rank"),
        ("largest_bound_share: 0.25", "largest_bound_share: much", "must be a number"),
        ("variables:", "<<<<<<< HEAD\nvariables:", "merge conflict"),
        ("accepted:", "accepted: 3\nx:", "must be a list"),
        ("environment:", "environment: []\nx:", "`environment` must be a mapping, not a list"),
        # Two lists of variables: whoever reads the text sees one, ciwrap would use the other.
        ("variables:", "variables: []\nvariables:", "has the key 'variables' twice .line 10"),
        ("  root: ", "  root: x\n  root: ", "has the key 'root' twice"),
        ("check: mesh", "check: mesh\nchecks: mesh", "`checks` is not known here"),
        ("rank: 0,", "rank: 0, site: 1,", "`variables.0..site` is not known here"),
        ("cpu: ", "cpu: [a]\n  gpu: ", "`environment.*` must be text, not a list"),
        ("cpu: ", "cpu: {a: b}\n  gpu: ", "`environment.*` must be text, not a mapping"),
        ("cpu: ", "? [cpu]\n  : ", "has a key that is not text"),
        ('OMP_NUM_THREADS: "2"', "OMP_NUM_THREADS: 2", "must be text, not an integer"),
        ("cpu: ", "cpu: &a ", "an anchor or an alias"),
        ("cpu: ", "<<: *a\n  cpu: ", "an anchor or an alias"),
        ("cpu: ", "cpu: !!str ", "uses a tag"),
        ("check: mesh", "---\ncheck: mesh", "more than one document"),
        ('root: "00', 'root: "0g', "must be text matching"),
        ("bytes: 1234", "bytes: -1", "`binary.bytes` must be an integer >= 0"),
        ("bytes: 1234", f"bytes: {'9' * 50}", "a number that is too long"),
        ("kind: changed", "kind: other", "`pending.kind` cannot be 'other'"),
    ],
)
def test_damaged_manifests_are_refused(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(DocumentError, match=words):
        load_manifest(GOOD.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    "text", ["", "[]", "- 1", "a: b: c", "&a [*a]", "[" * 5000, "\0", "!!python/x 1"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        load_manifest(text.encode())


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(DocumentError, match="is not UTF-8 text"):
        load_manifest(GOOD.encode() + b"# \xff\n")
