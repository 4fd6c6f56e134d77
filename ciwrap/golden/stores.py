"""The stores of all folders below a golden folder."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ciwrap.golden.store import GoldenStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ciwrap.golden.places import Place


class GoldenStores:
    """The stores of all folders below one, by the places of goldens. is_kept, options: as of a
    store.
    """

    def __init__(self, root: Path, *, is_kept: bool = False, options: str = "") -> None:
        self.root = root
        self._options = options
        self._is_kept = is_kept
        self._stores: dict[str, GoldenStore] = {}

    def at(self, place: Place) -> GoldenStore:
        """The store that holds the golden of a place, under the place's name.

        Goldens of tests lie below the top, and small ones of one test file share a file.
        """
        if place.folder not in self._stores:
            kind = GoldenStore
            if place.folder:
                from ciwrap.golden.module_store import ModuleStore

                kind = ModuleStore
            self._stores[place.folder] = kind(
                self.root / place.folder, is_kept=self._is_kept, options=self._options
            )
        return self._stores[place.folder]

    def close(self) -> None:
        """Ends the writing of all of them, also if one of them fails. Raises as
        `GoldenStore.close`.
        """
        with contextlib.ExitStack() as ends:
            for store in self._stores.values():
                ends.callback(store.close)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Makes many writes within the block cheap, and ends them with it."""
        was_kept, self._is_kept = self._is_kept, True
        for store in self._stores.values():
            store.is_kept = True
        try:
            yield
        finally:
            self._is_kept = was_kept
            try:
                self.close()
            finally:
                for store in self._stores.values():
                    store.is_kept = was_kept
