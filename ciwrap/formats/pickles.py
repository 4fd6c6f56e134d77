"""Pickles, which are refused, and PyTorch's files, of which only weights are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from ciwrap.base.errors import ReaderPluginError, UnreadFileError
from ciwrap.base.late import numpy as np
from ciwrap.formats.entries import Entry, EntrySource, Listing
from ciwrap.formats.reader import (
    CheckedReader,
    Source,
    VariableInfo,
    check_is_file,
    library,
)

# Before it, `weights_only` could be made to run code (CVE-2025-32434).
_SAFE_TORCH = (2, 6)
_MOST_DEPTH = 64


class PickleReader(CheckedReader):
    """Opens nothing: a pickle is a program, and reading it runs it."""

    name: ClassVar[str] = "pickle"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        raise UnreadFileError(
            "is a pickle, which runs code when it is read",
            remedy="write .npz, or leave it out with 'exclude'",
        )


class TorchReader(CheckedReader):
    """Tensors and numbers of a file of `torch.save`, by the keys that lead to them; nothing else
    that its pickle may hold is loaded.
    """

    name: ClassVar[str] = "torch"

    def open_file(self, path: Path, name: str, options: dict[str, Any]) -> Source:
        check_is_file(path)
        torch = library("torch", file=path)
        version = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
        if version is None or (int(version[1]), int(version[2])) < _SAFE_TORCH:
            raise ReaderPluginError(
                f"torch {torch.__version__} may run code of the file when it loads weights",
                remedy="install torch 2.6 or later, or write .safetensors",
            )
        value = torch.load(str(path), map_location="cpu", weights_only=True)
        listing = Listing(path)
        _add(listing, torch, name, "", value, 0)
        return EntrySource(path, listing.entries)


def _add(listing: Listing, torch: Any, root: str, name: str, value: Any, depth: int) -> None:
    called = name or root
    is_list = isinstance(value, (list, tuple))
    if depth > _MOST_DEPTH:
        listing.add_fault(called, "is nested too deeply")
    elif isinstance(value, dict) or is_list:
        pairs = enumerate(value) if is_list else value.items()
        for key, one in pairs:
            _add(listing, torch, root, f"{name}.{key}" if name else str(key), one, depth + 1)
    elif isinstance(value, torch.Tensor):
        with listing.one(called):
            _add_tensor(listing, torch, called, value)
    elif isinstance(value, (bool, int, float, str)):
        with listing.one(called):
            listing.add_array(called, value)
    elif value is None:
        listing.add_array(f"{called}.is_null", np.array(True))
    else:
        listing.add_fault(called, f"is of type {type(value).__name__}, which is not compared")


def _add_tensor(listing: Listing, torch: Any, called: str, tensor: Any) -> None:
    plain = tensor.detach().contiguous()
    if plain.dtype == torch.bfloat16:
        # NumPy has no such type: the bits are handed on, as of every bfloat16 here.
        bits = plain.view(torch.int16).numpy().view("<u2").reshape(-1)
        info = VariableInfo(called, "<bf2", tuple(int(length) for length in plain.shape))
        listing.put(Entry(info, lambda first, count: bits[first : first + count]))
    else:
        listing.add_array(called, plain.numpy())
