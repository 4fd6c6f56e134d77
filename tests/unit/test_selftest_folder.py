"""The temporary folder of a self-test goes away whatever comes while it does."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.base.processes import ends_are_interrupts
from ciwrap.studies.selftest import temporary_folder

if TYPE_CHECKING:
    from pathlib import Path


def test_a_second_interrupt_waits_until_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = shutil.rmtree

    def interrupted(*arguments: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        remove(*arguments, **options)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt), ends_are_interrupts(), temporary_folder() as folder:  # noqa: PT012
        (folder / "copy.npy").write_bytes(b"1")
        monkeypatch.setattr(shutil, "rmtree", interrupted)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
