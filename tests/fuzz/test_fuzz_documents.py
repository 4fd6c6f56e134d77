"""Changed documents through every reader of them: refused in one line, or whole.

A short run is part of the tests. A long one, or another seed:

    CIWRAP_FUZZ_RUNS=100000 CIWRAP_FUZZ_SEED=7 python -m pytest tests/fuzz
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import msgspec
import pytest

from ciwrap.action.github import Meta, read_meta
from ciwrap.base.documents import DocumentError, load_json
from ciwrap.base.errors import CorruptFileError
from ciwrap.golden.manifest import (
    Acceptance,
    BinaryFile,
    Manifest,
    PendingOrigin,
    VariableRow,
    dump_manifest,
    load_manifest,
)
from ciwrap.golden.show import (
    ProjectState,
    UnusedGolden,
    UnusedList,
    list_path,
    read_unused,
    write_unused,
)
from ciwrap.model import CheckResult, ErrorBound, Evidence, RunResult, VariableResult, Verdict
from ciwrap.report.document import document_text, from_document, to_document
from ciwrap.review.pending import INDEX_NAME, PendingEntry, PendingGoldens, PendingIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUNS = int(os.environ.get("CIWRAP_FUZZ_RUNS", "600"))
SEED = int(os.environ.get("CIWRAP_FUZZ_SEED", "1"))

ROOT = "0123456789abcdef" * 2
# What means something to a reader, wherever it comes to stand.
TOKENS = [
    *(b"[", b"]", b"{", b"}", b":", b": ", b",", b", ", b"\n", b"\n- ", b"\n  ", b"? ", b'"', b"'"),
    *(b"&a ", b"*a", b"<<: *a", b"!!str ", b"!x ", b"%YAML 1.1\n---\n", b"\n---\n", b"\n...\n"),
    *(b"null", b"~", b"true", b"0", b"-1", b"1e999", b"NaN", b"-Infinity", b".inf", b"9" * 60),
    *(b"\0", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\\ud800", b"\t", b"#", b"|\n", b">-\n", b"\r"),
    *(b"format: 3", b'"format": 2', b"[" * 50, b'{"a":' * 50, b"- " * 50, ROOT.encode()),
]


def changed(data: bytes, rng: random.Random) -> bytes:
    """The document with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        lines = data.splitlines(keepends=True) or [b""]
        one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(7)
        if how == 0:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif how == 1:
            data = data[:at] + rng.choice(TOKENS) + data[at + rng.randint(1, 20) :]
        elif how == 2:
            data = data[:at] + data[at + rng.randint(1, 40) :]
        elif how == 3:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif how == 4:
            data = b"".join([*lines[:one], lines[other], *lines[one:]])
        elif how == 5:
            lines[one], lines[other] = lines[other], lines[one]
            data = b"".join(lines)
        else:
            data = data[:at]
    return data


def fuzz(good: bytes, read: Callable[[bytes], str | None], least_refused: float) -> None:
    """read: why a document is refused; None if it was taken, once it has been seen to be whole."""
    assert read(good) is None
    rng = random.Random(SEED)
    refused = 0
    for run in range(RUNS):
        data = changed(good, rng)
        try:
            why = read(data)
        except Exception as error:
            raise AssertionError(f"run {run}: {type(error).__name__} of {data!r}") from error
        refused += why is not None
        assert why is None or len(why) < 600, data
    assert refused > least_refused * RUNS


MANIFEST = Manifest(
    check="mesh: a/b",
    binary=BinaryFile("mesh.golden", ROOT, 1234),
    variables=tuple(
        VariableRow(
            name=f"v{n}",
            iteration=n or None,
            rank=n,
            dtype="<f8",
            shape=(n, 3),
            bound="atol=1e-6 rtol=0",
            evidence="data",
            root=ROOT,
            labels={"units": "m"} if n else {},
        )
        for n in range(3)
    ),
    environment={"cpu": "Some CPU @ 3 GHz", "OMP_NUM_THREADS": "2"},
    accepted=(Acceptance("now", "me", "why: 'x'", ROOT, None, ROOT, 0.25, ("a: b -> c",)),),
    pending=PendingOrigin("changed", "now", None, ROOT),
)


def test_manifests() -> None:
    def read(data: bytes) -> str | None:
        try:
            found = load_manifest(data)
        except DocumentError as error:
            return str(error)
        # Not found == found again: a share may be NaN.
        text = dump_manifest(found)
        assert dump_manifest(load_manifest(text.encode())) == text
        return None

    fuzz(dump_manifest(MANIFEST).encode(), read, 0.6)


RESULT = RunResult(
    Verdict.DIFFER,
    (
        CheckResult(
            "mesh",
            Verdict.DIFFER,
            (
                VariableResult(
                    "x",
                    Verdict.DIFFER,
                    iteration=3,
                    evidence=Evidence.DATA,
                    bound=ErrorBound(1e-6),
                    shape=(2, 3),
                    differing_count=2,
                    first_index=(0, 1),
                    max_bound_share=float("inf"),
                ),
                VariableResult("y", Verdict.MATCH, differing_count=0),
            ),
        ),
    ),
    environment={"cpu": "some"},
)


def test_results() -> None:
    def read(data: bytes) -> str | None:
        try:
            found = from_document(load_json(data))
        except DocumentError as error:
            return str(error)
        document = to_document(found)
        assert to_document(from_document(document)) == document
        return None

    fuzz(document_text(to_document(RESULT)).encode(), read, 0.5)


def test_lists_of_pending_goldens(tmp_path: Path) -> None:
    entry = PendingEntry(
        check="mesh",
        kind="new",
        golden_path="golden/mesh.golden",
        file="mesh.golden",
        variant=None,
        root=ROOT,
        base_root=None,
        bytes=12,
        created="now",
        commit=None,
    )
    index = PendingIndex(golden_dir="golden", checks=(entry,))
    store = PendingGoldens(tmp_path)

    def read(data: bytes) -> str | None:
        (tmp_path / INDEX_NAME).write_bytes(data)
        try:
            assert isinstance(store.golden_dir(), str)
        except CorruptFileError as error:
            return str(error)
        return None

    fuzz(msgspec.json.format(msgspec.json.encode(index), indent=1), read, 0.6)


def test_descriptions_of_artifacts(tmp_path: Path) -> None:
    def read(data: bytes) -> str | None:
        (tmp_path / "meta.json").write_bytes(data)
        try:
            found = read_meta(tmp_path)
        except CorruptFileError as error:
            return str(error)
        assert "/" not in found.platform_key
        assert len(found.sha) in (0, 40)
        return None

    meta = Meta(platform_key="linux-1", sha="0" * 40, commit="")
    fuzz(msgspec.json.format(msgspec.json.encode(meta), indent=1), read, 0.6)


def test_lists_of_unused_goldens(tmp_path: Path) -> None:
    unused = UnusedGolden("tests/test_a", "test_b", ROOT), UnusedGolden("", "mesh", None)
    state = ProjectState("/home/ada/flow", "golden", "0" * 40, ROOT)
    write_unused(tmp_path, UnusedList(state=state, unused=unused))
    path = list_path(tmp_path)

    def read(data: bytes) -> str | None:
        path.write_bytes(data)
        try:
            read_unused(tmp_path)
        except CorruptFileError as error:
            return str(error)
        return None

    fuzz(path.read_bytes(), read, 0.6)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"3"])
def test_what_is_no_document_at_all(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DocumentError):
        load_manifest(data)
    with pytest.raises(DocumentError):
        from_document(load_json(data))
    (tmp_path / "meta.json").write_bytes(data)
    with pytest.raises(CorruptFileError):
        read_meta(tmp_path)
