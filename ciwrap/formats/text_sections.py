"""Which lines of a text are in a section, by the templates that logs have for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ciwrap.base.errors import ConfigError
from ciwrap.formats.log import Section
from ciwrap.formats.log_lines import hand_out
from ciwrap.formats.log_template import Template
from ciwrap.formats.reader import InputFile, guarded
from ciwrap.model.settings import FormError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ciwrap.arrays.values import SectionPlace

_HELD = Path("the text")


class _Held:
    """Bytes, read as an `InputFile` is."""

    path = _HELD

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_some(self, offset: int, byte_count: int) -> bytes:
        return self._data[offset : offset + byte_count]


def _template(text: str) -> Template:
    try:
        return Template(text)
    except FormError as error:
        key = "options.ignore_places.section"
        raise ConfigError(f"{text!r} {error.message}", key=key) from None


def section_ranges(text: Any, sections: Sequence[SectionPlace]) -> list[list[tuple[int, int]]]:
    """The lines of each section of a text (a path, or its bytes): ranges counted from 1, with their
    last lines. The line that a section begins with is in it, the one that ends it is not.

    Raises ConfigError for what is no template, and as `hand_out` does.
    """
    is_path = isinstance(text, (str, Path))
    file: Any = InputFile(Path(text)) if is_path else _Held(bytes(text))
    found = [Section() for _ in sections]
    listeners = [
        gate
        for section, one in zip(found, sections, strict=True)
        for gate in section.gates(
            _template(one.start), None if one.end is None else _template(one.end)
        )
    ]
    with guarded(file.path):
        hand_out(file, listeners)
    return [one.ranges for one in found]
