"""The manifest: the same text for the same facts, and nothing but a whole one is read."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ciwrap.golden.manifest import (
    Acceptance,
    Manifest,
    ManifestError,
    VariableRow,
    dump_manifest,
    load_manifest,
)
from ciwrap.golden.yaml_text import scalar

ROW = VariableRow("density", 10, 0, "<f8", (32, 64), "atol=1e-6 rtol=0", "residues k=15", "00" * 16)
ENTRY = Acceptance("2026-01-02T03:04:05Z", "A <a@b.c>", "first golden", "11" * 16, "c0ffee")
MANIFEST = Manifest(
    check="mesh",
    binary_name="mesh.golden",
    binary_root="12345678901234567890123456789012",
    binary_bytes=1234,
    variables=(ROW, replace(ROW, name="no", iteration=None, rank=None, shape=())),
    environment={"cpu": "Some CPU @ 3 GHz", "OMP_NUM_THREADS": "2"},
    accepted=(ENTRY, replace(ENTRY, old_root="11" * 16, largest_bound_share=0.25, why="x: y # z")),
)


def test_round_trip() -> None:
    assert load_manifest(dump_manifest(MANIFEST)) == MANIFEST


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
        variables=(replace(ROW, name=name),),
        accepted=(replace(ENTRY, who=who, why=why),),
    )
    assert load_manifest(dump_manifest(manifest)) == manifest


GOOD = dump_manifest(MANIFEST)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("format: 1", "format: 2", "update ciwrap"),
        ("format: 1", "format: 0", "no format 0"),
        ("format: 1", "format: one", "must be an integer"),
        ("format: 1", "format: true", "must be an integer"),
        ("check: mesh", "check: 5", "`check` must be text"),
        ("  bytes: 1234", "  bytes: lots", "binary.bytes"),
        ("binary:", "binary: 1\nother:", "must be a mapping"),
        ("shape: [32, 64]", "shape: 32", "must be a list"),
        ("shape: [32, 64]", "shape: [32, x]", "list of integers"),
        ("rank: 0,", "rank: zero,", "rank"),
        ("largest_bound_share: 0.25", "largest_bound_share: much", "must be a number"),
        ("variables:", "<<<<<<< HEAD\nvariables:", "merge conflict"),
        ("accepted:", "accepted: 3\nx:", "must be a list"),
        ("environment:", "environment: []\nx:", "must be a mapping"),
    ],
)
def test_damaged_manifests_are_refused(old: str, new: str, words: str) -> None:
    assert old in GOOD
    with pytest.raises(ManifestError, match=words):
        load_manifest(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    "text", ["", "[]", "- 1", "a: b: c", "&a [*a]", "[" * 5000, "\0", "!!python/x 1"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ManifestError):
        load_manifest(text)
