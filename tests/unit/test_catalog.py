"""What a run left, as one list of variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ciwrap.formats.catalog import Catalog
from ciwrap.formats.find_outputs import find_outputs

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_without_variables_is_told_of(tmp_path: Path) -> None:
    """Nothing else would say that the other run does not have it."""
    np.save(tmp_path / "x.npy", np.arange(3.0))
    np.savez(tmp_path / "empty.npz")
    with Catalog(find_outputs(tmp_path, ["."])) as catalog:
        assert [identity.name for identity in catalog.identities] == ["x"]
        (error,) = catalog.errors
        assert str(error).startswith(f"{tmp_path / 'empty.npz'}: holds no variables; leave it out")
    with Catalog(find_outputs(tmp_path, ["."], exclude=["*.npz"])) as catalog:
        assert not catalog.errors


def test_a_log_without_what_is_optional_in_it_is_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("nothing\n", encoding="utf-8")
    options = {"values": {"gap": {"match": "gap {gap}", "optional": True}}}
    found = find_outputs(tmp_path, ["run.log"], format_name="log", options=options)
    with Catalog(found) as catalog:
        assert not catalog.identities
        assert not catalog.errors
