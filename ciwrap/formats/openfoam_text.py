"""The tokens of OpenFOAM's files, and the header that says how the rest is written.

Source: "OpenFOAM User Guide", "Basic input/output file format".
"""

from __future__ import annotations

import re

from ciwrap.base.errors import CorruptFileError

_SKIPPED = re.compile(rb"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN = rb'[^\s;{}()\[\]"\x00-\x20\x7f-\xff]'
# A word may hold a pair of brackets, as div(phi,U) does; a number before a list may not.
_TOKEN = re.compile(
    rb'"(?:\\.|[^"\\])*"|#\{.*?#\}|[{}()\[\];]|[+-]?\.?\d' + _PLAIN + rb"*|"
    rb"" + _PLAIN + rb"+(?:\(" + _PLAIN + rb"*\)" + _PLAIN + rb"*)*",
    re.DOTALL,
)
_ARCH = re.compile(r'"(LSB|MSB);label=(32|64);scalar=(32|64)"')


class FoamText:
    """A file while it is read: `at` goes through its bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0
        self._is_binary = False
        self._dtypes = {"label": "<i8", "scalar": "<f8"}

    def _head(self) -> dict[str, str]:
        """The header's own entries, which say how the rest is written."""
        if self._token() != "FoamFile" or self._token() != "{":
            raise CorruptFileError("does not begin with FoamFile { ... }", remedy="is it OpenFOAM?")
        found = {}
        while (key := self._needed()) != "}":
            found[key] = " ".join(self._value())
        if found.get("format") not in ("ascii", "binary"):
            raise CorruptFileError("says neither 'format ascii' nor 'format binary'")
        self._is_binary = found["format"] == "binary"
        if self._is_binary:
            arch = _ARCH.fullmatch(found.get("arch", '"LSB;label=32;scalar=64"'))
            if arch is None:
                raise CorruptFileError(f"has an arch that is not known: {found['arch'][:60]}")
            order = "<" if arch[1] == "LSB" else ">"
            label, scalar = int(arch[2]) // 8, int(arch[3]) // 8
            self._dtypes = {"label": f"{order}i{label}", "scalar": f"{order}f{scalar}"}
        return found

    def _token(self) -> str | None:
        """The next token; None at the end of the file."""
        skipped = _SKIPPED.match(self._data, self.at)
        self.at = skipped.end() if skipped else self.at
        if self.at == len(self._data):
            return None
        found = _TOKEN.match(self._data, self.at)
        if found is None:
            raise CorruptFileError(f"holds {ascii(self._data[self.at : self.at + 20])[1:]}")
        self.at = found.end()
        return found[0].decode("utf-8", "backslashreplace")

    def _needed(self, wanted: str | None = None) -> str:
        token = self._token()
        if token is None or wanted not in (None, token):
            what = "ends" if token is None else f"has {token[:40]!r}"
            raise CorruptFileError(f"{what} where {wanted or 'more'} is expected")
        return token

    def _value(self) -> list[str]:
        """The tokens up to the semicolon that ends an entry."""
        found: list[str] = []
        depth = 0
        while (token := self._needed()) != ";" or depth:
            depth += (token in "([{") - (token in ")]}")
            if depth < 0:
                raise CorruptFileError(f"has {token} before the semicolon of an entry")
            found.append(token)
        return found
