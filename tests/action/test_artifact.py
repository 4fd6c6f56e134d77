"""Artifacts that others made: unpacked as `base/archive.py` does, and read as what they may be."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from zips import make_zip

from ciwrap.action.github import read_meta, unpack
from ciwrap.base.errors import ArtifactError, CorruptFileError

if TYPE_CHECKING:
    from pathlib import Path


def test_an_artifact_is_unpacked_whole_or_not_at_all(tmp_path: Path) -> None:
    unpack(make_zip({"result.json": b"{}", "pending/a/b.golden": b"1"}), tmp_path, "ciwrap")
    assert (tmp_path / "pending/a/b.golden").read_bytes() == b"1"
    (tmp_path / "in").mkdir()
    with pytest.raises(ArtifactError, match=r"ciwrap-x: '\.\./x' is not a path"):
        unpack(make_zip({"result.json": b"{}", "../x": b"1"}), tmp_path / "in", "ciwrap-x")
    assert list((tmp_path / "in").iterdir()) == []
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"platform_key": 3, "sha": "", "commit": ""}',
        '{"platform_key": "", "sha": 3, "commit": ""}',
        '{"platform_key": "../x", "sha": "", "commit": ""}', '{"platform_key": "", "sha": ""}',
        '{"platform_key": "-x", "sha": "", "commit": ""}', "[" * 9000,
        '{"platform_key": "", "sha": "", "commit": "--x"}',
    ],
)  # fmt: skip
def test_a_description_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.json").write_text(text)
    with pytest.raises(CorruptFileError):
        read_meta(tmp_path)


def test_a_description(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(
        json.dumps({"platform_key": "linux-x", "sha": "0" * 40, "commit": ""})
    )
    assert read_meta(tmp_path).platform_key == "linux-x"
