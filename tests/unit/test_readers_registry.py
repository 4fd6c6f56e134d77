"""Finding readers, those of other packages included."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ciwrap.base.errors import ReaderPluginError, UnknownReaderError
from ciwrap.formats import find_outputs as registry
from ciwrap.formats import reader as optional
from ciwrap.formats.find_outputs import reader_named, reader_names, reader_of_suffix
from ciwrap.formats.reader import Reader
from ciwrap.formats.vtk_xml import GRIDS
from ciwrap.model.settings import OWN_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.formats.reader import Source


class ForeignReader(Reader):
    name = "foreign"
    suffixes = (".foreign",)

    def open(
        self, path: Path, *, name: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Source:
        raise NotImplementedError


class Impostor:
    """Opens nothing."""


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Entry points by name; what a test puts in is what is registered."""
    entries: dict[str, str] = {}

    def registered() -> dict[str, EntryPoint]:
        return {
            name: EntryPoint(name, value, registry.ENTRY_POINT_GROUP)
            for name, value in sorted(entries.items())
        }

    monkeypatch.setattr(registry, "_entry_points", registered)
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setitem(sys.modules, "foreign_readers", sys.modules[__name__])
    return entries


def test_suffixes_of_our_own() -> None:
    for suffix, name in ((".npy", "npy"), (".NPZ", "npz"), (".bin", "raw"), (".csv", "text")):
        assert reader_of_suffix(suffix).name == name  # type: ignore[union-attr]
    for name, own in OWN_FORMATS.items():
        assert reader_named(name).suffixes == own.suffixes
        assert reader_named(name).name == name
    assert set(GRIDS) < set(OWN_FORMATS["vtk"].suffixes)


def test_unknown_readers() -> None:
    with pytest.raises(UnknownReaderError, match="did you mean 'text'"):
        reader_named("txt")
    assert reader_of_suffix(".odd") is None
    assert reader_of_suffix("") is None


def test_foreign_readers(plugins: dict[str, str]) -> None:
    plugins["foreign"] = "foreign_readers:ForeignReader"
    assert reader_names()[-1] == "foreign"
    assert isinstance(reader_named("foreign"), ForeignReader)
    assert reader_of_suffix(".foreign") is reader_named("foreign")


def test_a_foreign_reader_is_not_loaded_for_our_suffixes(plugins: dict[str, str]) -> None:
    plugins["broken"] = "no_such_module:Reader"
    assert reader_of_suffix(".npy").name == "npy"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:Reader", "cannot be loaded: ModuleNotFoundError"),
        ("foreign_readers:NoSuchClass", "cannot be loaded: AttributeError"),
        ("foreign_readers:Impostor", "is not a ciwrap.formats.reader.Reader"),
    ],
)
def test_broken_readers(plugins: dict[str, str], value: str, message: str) -> None:
    plugins["broken"] = value
    with pytest.raises(ReaderPluginError, match=message):
        reader_named("broken")
    # One of them might have known the suffix.
    with pytest.raises(ReaderPluginError, match="'broken'"):
        reader_of_suffix(".unknown")


def test_a_broken_reader_does_not_keep_others_from_being_found(plugins: dict[str, str]) -> None:
    plugins["broken"] = "no_such_module:Reader"
    plugins["foreign"] = "foreign_readers:ForeignReader"
    assert reader_of_suffix(".foreign").name == "foreign"


def test_entry_points_of_this_installation_are_read() -> None:
    registry._entry_points.cache_clear()
    assert all(isinstance(name, str) for name in registry._entry_points())


def test_the_libraries_that_doctor_asks_for_are_those_that_readers_load() -> None:
    readers = Path(optional.__file__).parent
    loaded = set()
    for source in readers.glob("*.py"):
        text = source.read_text(encoding="utf-8")
        found = re.findall(r'library\(\s*f?"([\w.]+)[^"]*", file=', text)
        loaded |= {name.split(".")[0] for name in found}
    assert loaded == {one for _, packages in optional.NEEDED.values() for one in packages}


def test_lacking_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional, "find_spec", lambda name: None if name == "zarr" else object())
    assert optional.lacking() == {"zarr": "zarr"}
